// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// FieldError reports a problem of a tokenizer file, and its place.
type FieldError struct {
	// Field is the path in the file, such as "model.merges[17]"; it is "" for the file as a whole.
	Field string
	// Problem describes the problem, and its correction if known.
	Problem string
}

// Error implements error.
func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + ": " + e.Problem
}

// problem returns a FieldError whose field its callers add with within.
func problem(format string, values ...any) error {
	return &FieldError{Problem: fmt.Sprintf(format, values...)}
}

// within prepends the name of an enclosing field to the field of an error.
func within(field string, err error) error {
	var e *FieldError
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Field == "":
		return &FieldError{Field: field, Problem: e.Problem}
	case e.Field[0] == '[':
		return &FieldError{Field: field + e.Field, Problem: e.Problem}
	}
	return &FieldError{Field: field + "." + e.Field, Problem: e.Problem}
}

// cursor reads the JSON of a tokenizer file, which is mostly two very long lists, without making a value for each
// element. With it, Parse allocates 33 MB for the largest known file, of 28 MB, in two thirds of the time that
// json.Decoder takes for the tokens alone, and in half the time of json.Unmarshal; these allocate 116 and 102 MB. It
// also refuses half of a surrogate pair, which encoding/json replaces. It accepts some text that is not JSON, such as
// malformed numbers; its users check its results.
type cursor struct {
	data []byte
	at   int
	// text is the buffer for strings with escapes.
	text []byte
}

// next skips white space and returns the next byte, or 0 at the end.
func (c *cursor) next() byte {
	for c.at < len(c.data) {
		switch b := c.data[c.at]; b {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return b
		}
	}
	return 0
}

func (c *cursor) expect(b byte) error {
	if got := c.next(); got != b {
		return c.unexpected(string(b))
	}
	c.at++
	return nil
}

func (c *cursor) unexpected(want string) error {
	if c.at >= len(c.data) {
		return problem("the file ends where %s should be", want)
	}
	return problem("%q at byte %d, want %s", c.data[c.at], c.at, want)
}

// object calls f for each key of an object; f reads the value. The key is valid until f reads a string.
func (c *cursor) object(f func(key []byte) error) error {
	if err := c.expect('{'); err != nil {
		return err
	}
	if c.next() == '}' {
		c.at++
		return nil
	}
	for {
		key, err := c.str()
		if err != nil {
			return err
		}
		if err := c.expect(':'); err != nil {
			return err
		}
		if err := f(key); err != nil {
			return err
		}
		if done, err := c.more('}'); done || err != nil {
			return err
		}
	}
}

// array calls f for each element of an array; f reads it.
func (c *cursor) array(f func(i int) error) error {
	if err := c.expect('['); err != nil {
		return err
	}
	if c.next() == ']' {
		c.at++
		return nil
	}
	for i := 0; ; i++ {
		if err := f(i); err != nil {
			return within("["+strconv.Itoa(i)+"]", err)
		}
		if done, err := c.more(']'); done || err != nil {
			return err
		}
	}
}

// more skips a comma, or the end of a list.
func (c *cursor) more(end byte) (done bool, err error) {
	switch c.next() {
	case ',':
		c.at++
		return false, nil
	case end:
		c.at++
		return true, nil
	}
	return false, c.unexpected("a comma or " + string(end))
}

// str reads a string, which is valid until the next one is read.
func (c *cursor) str() ([]byte, error) {
	if c.next() != '"' {
		return nil, c.unexpected("a string")
	}
	start := c.at + 1
	for i := start; i < len(c.data); i++ {
		switch b := c.data[i]; {
		case b == '"':
			c.at = i + 1
			return c.data[start:i], nil
		case b == '\\':
			return c.escaped(start, i)
		case b < ' ':
			c.at = i
			return nil, c.unexpected("a character of a string")
		}
	}
	c.at = len(c.data)
	return nil, c.unexpected("the end of a string")
}

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads the string that began at start and has its first escape at i.
func (c *cursor) escaped(start, i int) ([]byte, error) {
	c.text = append(c.text[:0], c.data[start:i]...)
	for c.at = i; c.at < len(c.data); c.at++ {
		b := c.data[c.at]
		switch {
		case b == '"':
			c.at++
			return c.text, nil
		case b < ' ':
			return nil, c.unexpected("a character of a string")
		case b != '\\':
			c.text = append(c.text, b)
			continue
		}
		c.at++
		if c.at < len(c.data) && c.data[c.at] == 'u' {
			if err := c.unicode(); err != nil {
				return nil, err
			}
			continue
		}
		if c.at >= len(c.data) || escapes[c.data[c.at]] == 0 {
			return nil, c.unexpected("an escape of a string")
		}
		c.text = append(c.text, escapes[c.data[c.at]])
	}
	return nil, c.unexpected("the end of a string")
}

// unicode reads an escape of four hexadecimal digits from its u on, or two escapes that are a surrogate pair. It stops
// at the last digit.
func (c *cursor) unicode() error {
	r, ok := c.hex(c.at + 1)
	if !ok {
		return c.unexpected("an escape of a string")
	}
	c.at += 4
	if utf16.IsSurrogate(r) {
		low, ok := c.hex(c.at + 3)
		if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError || !bytes.HasPrefix(c.data[c.at+1:], []byte(`\u`)) {
			return problem("half of a surrogate pair at byte %d", c.at)
		}
		c.at += 6
	}
	c.text = utf8.AppendRune(c.text, r)
	return nil
}

func (c *cursor) hex(start int) (rune, bool) {
	if start+4 > len(c.data) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(c.data[start:start+4]), 16, 16)
	return rune(n), err == nil
}

// integer reads a number that is not negative, has no fraction and is below 2^31.
func (c *cursor) integer() (int32, error) {
	b := c.next()
	start, n := c.at, int64(0)
	for ; b >= '0' && b <= '9' && n <= 1<<31; b = c.byte() {
		n = n*10 + int64(b-'0')
		c.at++
	}
	if c.at == start || n >= 1<<31 || b == '.' || b == 'e' || b == 'E' {
		return 0, c.unexpected("a whole number below 2^31")
	}
	return int32(n), nil
}

func (c *cursor) byte() byte {
	if c.at < len(c.data) {
		return c.data[c.at]
	}
	return 0
}

// value skips a value of any kind and returns its text. It only checks that brackets match.
func (c *cursor) value() ([]byte, error) {
	first := c.next()
	start, depth := c.at, 0
	for {
		switch b := c.next(); b {
		case 0:
			return nil, c.unexpected("a value")
		case '"':
			if err := c.skipString(); err != nil {
				return nil, err
			}
		case '{', '[':
			depth++
			c.at++
		case '}', ']', ',':
			if depth == 0 {
				return nil, c.unexpected("a value")
			}
			if b != ',' {
				depth--
			}
			c.at++
		case ':':
			c.at++
		default:
			c.skipWord()
		}
		if depth == 0 {
			return c.data[start:c.at], nil
		}
		if first != '{' && first != '[' {
			return nil, c.unexpected("a value")
		}
	}
}

// skipString skips a string without reading its escapes.
func (c *cursor) skipString() error {
	for i := c.at + 1; i < len(c.data); i++ {
		switch c.data[i] {
		case '"':
			c.at = i + 1
			return nil
		case '\\':
			i++
		}
	}
	c.at = len(c.data)
	return c.unexpected("the end of a string")
}

// skipWord skips a number, true, false or null.
func (c *cursor) skipWord() {
	for ; c.at < len(c.data); c.at++ {
		switch c.data[c.at] {
		case ' ', '\t', '\n', '\r', ',', ':', '{', '}', '[', ']', '"':
			return
		}
	}
}
