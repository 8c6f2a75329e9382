// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package codetests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
)

// A value of Python is nil, a bool, a string, a *big.Int, a float64, or one of these.
type (
	list  []any
	tuple []any
	set   []any
	dict  [][2]any
	// other is an object of a class, which is equal to no value. It has the name of the object's type.
	other string
	// octets are bytes, in hexadecimal digits.
	octets string
)

var errNoValue = errors.New("reading a value: it is none of Python")

// decodeValue reads a value that the driver has written.
func decodeValue(text string) (any, error) {
	raw, err := decodeJSON(text)
	if err != nil {
		return nil, err
	}
	return valueOf(raw)
}

func decodeJSON(text string) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var raw any
	if err := decoder.Decode(&raw); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, errors.New("reading JSON: there is more than one value")
	}
	return raw, nil
}

func valueOf(raw any) (any, error) {
	switch v := raw.(type) {
	case nil, bool, string:
		return v, nil
	case json.Number:
		return number(v.String())
	case map[string]any:
		for kind, content := range v {
			return tagged(kind, content)
		}
	}
	return nil, errNoValue
}

func number(text string) (any, error) {
	if !strings.ContainsAny(text, ".eE") {
		if whole, ok := new(big.Int).SetString(text, 10); ok {
			return whole, nil
		}
	}
	return parseFloat(text)
}

func tagged(kind string, content any) (any, error) {
	text, _ := content.(string)
	switch kind {
	case "f":
		return parseFloat(text)
	case "o":
		return other(text), nil
	case "b":
		return octets(text), nil
	}
	items, _ := content.([]any)
	values := make([]any, len(items))
	for i, item := range items {
		var err error
		if pair, ok := item.([]any); kind == "d" && ok && len(pair) == 2 {
			var two [2]any
			var err1, err2 error
			two[0], err1 = valueOf(pair[0])
			two[1], err2 = valueOf(pair[1])
			values[i], err = two, errors.Join(err1, err2)
		} else {
			values[i], err = valueOf(item)
		}
		if err != nil {
			return nil, err
		}
	}
	switch kind {
	case "l":
		return list(values), nil
	case "t":
		return tuple(values), nil
	case "s":
		return set(values), nil
	case "d":
		pairs := make(dict, 0, len(values))
		for _, value := range values {
			if pair, ok := value.([2]any); ok {
				pairs = append(pairs, pair)
			}
		}
		return pairs, nil
	}
	return nil, errNoValue
}

// ofJSON returns the value that json.loads of Python makes of JSON.
func ofJSON(text string) (any, error) {
	raw, err := decodeJSON(text)
	if err != nil {
		return nil, fmt.Errorf("reading %.80q as JSON: %w", text, err)
	}
	return plainValue(raw)
}

func plainValue(raw any) (any, error) {
	var err error
	switch v := raw.(type) {
	case []any:
		values := make(list, len(v))
		for i, item := range v {
			if values[i], err = plainValue(item); err != nil {
				return nil, err
			}
		}
		return values, nil
	case map[string]any:
		var pairs dict
		for key, item := range v {
			pair := [2]any{key}
			if pair[1], err = plainValue(item); err != nil {
				return nil, err
			}
			pairs = append(pairs, pair)
		}
		return pairs, nil
	default:
		return valueOf(raw)
	}
}

// equal reports whether two values are equal in Python.
func equal(a, b any) bool {
	if x, ok := numeric(a); ok {
		y, ok := numeric(b)
		return ok && sameNumber(x, y)
	}
	switch x := a.(type) {
	case nil, string, octets:
		return a == b
	case list:
		y, ok := b.(list)
		return ok && slices.EqualFunc(x, y, equal)
	case tuple:
		y, ok := b.(tuple)
		return ok && slices.EqualFunc(x, y, equal)
	case set:
		y, ok := b.(set)
		return ok && sameItems(x, y, equal)
	case dict:
		y, ok := b.(dict)
		return ok && sameItems(x, y, func(a, b [2]any) bool { return equal(a[0], b[0]) && equal(a[1], b[1]) })
	}
	return false
}

// sameItems reports whether two collections without duplicates have equal items, in any order.
func sameItems[T any](x, y []T, equal func(a, b T) bool) bool {
	return len(x) == len(y) && !slices.ContainsFunc(x, func(item T) bool {
		return !slices.ContainsFunc(y, func(other T) bool { return equal(item, other) })
	})
}

// numeric returns a number, or a bool as one.
func numeric(v any) (any, bool) {
	switch x := v.(type) {
	case bool:
		if x {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	case *big.Int, float64:
		return x, true
	}
	return nil, false
}

func sameNumber(a, b any) bool {
	x, xWhole := a.(*big.Int)
	y, yWhole := b.(*big.Int)
	if xWhole && yWhole {
		return x.Cmp(y) == 0
	}
	if !xWhole && !yWhole {
		return a.(float64) == b.(float64)
	}
	whole, float := x, b
	if yWhole {
		whole, float = y, a
	}
	f, _ := float.(float64)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return false
	}
	return new(big.Float).SetInt(whole).Cmp(big.NewFloat(f)) == 0
}

// sameReturn reports whether a call has returned the value that a test expects, by the rules of the public graders: a
// tuple is a list, the expected value may be the only element of a list, and a key of JSON that is a whole number
// equals that number.
func sameReturn(got, want any) bool {
	if !isJSON(got) {
		return false
	}
	got, want = lists(got), lists(want)
	if equal(got, want) {
		return true
	}
	only, ok := want.(list)
	return ok && len(only) == 1 && equal(got, only[0])
}

// isJSON reports whether json.dumps of Python accepts a value.
func isJSON(v any) bool {
	switch x := v.(type) {
	case nil, bool, string, *big.Int, float64:
		return true
	case list:
		return !slices.ContainsFunc(x, func(item any) bool { return !isJSON(item) })
	case tuple:
		return !slices.ContainsFunc(x, func(item any) bool { return !isJSON(item) })
	case dict:
		return !slices.ContainsFunc(x, func(pair [2]any) bool { return !isKey(pair[0]) || !isJSON(pair[1]) })
	}
	return false
}

func isKey(v any) bool {
	switch v.(type) {
	case nil, bool, string, *big.Int, float64:
		return true
	}
	return false
}

// lists returns a value in which tuples are lists, and keys that are whole numbers are texts.
func lists(v any) any {
	switch x := v.(type) {
	case tuple:
		return lists(list(x))
	case list:
		made := make(list, len(x))
		for i, item := range x {
			made[i] = lists(item)
		}
		return made
	case dict:
		made := make(dict, len(x))
		for i, pair := range x {
			key := pair[0]
			if whole, ok := key.(*big.Int); ok {
				key = whole.String()
			}
			made[i] = [2]any{key, lists(pair[1])}
		}
		return made
	}
	return v
}
