// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokencount

import (
	"encoding/json"
	"strconv"
	"strings"
)

// The names that count, in any case of their letters: some programs ignore the case.
const (
	nameTokens   = "tokens"
	nameExpected = "expected_tokens"
	nameCached   = "prompt_cache_hit_tokens"
)

// jsonScan reads JSON that comes in pieces: the elements of lists named tokens, and the numbers of the other names. It
// relies on others to refuse text that is not JSON.
type jsonScan struct {
	text, expected, cached int64
	// within are the containers that are open, { or [, with the name of each.
	within []container
	// name is the name of the value that comes next, and key says that the next string is a name.
	name string
	key  bool
	// word is the string or number that is being read.
	word     []byte
	inString bool
	escaped  bool
	inNumber bool
}

type container struct {
	list bool
	name string
}

// longestWord limits the kept part of a string or number.
const longestWord = 128

// Write reads a piece.
func (s *jsonScan) Write(p []byte) (int, error) {
	for at := 0; at < len(p); at++ {
		c := p[at]
		switch {
		case s.inString:
			s.readString(c)
		case isDigit(c) && !s.inNumber && s.inList():
			if end := s.integers(p, at); end > at {
				at = end - 1
				continue
			}
			fallthrough
		case c == '-' || isDigit(c) || s.inNumber && (c == '.' || c == 'e' || c == 'E' || c == '+'):
			s.inNumber = true
			s.keep(c)
		default:
			s.endNumber()
			s.readMark(c)
		}
	}
	return len(p), nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (s *jsonScan) inList() bool { return len(s.within) > 0 && s.within[len(s.within)-1].list }

// integers counts the integers of a list that begin at a place of p, each with its comma, as far as p has them, and
// returns the place after them: most of a prompt are such integers.
func (s *jsonScan) integers(p []byte, at int) int {
	count := int64(0)
	for end := at; ; count++ {
		for end < len(p) && isDigit(p[end]) {
			end++
		}
		if end == at || end == len(p) || p[end] != ',' {
			break
		}
		end++
		if end < len(p) && p[end] == ' ' {
			end++
		}
		at = end
	}
	if s.within[len(s.within)-1].name == nameTokens {
		s.text += count
	}
	return at
}

func (s *jsonScan) keep(c byte) {
	if len(s.word) < longestWord {
		s.word = append(s.word, c)
	}
}

func (s *jsonScan) readString(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.inString = false
		if s.key {
			s.name, s.key = nameOf(s.word), false
		}
		s.word = s.word[:0]
		return
	}
	if s.key {
		s.keep(c)
	}
}

// nameOf returns the lower-case form of a name that was read with its escapes.
func nameOf(word []byte) string {
	if string(word) == nameTokens {
		return nameTokens // without allocation
	}
	var name string
	if json.Unmarshal([]byte(`"`+string(word)+`"`), &name) != nil {
		return ""
	}
	return strings.ToLower(name)
}

func (s *jsonScan) endNumber() {
	if !s.inNumber {
		return
	}
	s.inNumber = false
	list := s.inList()
	switch {
	case list && s.within[len(s.within)-1].name == nameTokens:
		s.text++
	case list:
	case s.name == nameExpected:
		s.expected += numberOf(s.word)
	case s.name == nameCached:
		s.cached = numberOf(s.word)
	}
	s.word = s.word[:0]
}

func numberOf(word []byte) int64 {
	n, err := strconv.ParseFloat(string(word), 64)
	if err != nil || n < 0 || n > 1<<31 {
		return 0
	}
	return int64(n)
}

func (s *jsonScan) readMark(c byte) {
	switch c {
	case '"':
		s.inString = true
	case '{', '[':
		s.within = append(s.within, container{list: c == '[', name: s.name})
		s.name, s.key = "", c == '{'
		if c == '[' && len(s.within) > 1 && s.within[len(s.within)-2].list {
			s.within[len(s.within)-1].name = s.within[len(s.within)-2].name // a list of lists
		}
	case '}', ']':
		if len(s.within) > 0 {
			s.within = s.within[:len(s.within)-1]
		}
		s.key = false
	case ',':
		s.name, s.key = "", len(s.within) > 0 && !s.inList()
	}
}
