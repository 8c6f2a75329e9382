// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package codetests

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

var errLiteral = errors.New("reading a literal: it is none that can be compared here")

// parseLiteral reads a literal of Python: numbers, texts, lists, tuples, sets, dicts, True, False and None.
func parseLiteral(text string) (any, error) {
	p := &literal{text: text}
	value, err := p.tupleUntil("")
	if err != nil {
		return nil, err
	}
	if p.space(); p.text != "" {
		return nil, fmt.Errorf("%w: %.40q", errLiteral, p.text)
	}
	return value, nil
}

// literal is a parser. It removes the parts of the text that it has read.
type literal struct {
	text  string
	depth int
}

// maxDepth bounds the nesting of a literal.
const maxDepth = 64

func (p *literal) space() { p.text = strings.TrimLeft(p.text, " \t\r\n") }

func (p *literal) take(token string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.text, token)
	if ok {
		p.text = rest
	}
	return ok
}

// items reads values, or pairs of key and value, that commas separate, up to and including the end. It reports
// whether there was a comma.
func (p *literal) items(end string, pairs bool) (values []any, comma bool, err error) {
	if p.depth++; p.depth > maxDepth {
		return nil, false, errLiteral
	}
	defer func() { p.depth-- }()
	for !p.ends(end) {
		value, err := p.value()
		if err != nil {
			return nil, false, err
		}
		if pairs {
			if !p.take(":") {
				return nil, false, errLiteral
			}
			item, err := p.value()
			if err != nil {
				return nil, false, err
			}
			value = [2]any{value, item}
		}
		values = append(values, value)
		if !p.take(",") {
			if !p.ends(end) {
				return nil, false, errLiteral
			}
			return values, comma, nil
		}
		comma = true
	}
	return values, comma, nil
}

func (p *literal) ends(end string) bool {
	if end == "" {
		p.space()
		return p.text == ""
	}
	return p.take(end)
}

// tupleUntil reads a value, or a tuple if there is a comma.
func (p *literal) tupleUntil(end string) (any, error) {
	values, comma, err := p.items(end, false)
	switch {
	case err != nil:
		return nil, err
	case len(values) == 1 && !comma:
		return values[0], nil
	case len(values) == 0 && end == "":
		return nil, errLiteral
	default:
		return tuple(values), nil
	}
}

func (p *literal) value() (any, error) {
	p.space()
	switch {
	case p.take("("):
		return p.tupleUntil(")")
	case p.take("["):
		values, _, err := p.items("]", false)
		return list(values), err
	case p.take("set()"):
		return set(nil), nil
	case p.take("{"):
		return p.braces()
	case p.take("True"):
		return true, nil
	case p.take("False"):
		return false, nil
	case p.take("None"):
		return nil, nil
	case p.text != "" && (p.text[0] == '\'' || p.text[0] == '"'):
		return p.strings()
	}
	return p.number()
}

func (p *literal) braces() (any, error) {
	if p.take("}") {
		return dict{}, nil
	}
	before := *p
	if values, _, err := p.items("}", true); err == nil {
		pairs := make(dict, len(values))
		for i, value := range values {
			pairs[i], _ = value.([2]any)
		}
		return pairs, nil
	}
	*p = before
	values, _, err := p.items("}", false)
	return set(values), err
}

func (p *literal) number() (any, error) {
	const characters = "0123456789abcdefxoABCDEFXO._+-"
	end := strings.IndexFunc(p.text, func(r rune) bool { return !strings.ContainsRune(characters, r) })
	if end < 0 {
		end = len(p.text)
	}
	text := p.text[:end]
	digits := strings.TrimLeft(text, "+-")
	if digits == "" || len(text)-len(digits) > 1 || digits[0] != '.' && (digits[0] < '0' || digits[0] > '9') {
		return nil, fmt.Errorf("%w: %.40q", errLiteral, p.text)
	}
	p.text = p.text[end:]
	if whole, ok := new(big.Int).SetString(text, 0); ok {
		return whole, nil
	}
	return parseFloat(text)
}

// strings reads a text, or several that follow each other.
func (p *literal) strings() (any, error) {
	var all strings.Builder
	for p.text != "" && (p.text[0] == '\'' || p.text[0] == '"') {
		quote := p.text[:1]
		if triple := strings.Repeat(quote, 3); strings.HasPrefix(p.text, triple) {
			quote = triple
		}
		rest := p.text[len(quote):]
		for !strings.HasPrefix(rest, quote) {
			if rest == "" || rest[0] == '\n' && len(quote) == 1 {
				return nil, errLiteral
			}
			var err error
			if rest, err = unescape(rest, &all); err != nil {
				return nil, err
			}
		}
		p.text = rest[len(quote):]
		p.space()
	}
	return all.String(), nil
}

// unescape reads one character of a text.
func unescape(text string, into *strings.Builder) (rest string, err error) {
	if text[0] != '\\' {
		_, size := utf8.DecodeRuneInString(text)
		into.WriteString(text[:size])
		return text[size:], nil
	}
	if strings.HasPrefix(text, "\\\n") {
		return text[2:], nil
	}
	if len(text) > 1 && strings.ContainsRune("N01234567", rune(text[1])) && !strings.HasPrefix(text, `\0`) {
		return "", errLiteral
	}
	if strings.HasPrefix(text, `\0`) {
		into.WriteByte(0)
		return text[2:], nil
	}
	r, _, tail, err := strconv.UnquoteChar(text, 0)
	if err != nil {
		switch {
		case len(text) > 1 && (text[1] == '\'' || text[1] == '"'):
			into.WriteByte(text[1])
			return text[2:], nil
		case len(text) > 1:
			into.WriteByte('\\') // an escape that Python does not know stays
			return text[1:], nil
		}
		return "", errLiteral
	}
	into.WriteRune(r)
	return tail, nil
}
