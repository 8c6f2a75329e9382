// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/json"
)

// The functions of this file require valid JSON. The decoder checks a request once and then takes it apart level by
// level, without checking each level again, since agents send long conversations in each turn.

// members returns the values of an object by name. If a name occurs more than once, its last value counts.
func members(text []byte) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for i := space(text, 1); text[i] != '}'; {
		end := skipString(text, i)
		name := unquote(text[i:end])
		i = space(text, space(text, end)+1) // After the colon.
		end = skip(text, i)
		all[name] = text[i:end:end]
		i = next(text, end)
	}
	return all
}

// elements returns the items of an array. It returns false if there are more than limit.
func elements(text []byte, limit int) ([]json.RawMessage, bool) {
	var all []json.RawMessage
	for i := space(text, 1); text[i] != ']'; {
		if len(all) == limit {
			return nil, false
		}
		end := skip(text, i)
		all = append(all, text[i:end:end])
		i = next(text, end)
	}
	return all, true
}

// space returns the index of the first character that is not white space.
func space(text []byte, i int) int {
	for text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r' {
		i++
	}
	return i
}

// next returns the index after a comma, if there is one: the index of the next value, or of the end of the array or
// object.
func next(text []byte, i int) int {
	i = space(text, i)
	if text[i] == ',' {
		i = space(text, i+1)
	}
	return i
}

// skip returns the index after a value.
func skip(text []byte, i int) int {
	switch text[i] {
	case '"':
		return skipString(text, i)
	case '{', '[':
		return skipNested(text, i)
	}
	if n := bytes.IndexAny(text[i:], ",]} \t\r\n"); n >= 0 {
		return i + n
	}
	return len(text)
}

// skipNested returns the index after an array or an object.
func skipNested(text []byte, i int) int {
	for depth := 0; ; i++ {
		switch text[i] {
		case '"':
			i = skipString(text, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
}

// skipString returns the index after a string.
func skipString(text []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(text[i:], '"')
		escapes := 0
		for text[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// unquote returns the text of a string.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		panic("decoding a string that was checked: " + err.Error())
	}
	return text
}
