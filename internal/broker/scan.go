// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
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
	// data has the bytes that were read from from, and at is the index of the next byte. If from is nil, data is the
	// whole input.
	data []byte
	at   int
	from io.Reader
	// While keep is set, the value that begins at start is kept. spilled has those of its bytes that data no longer has.
	// tooMany says that the value has more than limit bytes.
	keep, tooMany bool
	start, limit  int
	spilled       []byte
}

// scanObject reads a JSON object to its end, by the grammar alone. A value of more than limit bytes is not kept, and
// reads as an empty object.
func scanObject(from io.Reader, limit int) (body, error) {
	return (&scanner{from: from, data: make([]byte, 0, 32<<10)}).object(limit)
}

func (s *scanner) object(limit int) (body, error) {
	read := body{values: map[string]json.RawMessage{}}
	if first, err := s.afterSpace(); err != nil || first != '{' {
		return body{}, failing(err)
	}
	if err := s.members(0, func(depth int) error { return s.member(&read, limit, depth) }); err != nil {
		return body{}, err
	}
	switch _, err := s.afterSpace(); {
	case err == nil:
		return body{}, errors.New("the body has something after its JSON object")
	case !errors.Is(err, io.EOF):
		return body{}, err
	}
	return read, nil
}

// failing returns the error of a malformed body: err if reading failed, or errNotObject if err is nil or the body
// ended.
func failing(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return errNotObject
	}
	return err
}

// member reads a name and its value. The server must find the same names in the body as the broker. So member refuses
// a name that occurs twice, and a name with characters that no name of the API has: some programs would take it for a
// name of the API.
func (s *scanner) member(read *body, limit, depth int) error {
	encoded, err := s.keeping(maxID, s.text)
	if err != nil {
		return err
	}
	var name string
	if encoded == nil || unquote(encoded, &name) != nil {
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
	s.back()
	value, err := s.keeping(limit, func() error {
		s.at++
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
	s.keep, s.tooMany, s.start, s.limit, s.spilled = true, false, s.at, limit, nil
	err := do()
	s.keep = false
	kept := s.data[s.start:s.at:s.at]
	if s.from != nil {
		kept = append(s.spilled, kept...)
	}
	if s.tooMany || len(kept) > limit {
		return nil, err
	}
	return kept, err
}

// fill reads more data.
func (s *scanner) fill() error {
	if s.from == nil {
		return io.EOF
	}
	if s.keep && !s.tooMany {
		if s.tooMany = len(s.spilled)+s.at-s.start > s.limit; !s.tooMany {
			s.spilled = append(s.spilled, s.data[s.start:s.at]...)
		}
	}
	s.at, s.start = 0, 0
	for {
		n, err := s.from.Read(s.data[:cap(s.data)])
		s.data = s.data[:n]
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// next returns the next byte.
func (s *scanner) next() (byte, error) {
	if s.at == len(s.data) {
		if err := s.fill(); err != nil {
			return 0, failing(err)
		}
	}
	c := s.data[s.at]
	s.at++
	return c, nil
}

// back unreads the last byte.
func (s *scanner) back() { s.at-- }

// afterSpace returns the next byte that is no space. At the end of the body it returns io.EOF.
func (s *scanner) afterSpace() (byte, error) {
	for {
		if s.at == len(s.data) {
			if err := s.fill(); err != nil {
				return 0, err
			}
		}
		c := s.data[s.at]
		s.at++
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, nil
		}
	}
}

// members reads the members of an object after its brace.
func (s *scanner) members(depth int, member func(depth int) error) error {
	for first := true; ; first = false {
		c, err := s.afterSpace()
		if err != nil || c != '"' {
			if c == '}' && first {
				return nil
			}
			return failing(err)
		}
		s.back()
		if err := member(depth); err != nil {
			return err
		}
		switch c, err := s.afterSpace(); {
		case err != nil:
			return failing(err)
		case c == '}':
			return nil
		case c != ',':
			return errNotObject
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
		return s.members(depth, s.nested)
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
		if isDigit(c) {
			s.back()
			s.integers()
			if c, err = s.afterSpace(); err != nil {
				return failing(err)
			}
		}
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

// integers reads the integers that come next, each with its comma, as far as data has them. A large body consists
// mostly of tokens, for which value would take several times as long.
func (s *scanner) integers() {
	data := s.data
	for at := s.at; ; {
		end := at
		for end < len(data) && isDigit(data[end]) {
			end++
		}
		if end == at || end == len(data) || data[end] != ',' || data[at] == '0' && end > at+1 {
			return
		}
		at = end + 1
		if at < len(data) && data[at] == ' ' {
			at++
		}
		s.at = at
	}
}

// failed is like failing, but returns nil if err is nil.
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
	s.back()
	return nil
}

// exponent reads the exponent of a number after its letter, and the byte after it.
func (s *scanner) exponent() error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c != '+' && c != '-' {
		s.back()
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
