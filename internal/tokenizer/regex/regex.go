// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package regex matches the regular expressions of tokenizer files as the reference does, whose engine is Oniguruma
// with the tables of Unicode 16. Go's regexp neither looks ahead nor prefers alternatives in their order, and the
// backtracking engines for Go have another syntax, other tables, and no bound other than a time limit.
//
// Patterns and texts may be hostile. A pattern is limited in size. The time of a search is linear in the length of the
// text: a search that backtracks too often is repeated with a memory of the states that have failed (package
// documentation of memory). Therefore there is no time limit, and no search fails. Expressions for which this does not
// hold, such as references to groups, are refused by name, as are expressions that are not known to mean the same here
// as in the reference:
//
//   - references to groups, \K, \G, \X, absent groups, conditions, and blocks such as \p{InCyrillic};
//   - look-behind whose length varies within an alternative;
//   - an endless repetition of a group that may match nothing;
//   - characters that equal several others when case is ignored, such as (?i:ss), which also matches ß.
package regex

import (
	"fmt"
	"unicode/utf8"
)

// Limits of a pattern. The longest known one has 500 bytes and 40 choices.
const (
	maxPattern = 16 << 10
	maxDepth   = 50
	// maxRepeats is the largest count of a repetition.
	maxRepeats = 1000
	// maxProgram is the largest number of instructions.
	maxProgram = 20_000
	// maxChoices is the largest number of instructions that may have to try again. Each needs a bit of memory for each
	// byte of a text that makes the pattern backtrack too often.
	maxChoices = 500
	// maxInner is the number of those choices within atomic groups and look-arounds, which need four bytes instead.
	maxInner = 50
)

// Error reports a pattern that cannot be used.
type Error struct {
	Pattern string
	// At is the index in bytes at which the problem was found.
	At int
	// Problem describes the problem, and its correction if known.
	Problem string
}

// Error implements error.
func (e *Error) Error() string {
	const most = 200
	pattern := e.Pattern
	if len(pattern) > most {
		pattern = pattern[:most] + "…"
	}
	return fmt.Sprintf("compiling pattern %q: at byte %d: %s", pattern, e.At, e.Problem)
}

// Regexp is a compiled pattern. It is safe for concurrent use.
type Regexp struct {
	pattern string
	// fast repeats single characters in one instruction. It is used until a search takes too many steps. Then the search
	// continues with steady, which has only choices of two alternatives, and remembers their failures.
	fast, steady *program
}

// Compile compiles a pattern. Its error is an *Error.
func Compile(pattern string) (*Regexp, error) {
	tree, err := parse(pattern)
	if err != nil {
		return nil, err
	}
	r := &Regexp{pattern: pattern}
	if r.fast, err = compile(pattern, tree, true); err != nil {
		return nil, err
	}
	if r.steady, err = compile(pattern, tree, false); err != nil {
		return nil, err
	}
	return r, nil
}

// String returns the pattern.
func (r *Regexp) String() string { return r.pattern }

// Matches calls found with the start and end of each match in a text, from left to right. The text must be valid UTF-8.
// An empty match does not directly follow another match.
func (r *Regexp) Matches(text string, found func(start, end int)) {
	s := newSearch(r, text)
	defer s.release()
	each(s, found)
}

func each(s *search, found func(start, end int)) {
	last := -1
	for from := 0; from <= len(s.text); {
		start, end, ok := s.find(from)
		if !ok {
			return
		}
		if start == end && end == last {
			if from == len(s.text) {
				return
			}
			_, size := utf8.DecodeRuneInString(s.text[from:])
			from += size
			continue
		}
		found(start, end)
		from, last = end, end
	}
}
