// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pyjson

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// deepest is the deepest nesting that is read, which is about the limit of the reference.
	deepest = 990
	// longest is the number of digits of the longest whole number that the reference reads.
	longest = 4300
)

// Parse reads JSON as Python's json.loads does: NaN, Infinity and -Infinity are numbers, a number that is
// too large is infinite, the last value of a repeated name counts, and white space is only the four characters of the
// standard. It is written by hand because no library has these rules and keeps the order of names.
func Parse(text string) (any, error) {
	p := &parser{text: text}
	p.space()
	value, err := p.value(0)
	if err != nil {
		return nil, fmt.Errorf("reading JSON at byte %d: %w", p.at, err)
	}
	p.space()
	if p.at != len(p.text) {
		return nil, fmt.Errorf("reading JSON at byte %d: there is more text after the value", p.at)
	}
	return value, nil
}

type parser struct {
	text string
	at   int
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\n\r", p.text[p.at]) >= 0 {
		p.at++
	}
}

// next returns the next byte, or 0 at the end.
func (p *parser) next() byte {
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// take skips a word if it is next.
func (p *parser) take(word string) bool {
	if !strings.HasPrefix(p.text[p.at:], word) {
		return false
	}
	p.at += len(word)
	return true
}

var errNoValue = errors.New("a value is expected")

// words are the values that are written as words.
var words = []struct {
	name  string
	value any
}{
	{"null", nil}, {"true", true}, {"false", false},
	{"NaN", math.NaN()}, {"Infinity", math.Inf(1)}, {"-Infinity", math.Inf(-1)},
}

func (p *parser) value(depth int) (any, error) {
	if depth > deepest {
		return nil, errors.New("it is nested too deeply")
	}
	switch p.next() {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		return p.str()
	}
	for _, word := range words {
		if p.take(word.name) {
			return word.value, nil
		}
	}
	return p.number()
}

func (p *parser) object(depth int) (any, error) {
	out := &Object{}
	p.at++
	p.space()
	if p.take("}") {
		return out, nil
	}
	at := map[string]int{} // Models may write thousands of names.
	for {
		p.space()
		name, value, err := p.field(depth)
		if err != nil {
			return nil, err
		}
		if i, ok := at[name]; ok {
			out.Fields[i].Value = value
		} else {
			at[name] = len(out.Fields)
			out.Fields = append(out.Fields, Field{Name: name, Value: value})
		}
		p.space()
		if p.take("}") {
			return out, nil
		}
		if !p.take(",") {
			return nil, errors.New("a comma or } is expected")
		}
	}
}

func (p *parser) field(depth int) (name string, value any, err error) {
	if p.next() != '"' {
		return "", nil, errors.New("a name in double quotes is expected")
	}
	if name, err = p.str(); err != nil {
		return "", nil, err
	}
	p.space()
	if !p.take(":") {
		return "", nil, errors.New("a colon is expected")
	}
	p.space()
	value, err = p.value(depth + 1)
	return name, value, err
}

func (p *parser) array(depth int) (any, error) {
	out := []any{}
	p.at++
	p.space()
	if p.take("]") {
		return out, nil
	}
	for {
		p.space()
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, value)
		p.space()
		if p.take("]") {
			return out, nil
		}
		if !p.take(",") {
			return nil, errors.New("a comma or ] is expected")
		}
	}
}

func (p *parser) number() (any, error) {
	begin := p.at
	p.take("-")
	switch c := p.next(); {
	case c == '0':
		p.at++
	case c > '0' && c <= '9':
		p.digits()
	default:
		p.at = begin
		return nil, errNoValue
	}
	whole := p.at
	p.fraction()
	text := p.text[begin:p.at]
	if p.at > whole {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, err
		}
		return f, nil
	}
	if len(text) > longest {
		return nil, fmt.Errorf("a whole number has more than %d digits", longest)
	}
	if text == "-0" {
		text = "0"
	}
	return Integer(text), nil
}

// digits skips digits and returns their number.
func (p *parser) digits() int {
	begin := p.at
	for p.next() >= '0' && p.next() <= '9' {
		p.at++
	}
	return p.at - begin
}

// fraction skips a fraction and an exponent if they are complete.
func (p *parser) fraction() {
	begin := p.at
	if p.take(".") && p.digits() == 0 {
		p.at = begin
	}
	begin = p.at
	if !p.take("e") && !p.take("E") {
		return
	}
	if !p.take("+") {
		p.take("-")
	}
	if p.digits() == 0 {
		p.at = begin
	}
}

// escapes are the escapes of one letter.
var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (p *parser) str() (string, error) {
	var out strings.Builder
	for p.at++; ; {
		if p.at == len(p.text) {
			return "", errors.New("a string is not closed")
		}
		c := p.text[p.at]
		switch {
		case c == '"':
			p.at++
			return out.String(), nil
		case c < ' ':
			return "", errors.New("a string holds a control character that is not escaped")
		case c != '\\':
			out.WriteByte(c)
			p.at++
		default:
			if err := p.escape(&out); err != nil {
				return "", err
			}
		}
	}
}

func (p *parser) escape(out *strings.Builder) error {
	p.at++
	c := p.next()
	if plain, ok := escapes[c]; ok {
		out.WriteByte(plain)
		p.at++
		return nil
	}
	if c != 'u' {
		return errors.New("a string has an invalid escape")
	}
	unit, ok := p.unit(p.at + 1)
	if !ok {
		return errors.New("\\u needs four hexadecimal digits")
	}
	p.at += 5
	p.character(out, unit)
	return nil
}

// character writes the character of an escaped unit of UTF-16, or of two that are a pair.
func (p *parser) character(out *strings.Builder, unit rune) {
	if isHigh(unit) && strings.HasPrefix(p.text[p.at:], `\u`) {
		if low, ok := p.unit(p.at + 2); ok && isLow(low) {
			p.at += 6
			out.WriteRune((unit-0xD800)<<10 + (low - 0xDC00) + 0x10000)
			return
		}
	}
	if isHigh(unit) || isLow(unit) {
		out.Write([]byte{0xED, byte(0x80 | unit>>6&0x3F), byte(0x80 | unit&0x3F)})
		return
	}
	out.WriteRune(unit)
}

// unit reads four hexadecimal digits.
func (p *parser) unit(at int) (rune, bool) {
	if at+4 > len(p.text) {
		return 0, false
	}
	unit := rune(0)
	for _, c := range []byte(p.text[at : at+4]) {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 || c < '0' {
			return 0, false
		}
		unit = unit<<4 | rune(digit)
	}
	return unit, true
}

func isHigh(unit rune) bool { return unit >= 0xD800 && unit < 0xDC00 }
func isLow(unit rune) bool  { return unit >= 0xDC00 && unit < 0xE000 }

// decode returns the first character of text: a lone surrogate as its number, and a byte that is not UTF-8 as U+FFFD.
func decode(text string) (r rune, size int) {
	if len(text) >= 3 && text[0] == 0xED && text[1] >= 0xA0 && text[1] < 0xC0 && text[2]&0xC0 == 0x80 {
		return 0xD000 | rune(text[1]&0x3F)<<6 | rune(text[2]&0x3F), 3
	}
	return utf8.DecodeRuneInString(text)
}
