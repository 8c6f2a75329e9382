// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var number = regexp.MustCompile(`[0-9][0-9,]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+`)

// numbersIn returns the numbers of a text as they are written, without commas. Commas separate thousands if they are
// where they should be, and numbers otherwise. A minus is a sign unless a letter, digit or closing bracket is before
// it.
func numbersIn(text string) []string {
	var found []string
	for _, at := range number.FindAllStringIndex(text, -1) {
		sign := ""
		if isSign(text[:at[0]]) {
			sign = "-"
		}
		for _, written := range splitThousands(text[at[0]:at[1]]) {
			found = append(found, sign+written)
			sign = ""
		}
	}
	return found
}

// isSign reports whether the text ends with a minus that is the sign of the number behind it.
func isSign(before string) bool {
	rest, ok := strings.CutSuffix(before, "-")
	if !ok {
		if rest, ok = strings.CutSuffix(before, "−"); !ok {
			return false
		}
	}
	last, _ := utf8.DecodeLastRuneInString(rest)
	isOperand := last >= '0' && last <= '9' || last >= 'a' && last <= 'z' || last >= 'A' && last <= 'Z' || last == ')'
	return !isOperand
}

var grouped = regexp.MustCompile(`^[0-9]{1,3}(?:,[0-9]{3})+(?:\.|[eE]|$)`)

// splitThousands returns the number without its commas, or the numbers that its commas separate.
func splitThousands(written string) []string {
	written = strings.TrimRight(written, ",")
	if !strings.Contains(written, ",") || grouped.MatchString(written) {
		return []string{strings.ReplaceAll(written, ",", "")}
	}
	return strings.FieldsFunc(written, func(r rune) bool { return r == ',' })
}

// lastNumber returns the last number of a text, or NaN if the text has no number.
func lastNumber(text string) float64 {
	written, _ := last(numbersIn(text))
	return parseFloat(written)
}

// parseFloat parses a number that numbersIn found; for an empty text it returns NaN. A number that is too large is
// infinite.
func parseFloat(written string) float64 {
	value, err := strconv.ParseFloat(written, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return math.NaN()
	}
	return value
}

// longestExact bounds the digits of numbers that are compared exactly.
const longestExact = 200

// equalNumbers compares numbers that numbersIn found: exactly, unless they are very long or have an exponent.
func equalNumbers(a, b string) bool {
	if len(a) <= longestExact && len(b) <= longestExact && !strings.ContainsAny(a+b, "eE") {
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		return okX && okY && x.Cmp(y) == 0
	}
	return parseFloat(a) == parseFloat(b)
}

// lastLine returns the last line that is not blank.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// lastTag returns the trimmed content of the last <name>...</name>, whose name may be written in capitals.
func lastTag(text, name string) (content string, ok bool) {
	lower := asciiLower(text)
	begin, end := "<"+asciiLower(name)+">", "</"+asciiLower(name)+">"
	last := strings.LastIndex(lower, end)
	if last < 0 {
		return "", false
	}
	first := strings.LastIndex(lower[:last], begin)
	if first < 0 {
		return "", false
	}
	return strings.TrimSpace(text[first+len(begin) : last]), true
}

// asciiLower lowers ASCII letters. It keeps the positions of all bytes, unlike strings.ToLower.
func asciiLower(text string) string {
	lower := []byte(text)
	for i, b := range lower {
		if b >= 'A' && b <= 'Z' {
			lower[i] = b + 'a' - 'A'
		}
	}
	return string(lower)
}

var fence = regexp.MustCompile("(?s)```[a-zA-Z]*[ \t]*\r?\n(.*?)```")

// deepestJSON bounds the nesting of values.
const deepestJSON = 100

// findJSON returns the JSON value of the text, or else of its last fenced block. Numbers are json.Number.
func findJSON(text string) (value any, ok bool) {
	if value, err := decodeJSON(text); err == nil {
		return value, true
	}
	block, ok := last(fence.FindAllStringSubmatch(text, -1))
	if !ok {
		return nil, false
	}
	value, err := decodeJSON(block[1])
	return value, err == nil
}

func decodeJSON(text string) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	if !shallow(value, deepestJSON) {
		return nil, errors.New("the value is nested too deeply")
	}
	return value, nil
}

// shallow reports whether the value has at most the given number of levels.
func shallow(value any, levels int) bool {
	if levels == 0 {
		return false
	}
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			if !shallow(element, levels-1) {
				return false
			}
		}
	case map[string]any:
		for _, element := range v {
			if !shallow(element, levels-1) {
				return false
			}
		}
	}
	return true
}
