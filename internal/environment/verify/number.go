// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of the numbers that a schema is compared with. The library makes an exact fraction of each number: a long
// number takes seconds, and an exponent beyond a million has no fraction.
const (
	longestNumber   = 1000
	largestExponent = 1000
)

// immoderate describes a number beyond the bounds.
var immoderate = fmt.Sprintf("a number with more than %d characters or with an exponent beyond %d", longestNumber,
	largestExponent)

// moderate reports whether all numbers of a JSON value, which are json.Number, are within the bounds.
func moderate(value any) bool {
	switch v := value.(type) {
	case json.Number:
		return isModerate(v.String())
	case []any:
		for _, element := range v {
			if !moderate(element) {
				return false
			}
		}
	case map[string]any:
		for _, element := range v {
			if !moderate(element) {
				return false
			}
		}
	}
	return true
}

func isModerate(number string) bool {
	if len(number) > longestNumber {
		return false
	}
	at := strings.IndexAny(number, "eE")
	if at < 0 {
		return true
	}
	exponent, err := strconv.Atoi(number[at+1:])
	return err == nil && exponent >= -largestExponent && exponent <= largestExponent
}
