// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// body is a JSON object that keeps its values as they were received, in their order.
type body struct {
	names  []string
	values map[string]json.RawMessage
}

// readObject reads a JSON object. An empty body is an empty object.
func readObject(data []byte) (body, error) {
	if len(data) == 0 {
		return body{values: map[string]json.RawMessage{}}, nil
	}
	return (&scanner{data: data}).object(len(data))
}

// isForeignLetter reports whether a character occurs in no name of the API.
func isForeignLetter(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }

// notString is the error of a value that is not a string. Its value is the name.
type notString string

// Error implements error.
func (e notString) Error() string { return string(e) + " is not a string" }

// text returns the string of a name, or an empty one if it is null or missing.
func (b body) text(name string) (string, error) {
	value, ok := b.values[name]
	if !ok || string(value) == "null" {
		return "", nil
	}
	var text string
	if value[0] != '"' || unquote(value, &text) != nil {
		return "", notString(name)
	}
	return text, nil
}

// unquote decodes a JSON string.
func unquote(encoded []byte, text *string) error {
	for _, c := range encoded[1 : len(encoded)-1] {
		if c == '\\' || c >= utf8.RuneSelf {
			return json.Unmarshal(encoded, text)
		}
	}
	*text = string(encoded[1 : len(encoded)-1])
	return nil
}

// set sets the value of a name.
func (b *body) set(name string, value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	if _, known := b.values[name]; !known {
		b.names = append(b.names, name)
	}
	b.values[name] = encoded
	return nil
}

// encode returns the object as JSON.
func (b body) encode() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, name := range b.names {
		if i > 0 {
			out.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, fmt.Errorf("encoding a name: %w", err)
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(b.values[name])
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// maxID limits the id of a model in a protobuf body.
const maxID = 1 << 10

// modelField is the number of model_id in a ForwardBackwardRequest.
const modelField protowire.Number = 1

// maxWindow is the largest window of compressed bodies in HTTP, by RFC 9659.
const maxWindow = 8 << 20

// readModelID returns the model that a protobuf body of forward_backward names, without holding the decompressed body.
// A body that names two models is refused: the server may read only the first of several zstd frames.
func readModelID(encoding string, from io.Reader, plain io.Writer) (string, error) {
	reader := bufio.NewReader(io.TeeReader(from, plain))
	switch encoding {
	case "", "identity":
	case tinker.EncodingZstd:
		decoder, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			return "", fmt.Errorf("preparing decompression: %w", err)
		}
		defer decoder.Close()
		reader = bufio.NewReader(io.TeeReader(decoder, plain))
	default:
		return "", fmt.Errorf("content encoding %q is not supported", encoding)
	}
	found := ""
	for {
		id, err := nextModelID(reader)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return "", fmt.Errorf("reading forward_backward: %w", err)
		}
		if id == nil {
			continue
		}
		if found != "" && found != *id {
			return "", errors.New("reading forward_backward: the body names two models")
		}
		found = *id
	}
}

// nextModelID reads a field, and returns its value if it is model_id. At the end it returns io.EOF.
func nextModelID(reader *bufio.Reader) (*string, error) {
	tag, err := binary.ReadUvarint(reader)
	if err != nil {
		return nil, err
	}
	number, wire := protowire.DecodeTag(tag)
	if number == modelField && wire != protowire.BytesType {
		return nil, errors.New("model_id is not a string")
	}
	size := uint64(0)
	switch wire {
	case protowire.VarintType:
		_, err := binary.ReadUvarint(reader)
		return nil, unexpected(err)
	case protowire.Fixed32Type:
		size = 4
	case protowire.Fixed64Type:
		size = 8
	case protowire.BytesType:
		if size, err = binary.ReadUvarint(reader); err != nil {
			return nil, unexpected(err)
		}
	default:
		return nil, fmt.Errorf("field %d has wire type %d", number, wire)
	}
	if number == modelField {
		if size > maxID {
			return nil, errors.New("model_id is too long")
		}
		id := make([]byte, size)
		_, err := io.ReadFull(reader, id)
		return new(string(id)), unexpected(err)
	}
	_, err = io.CopyN(io.Discard, reader, int64(min(size, 1<<62)))
	return nil, unexpected(err)
}

// unexpected returns io.ErrUnexpectedEOF in the place of io.EOF: the body ends within a field.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// remove removes a name.
func (b *body) remove(name string) {
	b.names = slices.DeleteFunc(b.names, func(other string) bool { return other == name })
	delete(b.values, name)
}
