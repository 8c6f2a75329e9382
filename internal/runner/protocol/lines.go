// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Lines bound the lines of one direction.
type Lines struct {
	// Bytes is the length of a line without its end, and Depth how deep arrays and objects are nested.
	Bytes int `json:"lineBytes"`
	Depth int `json:"depth"`
}

// DefaultLines are the bounds of a caller's lines. HelloLines are the bounds of the hello of a caller over TCP, whose
// token has not been checked.
var (
	DefaultLines = Lines{Bytes: 16 << 20, Depth: 64}
	HelloLines   = Lines{Bytes: 16 << 10, Depth: 64}
)

// Reader reads messages of one direction.
type Reader struct {
	in     *bufio.Reader
	bounds Lines
	types  map[Type]bool
	line   []byte
}

// NewReader returns a Reader of messages of these types.
func NewReader(in io.Reader, bounds Lines, types map[Type]bool) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, 64<<10), bounds: bounds, types: types}
}

// Bound sets other bounds for the lines that follow.
func (r *Reader) Bound(bounds Lines) { r.bounds = bounds }

// Rest returns the rest of the stream after the messages that were read.
func (r *Reader) Rest() io.Reader { return r.in }

// Read returns the next message. The error is io.EOF at the end of the stream, an *Error for a line that cannot be
// read, or the error of the stream. After any error but an unknown type the rest of the stream means nothing.
func (r *Reader) Read() (*Message, error) {
	line, err := r.next()
	if err != nil {
		return nil, err
	}
	return Decode(line, r.bounds, r.types)
}

// next returns the next line without its end. It is valid until the next call.
func (r *Reader) next() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		if len(r.line)+len(part) > r.bounds.Bytes+1 {
			return nil, &Error{Code: CodeLineTooLong, Message: fmt.Sprintf("A line is longer than %d bytes.", r.bounds.Bytes)}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			r.line = append(r.line, part...)
		case err == nil && len(r.line) == 0:
			return part[:len(part)-1], nil
		case err == nil:
			r.line = append(r.line, part...)
			return r.line[:len(r.line)-1], nil
		case errors.Is(err, io.EOF) && len(r.line)+len(part) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// Decode returns the message of a line. Its error is always an *Error.
func Decode(line []byte, bounds Lines, types map[Type]bool) (*Message, error) {
	if !utf8.Valid(line) {
		return nil, &Error{Code: CodeBadLine, Message: "A line is not UTF-8."}
	}
	if deeper(line, bounds.Depth) {
		return nil, &Error{Code: CodeTooDeep, Message: fmt.Sprintf("A line is nested deeper than %d.", bounds.Depth)}
	}
	if first := bytes.TrimLeft(line, " \t\r"); len(first) == 0 || first[0] != '{' {
		return nil, &Error{Code: CodeBadLine, Message: "A line is not a JSON object."}
	}
	message := &Message{}
	if err := json.Unmarshal(line, message); err != nil {
		return nil, &Error{Code: CodeBadLine, Message: "A line is not a message: " + err.Error() + "."}
	}
	if !types[message.Type] {
		text := fmt.Sprintf("A message has the unknown type %q.", cut(string(message.Type)))
		return message, &Error{Code: CodeUnknownType, Message: text}
	}
	return message, nil
}

// deeper reports whether arrays and objects are nested deeper than the bound. It looks only at brackets outside of
// texts.
func deeper(line []byte, bound int) bool {
	depth, inText := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth > bound {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// Encode returns the line of a message, with its end.
func Encode(message *Message) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false) // it would make lines up to six times as long
	if err := encoder.Encode(message); err != nil {
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	return line.Bytes(), nil
}
