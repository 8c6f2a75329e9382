// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"math/cmplx"
	"slices"
	"strings"
)

// longestAnswer bounds the text that is compared by its meaning.
const longestAnswer = 4000

// Equal reports whether two answers are equal. They are if they are the same text once units, styles and spaces are
// left out, or if they have the same value.
//
// The elements of a tuple, an interval or a list have to be in the same order, and those of a set do not. Decimals are
// exact: 0.333 is not 1/3.
func Equal(a, b string) bool {
	if len(a) > longestAnswer || len(b) > longestAnswer {
		return strings.TrimSpace(a) == strings.TrimSpace(b)
	}
	a, b = normalize(a), normalize(b)
	if a == "" || b == "" {
		return a == b
	}
	// A comma separates elements or groups of digits: both are tried, since (1,234) may be either.
	joinedA, joinedB := joinThousands(a), joinThousands(b)
	return equal(a, b) || equal(joinedA, joinedB) || equal(joinedA, b) || equal(a, joinedB)
}

// equal compares answers that are normalized.
func equal(a, b string) bool {
	if a == b || isWord(a) && isWord(b) && strings.EqualFold(a, b) {
		return true
	}
	left, right := split(a, `\cup`), split(b, `\cup`)
	if len(left) != len(right) {
		return false
	}
	if len(left) > 1 {
		return slices.EqualFunc(left, right, equal)
	}
	x, y := newCollection(a), newCollection(b)
	if len(x.elements) > 1 || len(y.elements) > 1 || x.isSet() || y.isSet() {
		return x.equal(y)
	}
	return equalValues(a, b)
}

// isWord reports whether the text is one of letters alone.
func isWord(text string) bool {
	return len(text) > longestWord && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// collection is a tuple, an interval, a set or a list.
type collection struct {
	// open and close are the brackets. They are empty for a list without any.
	open, close string
	elements    []string
}

var brackets = [][2]string{{`\{`, `\}`}, {"{", "}"}, {"(", ")"}, {"[", "]"}, {"(", "]"}, {"[", ")"}}

// newCollection reads a collection. A text without commas at its top has one element, which is the text itself.
func newCollection(text string) collection {
	if elements := split(text, ","); len(elements) > 1 {
		return collection{elements: elements}
	}
	for _, pair := range brackets {
		inner, begins := strings.CutPrefix(text, pair[0])
		inner, ends := strings.CutSuffix(inner, pair[1])
		if !begins || !ends {
			continue
		}
		elements := split(inner, ",")
		if len(elements) > 1 || pair[0] == `\{` {
			return collection{open: pair[0], close: pair[1], elements: elements}
		}
	}
	return collection{elements: []string{text}}
}

func (c collection) isSet() bool { return strings.HasSuffix(c.open, "{") }

func (c collection) equal(other collection) bool {
	if c.isSet() || other.isSet() {
		unordered := (c.isSet() || c.open == "") && (other.isSet() || other.open == "")
		return unordered && permuted(c.elements, other.elements)
	}
	return c.open == other.open && c.close == other.close && slices.EqualFunc(c.elements, other.elements, equal)
}

// mostElements bounds the comparison of sets, which is quadratic.
const mostElements = 64

// permuted reports whether the elements are equal in some order.
func permuted(a, b []string) bool {
	if len(a) != len(b) || len(a) > mostElements {
		return false
	}
	left := slices.Clone(b)
	for _, element := range a {
		found := slices.IndexFunc(left, func(other string) bool { return equal(element, other) })
		if found < 0 {
			return false
		}
		left = slices.Delete(left, found, found+1)
	}
	return true
}

// split cuts the text at the separators that are outside of brackets. An interval's brackets need not match.
func split(text, separator string) []string {
	var parts []string
	depth, begin := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
		if depth == 0 && strings.HasPrefix(text[i:], separator) {
			parts = append(parts, text[begin:i])
			i += len(separator) - 1
			begin = i + 1
		}
	}
	return append(parts, text[begin:])
}

// equalValues compares two expressions, or two equations.
func equalValues(a, b string) bool {
	left, right := strings.Split(a, "="), strings.Split(b, "=")
	if len(left) != len(right) || len(left) > 2 {
		return false
	}
	x, ok := difference(left)
	if !ok {
		return false
	}
	y, ok := difference(right)
	if !ok {
		return false
	}
	if len(left) == 2 {
		return proportional(x, y)
	}
	if p, ok := x.exact(); ok {
		if q, ok := y.exact(); ok {
			return p.Cmp(q) == 0
		}
	}
	return sameValues(x, y)
}

// difference returns the expression, or what an equation says is 0.
func difference(sides []string) (*node, bool) {
	n, err := parse(sides[0])
	if err != nil {
		return nil, false
	}
	if len(sides) == 1 {
		return n, true
	}
	other, err := parse(sides[1])
	return &node{op: opAdd, kids: []*node{n, {op: opNegate, kids: []*node{other}}}}, err == nil
}

// Expressions are compared at this many points, of which enough must have a value.
const (
	points       = 12
	enoughPoints = 4
	tolerance    = 1e-9
)

// sameValues compares the values at the points. Numbers have one point.
func sameValues(x, y *node) bool {
	if !x.hasVariables() && !y.hasVariables() {
		return near(x.at(0), y.at(0))
	}
	compared := 0
	for point := range uint64(points) {
		p, q := x.at(point), y.at(point)
		if !finite(p) || !finite(q) {
			continue
		}
		if !near(p, q) {
			return false
		}
		compared++
	}
	return compared >= enoughPoints
}

// proportional reports whether one expression is a multiple of the other, so that both are 0 at the same points.
func proportional(x, y *node) bool {
	var ratio complex128
	compared := 0
	for point := range uint64(points) {
		p, q := x.at(point), y.at(point)
		r := p / q
		if !finite(r) || r == 0 {
			continue
		}
		if compared > 0 && !near(r, ratio) {
			return false
		}
		ratio = r
		compared++
	}
	return compared >= enoughPoints
}

func finite(z complex128) bool { return !cmplx.IsNaN(z) && !cmplx.IsInf(z) }

func near(p, q complex128) bool {
	return finite(p) && finite(q) && cmplx.Abs(p-q) <= tolerance*max(1e-300, cmplx.Abs(p), cmplx.Abs(q))
}
