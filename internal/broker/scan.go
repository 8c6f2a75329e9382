// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxDepth limits how deep values of a body are nested.
const maxDepth = 1000

// errNotObject is the error of a body that is no JSON object.
var errNotObject = errors.New("the body is not a JSON object")

// scanner reads a JSON object whose values may be larger than memory.
type scanner struct {
	from *bufio.Reader
	// kept has the bytes of the present value while keep is set: at most limit of them.
	kept  []byte
	keep  bool
	limit int
}

// scanObject reads a JSON object to its end, by the grammar alone. A value of more than limit bytes is not kept, and
// reads as an empty object.
func scanObject(from io.Reader, limit int) (body, error) {
	s := &scanner{from: bufio.NewReaderSize(from, 32<<10), limit: limit}
	read := body{values: map[string]json.RawMessage{}}
	if first, err := s.afterSpace(); err != nil || first != '{' {
		return body{}, failing(err)
	}
	end, err := s.members(0, func(depth int) error { return s.member(&read, depth) })
	if err != nil {
		return body{}, err
	}
	if !end {
		return body{}, errNotObject
	}
	if _, err := s.afterSpace(); !errors.Is(err, io.EOF) {
		if err != nil {
			return body{}, err
		}
		return body{}, errors.New("the body has something after its JSON object")
	}
	return read, nil
}

// failing returns the error of a body that is not as it should be: that of reading, unless the body ended.
func failing(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return errNotObject
	}
	return err
}

// member reads a name and its value. Whoever reads the bytes after the broker must find the same names in them: member
// refuses a name that occurs twice, and names of other letters than the API's, which some programs take for the same.
func (s *scanner) member(read *body, depth int) error {
	encoded, err := s.keeping(maxID, func() error { return s.text() })
	if err != nil {
		return err
	}
	var name string
	if encoded == nil || json.Unmarshal(encoded, &name) != nil {
		return errors.New("the body has a name that is too long")
	}
	if strings.ContainsFunc(name, isForeignLetter) {
		return fmt.Errorf("the body has the unknown name %q", name)
	}
	if _, twice := read.values[name]; twice {
		return fmt.Errorf("the body has %q twice", name)
	}
	if c, err := s.afterSpace(); err != nil || c != ':' {
		return failing(err)
	}
	first, err := s.afterSpace()
	if err != nil {
		return failing(err)
	}
	if err := s.from.UnreadByte(); err != nil {
		return err
	}
	value, err := s.keeping(s.limit, func() error {
		if first, err = s.next(); err != nil {
			return err
		}
		return s.value(first, depth)
	})
	if err != nil {
		return err
	}
	if value == nil {
		value = []byte("{}")
	}
	read.names = append(read.names, name)
	read.values[name] = value
	return nil
}

// keeping returns the bytes that a function reads, or nil if there are more than the limit.
func (s *scanner) keeping(limit int, do func() error) ([]byte, error) {
	before := s.limit
	s.kept, s.keep, s.limit = []byte{}, true, limit
	err := do()
	kept := s.kept
	s.kept, s.keep, s.limit = nil, false, before
	return kept, err
}

// next returns the next byte.
func (s *scanner) next() (byte, error) {
	c, err := s.from.ReadByte()
	if err != nil {
		return 0, failing(err)
	}
	if s.keep {
		if len(s.kept) < s.limit {
			s.kept = append(s.kept, c)
		} else {
			s.kept, s.keep = nil, false
		}
	}
	return c, nil
}

// back returns the last byte to the reader.
func (s *scanner) back() error {
	if s.keep {
		s.kept = s.kept[:len(s.kept)-1]
	}
	return s.from.UnreadByte()
}

// afterSpace returns the next byte that is no space. At the end of the body it returns io.EOF.
func (s *scanner) afterSpace() (byte, error) {
	for {
		c, err := s.from.ReadByte()
		if err != nil {
			return 0, err
		}
		if s.keep {
			if err := s.from.UnreadByte(); err != nil {
				return 0, err
			}
			if c, err = s.next(); err != nil {
				return 0, err
			}
		}
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, nil
		}
	}
}

// members reads the members of an object after its brace, and reports whether it ended.
func (s *scanner) members(depth int, member func(depth int) error) (bool, error) {
	for first := true; ; first = false {
		c, err := s.afterSpace()
		if err != nil {
			return false, failing(err)
		}
		if c == '}' && first {
			return true, nil
		}
		if c != '"' {
			return false, errNotObject
		}
		if err := s.back(); err != nil {
			return false, err
		}
		if err := member(depth); err != nil {
			return false, err
		}
		switch c, err := s.afterSpace(); {
		case err != nil:
			return false, failing(err)
		case c == '}':
			return true, nil
		case c != ',':
			return false, errNotObject
		}
	}
}

// nested reads a name and its value within a value.
func (s *scanner) nested(depth int) error {
	if err := s.text(); err != nil {
		return err
	}
	if c, err := s.afterSpace(); err != nil || c != ':' {
		return failing(err)
	}
	first, err := s.afterSpace()
	if err != nil {
		return failing(err)
	}
	return s.value(first, depth)
}

// value reads a value whose first byte was read.
func (s *scanner) value(first byte, depth int) error {
	if depth++; depth > maxDepth {
		return errors.New("the body is nested too deep")
	}
	switch first {
	case '"':
		return s.restOfText()
	case '{':
		_, err := s.members(depth, s.nested)
		return err
	case '[':
		return s.elements(depth)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number(first)
}

// elements reads the elements of an array after its bracket.
func (s *scanner) elements(depth int) error {
	c, err := s.afterSpace()
	if err != nil || c == ']' {
		return failed(err)
	}
	for {
		if err := s.value(c, depth); err != nil {
			return err
		}
		if c, err = s.afterSpace(); err != nil || c == ']' {
			return failed(err)
		}
		if c != ',' {
			return errNotObject
		}
		if c, err = s.afterSpace(); err != nil {
			return failing(err)
		}
	}
}

// failed is failing for what need not be an error.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return failing(err)
}

// word reads a word whose first byte was read.
func (s *scanner) word(whole string) error {
	for i := 1; i < len(whole); i++ {
		if c, err := s.next(); err != nil || c != whole[i] {
			return failing(err)
		}
	}
	return nil
}

// text reads a string with its quotes.
func (s *scanner) text() error {
	if c, err := s.next(); err != nil || c != '"' {
		return failing(err)
	}
	return s.restOfText()
}

// restOfText reads a string after its first quote.
func (s *scanner) restOfText() error {
	for {
		c, err := s.next()
		switch {
		case err != nil:
			return err
		case c == '"':
			return nil
		case c < ' ':
			return errNotObject
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		}
	}
}

func (s *scanner) escape() error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c != 'u' {
		if strings.IndexByte(`"\/bfnrt`, c) < 0 {
			return errNotObject
		}
		return nil
	}
	for range 4 {
		if c, err = s.next(); err != nil {
			return err
		}
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return errNotObject
		}
	}
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// number reads a number whose first byte was read.
func (s *scanner) number(c byte) error {
	var err error
	if c == '-' {
		if c, err = s.next(); err != nil {
			return err
		}
	}
	if !isDigit(c) {
		return errNotObject
	}
	zero := c == '0'
	if c, err = s.next(); err != nil {
		return err
	}
	if !zero {
		if c, err = s.digits(c); err != nil {
			return err
		}
	}
	if c == '.' {
		if c, err = s.someDigits(); err != nil {
			return err
		}
	}
	if c == 'e' || c == 'E' {
		if err := s.exponent(); err != nil {
			return err
		}
	}
	return s.back()
}

// exponent reads the exponent of a number after its letter, and the byte after it.
func (s *scanner) exponent() error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c != '+' && c != '-' {
		if err := s.back(); err != nil {
			return err
		}
	}
	_, err = s.someDigits()
	return err
}

// digits reads digits from c on, and returns the byte after them.
func (s *scanner) digits(c byte) (byte, error) {
	var err error
	for err == nil && isDigit(c) {
		c, err = s.next()
	}
	return c, err
}

// someDigits reads one digit or more, and returns the byte after them.
func (s *scanner) someDigits() (byte, error) {
	c, err := s.next()
	if err != nil || !isDigit(c) {
		return 0, failing(err)
	}
	return s.digits(c)
}
