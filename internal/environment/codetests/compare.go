// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package codetests

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// sameOutput reports whether a program has written the output that a test expects. It follows the public graders: white
// space at the ends of the text and of its lines does not count, nor do empty lines; lines that are one number each are
// compared as numbers, unless all are whole.
func sameOutput(got, want string) bool {
	lines := splitLines(got)
	stripped := make([]string, len(lines))
	for i, line := range lines {
		stripped[i] = strip(line)
	}
	if expected := strip(want); strip(strings.Join(lines, "\n")) == expected ||
		strip(strings.Join(stripped, "\n")) == expected {
		return true
	}
	expected := strings.Split(want, "\n")
	expected = slices.DeleteFunc(expected, func(line string) bool { return line == "" })
	for i, line := range expected {
		expected[i] = strip(line)
	}
	if slices.Equal(lines, expected) {
		return true
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	return slices.Equal(lines, expected) || sameNumbers(lines, expected)
}

// sameNumbers compares lines of one number each. It returns false if all lines consist of digits, since sameOutput
// has compared these as texts.
func sameNumbers(got, want []string) bool {
	whole := true
	for i := range min(len(got), len(want)) {
		whole = whole && isDigits(got[i]) && isDigits(want[i])
	}
	if whole || len(got) != len(want) {
		return false
	}
	for i := range got {
		a, err1 := parseFloat(got[i])
		b, err2 := parseFloat(want[i])
		if err1 != nil || err2 != nil || !isClose(a, b) {
			return false
		}
	}
	return true
}

// The tolerances of numpy.allclose.
const (
	absolute = 1e-8
	relative = 1e-5
)

func isClose(got, want float64) bool {
	if got == want {
		return true
	}
	if math.IsInf(got, 0) || math.IsInf(want, 0) {
		return false
	}
	return math.Abs(got-want) <= absolute+relative*math.Abs(want)
}

func isDigits(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
}

// pythonFloat matches the texts that float() of Python accepts, except texts with digits beyond ASCII.
var pythonFloat = regexp.MustCompile(`^[+-]?(?i:inf|infinity|nan|(\d+(_\d+)*)?\.?(\d+(_\d+)*)?(e[+-]?\d+(_\d+)*)?)$`)

// parseFloat reads a number as Python does.
func parseFloat(text string) (float64, error) {
	text = strip(text)
	if !pythonFloat.MatchString(text) {
		return 0, strconv.ErrSyntax
	}
	value, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil && math.IsInf(value, 0) { // a number beyond all floats
		return value, nil
	}
	return value, err
}

// strip removes white space at both ends, as str.strip of Python does.
func strip(text string) string { return strings.TrimFunc(text, isSpace) }

func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// splitLines splits where str.splitlines of Python does.
func splitLines(text string) []string {
	var lines []string
	begin := 0
	for i, r := range text {
		if i < begin || !isLineBreak(r) {
			continue
		}
		lines = append(lines, text[begin:i])
		begin = i + len(string(r))
		if r == '\r' && strings.HasPrefix(text[begin:], "\n") {
			begin++
		}
	}
	if begin < len(text) {
		lines = append(lines, text[begin:])
	}
	return lines
}

func isLineBreak(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}
