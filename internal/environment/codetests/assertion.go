// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package codetests

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// errAssertion says which assertions can be tests.
var errAssertion = errors.New("an assertion must be of the form assert CALL == LITERAL, since what it expects stays " +
	"outside the sandbox")

// assertions reads the assertions of a text in Python: lines that begin with assert, perhaps within def
// check(candidate). Any other statement is an error.
func assertions(text, function string) ([]test, error) {
	var tests []test
	statement := ""
	for number, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if statement == "" && (trimmed == "" || strings.HasPrefix(trimmed, "#") ||
			strings.HasPrefix(trimmed, "def check(candidate)") || strings.HasPrefix(trimmed, "check(")) {
			continue
		}
		statement += line + "\n"
		if depth(statement) > 0 {
			continue
		}
		made, err := assertion(strings.TrimSpace(statement), function)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number+1, err)
		}
		tests, statement = append(tests, made), ""
	}
	if statement != "" || len(tests) == 0 {
		return nil, errAssertion
	}
	return tests, nil
}

// assertion reads one assertion. The name candidate stands for the function of the row.
func assertion(text, function string) (test, error) {
	rest, ok := strings.CutPrefix(text, "assert")
	if !ok || rest == "" || !strings.ContainsAny(rest[:1], " \t(") {
		return test{}, fmt.Errorf("%w: got %.80q", errAssertion, text)
	}
	rest = unwrap(strings.TrimSpace(rest))
	at, end := -1, len(rest)
	for i, level := range levels(rest) {
		switch {
		case level != 0:
		case at < 0 && strings.HasPrefix(rest[i:], "=="):
			at = i
		case at >= 0 && rest[i] == ',':
			end = min(end, i)
		}
	}
	if at < 0 {
		return test{}, fmt.Errorf("%w: got %.80q", errAssertion, text)
	}
	want, err := parseLiteral(rest[at+2 : end])
	if err != nil {
		return test{}, fmt.Errorf("%w: got %.80q: %w", errAssertion, text, err)
	}
	call := strings.TrimSpace(rest[:at])
	if function != "" {
		call = "(lambda candidate: " + call + ")(" + function + ")"
	}
	return test{kind: kindAssertion, expression: call, expected: want}, nil
}

// unwrap removes parentheses around a whole expression.
func unwrap(text string) string {
	if !strings.HasPrefix(text, "(") {
		return text
	}
	if at := levels(text); slices.Index(at[1:], 0) != len(text)-2 { // the first parenthesis ends before the text does
		return text
	}
	return strings.TrimSpace(text[1 : len(text)-1])
}

// depth returns how many brackets of a text are open at its end.
func depth(text string) int { return levels(text + " ")[len(text)] }

// inString is the level of a byte within a string.
const inString = -1

// levels returns, for each byte of a text, the number of brackets that are open before it, or after it if it is a
// closing bracket. Bytes of strings have the level inString.
func levels(text string) []int {
	all := make([]int, len(text))
	open := 0
	for i := 0; i < len(text); i++ {
		all[i] = open
		switch text[i] {
		case '\'', '"':
			for end := endOfString(text, i); i < end; i++ {
				all[i] = inString
			}
			if i < len(text) {
				all[i] = inString
			}
		case '(', '[', '{':
			open++
		case ')', ']', '}':
			open = max(0, open-1)
			all[i] = open
		}
	}
	return all
}

// endOfString returns the index of the quotation mark that ends a string.
func endOfString(text string, begin int) int {
	quote := text[begin : begin+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text[begin:], triple) {
		quote = triple
	}
	for i := begin + len(quote); i < len(text); i++ {
		if text[i] == '\\' {
			i++
		} else if strings.HasPrefix(text[i:], quote) {
			return i + len(quote) - 1
		}
	}
	return len(text)
}
