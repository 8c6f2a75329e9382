// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"hash/fnv"
	"slices"
	"strings"
)

const (
	// longestAnswer bounds the text that is compared by its meaning.
	longestAnswer = 4000
	// longestExpression bounds the tokens that are read as an expression.
	longestExpression = 2000
)

// Equal reports whether two answers are equal: they are the same text without styles and spaces, or they have the
// same value. The result does not depend on the order of the answers.
//
// The elements of a tuple or an interval have to be in the same order, and the elements of a set or a list do not.
// Decimals are exact: 0.333 is not 1/3.
func Equal(a, b string) bool {
	same, _ := equalIn(a, b)
	return same
}

// equalIn is like Equal, and also returns the number of steps of the comparison.
func equalIn(a, b string) (same bool, steps int) {
	a, b = contentOf(a), contentOf(b)
	if len(a) > longestAnswer || len(b) > longestAnswer || a == "" || b == "" {
		return a == b, 0
	}
	if b < a { // The order must not matter.
		a, b = b, a
	}
	left, right := tokenize(a), tokenize(b)
	textA, textB := canonical(left), canonical(right)
	switch {
	case textA == textB || sameWords(textA, textB, hasText(left) || hasText(right)):
		return true, 0
	case isWord(left) && isWord(right) || max(len(left), len(right)) > longestExpression:
		return false, 0
	}
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(textA + "=" + textB))
	c := &comparer{evaluator{seed: seed.Sum64(), known: map[evaluation]*value{}}}
	return c.anyEqual(trees(left), trees(right)), c.steps
}

// contentOf returns the text, or the content of its last box.
func contentOf(text string) string {
	if content, ok := Boxed(text); ok {
		text = content
	}
	text = strings.TrimSpace(text)
	if bold, ok := strings.CutPrefix(text, "**"); ok { // As in Markdown.
		if inner, ok := strings.CutSuffix(bold, "**"); ok {
			return strings.TrimSpace(inner)
		}
	}
	return text
}

// trees returns the ways to read an answer: a comma may separate elements or groups of digits, as in (1,234), and cm
// behind a number may be a unit or a product.
func trees(tokens []token) []*node {
	var all []*node
	read := func(tokens []token) {
		p := &parser{tokens: tokens}
		if n, err := p.parse(); err == nil {
			all = append(all, n)
		}
		if p.sawUnits {
			p := &parser{tokens: tokens, units: true}
			if n, err := p.parse(); err == nil {
				all = append(all, n)
			}
		}
	}
	read(tokens)
	if joined, changed := joinThousands(tokens); changed {
		read(joined)
	}
	return all
}

// sameWords reports whether the texts are the same words, in any case, and perhaps within parentheses. Plain letters
// may be products of variables, whose case matters.
func sameWords(a, b string, styled bool) bool {
	a, b = words(a), words(b)
	if a == "" || b == "" || !strings.EqualFold(a, b) {
		return false
	}
	return a == b || len(a) > 4 || len(a) > 1 && styled || a[1:] == b[1:] && len(a) > 3 || shortWords[strings.ToLower(a)]
}

// hasText reports whether a part of the answer was written as words.
func hasText(tokens []token) bool {
	return slices.ContainsFunc(tokens, func(t token) bool { return t.kind == kindText })
}

// isWord reports whether an answer is a word, and not a product of variables.
func isWord(tokens []token) bool {
	letters := 0
	for _, t := range tokens {
		if t.kind != kindLetter && t.kind != kindText {
			return false
		}
		letters += len(t.text)
	}
	return letters > 3
}

// shortWords are answers that are words and no products.
var shortWords = set("yes no all odd even none true one two six ten zero four five nine red blue")

// words returns the letters of a text of words.
func words(text string) string {
	text = strings.NewReplacer(" ", "", `\`, "", ".", "").Replace(text)
	text = strings.TrimSuffix(strings.TrimPrefix(text, "("), ")")
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return text
}

// comparer compares trees within a number of steps.
type comparer struct{ evaluator }

// anyEqual reports whether any tree of one answer is equal to any tree of the other.
func (c *comparer) anyEqual(left, right []*node) bool {
	return slices.ContainsFunc(left, func(x *node) bool {
		return slices.ContainsFunc(right, func(y *node) bool { return c.equal(x, y) })
	})
}

// equal reports whether any meaning of one tree is a meaning of the other.
func (c *comparer) equal(x, y *node) bool {
	switch {
	case !c.spend(1):
		return false
	case x.equal(y) || x.op == opRelation && y.op == opRelation && c.equalRelations(x, y):
		return true
	case isInequality(x) && isInequality(y): // As intervals they would lose the names.
		return false
	}
	meanings := c.meanings(y)
	return slices.ContainsFunc(c.meanings(x), func(p *node) bool {
		return slices.ContainsFunc(meanings, func(q *node) bool { return c.same(p, q) })
	})
}

// same compares two trees of one meaning each.
func (c *comparer) same(x, y *node) bool {
	switch {
	case (x.op == opUnit || y.op == opUnit) && (!x.isScalar() || !y.isScalar()):
		return agree(x.unitsOf(), y.unitsOf()) && c.same(x.withoutUnit(), y.withoutUnit())
	case isCollection(x) || isCollection(y):
		return c.sameElements(elements(x), elements(y))
	case x.op < opTuple && y.op < opTuple:
		return c.sameScalars(x, y)
	case x.op != y.op:
		return false
	}
	switch x.op {
	case opUnion, opIntersection:
		return c.sameElements(operands(x, x.op), operands(y, y.op))
	case opRelation:
		return false // They are compared before.
	default: // Tuples, differences, ratios, and the rows of a matrix.
		return x.name == y.name && slices.EqualFunc(x.kids, y.kids, c.equalInOrder)
	}
}

// equalInOrder compares parts: elements of a tuple, or rows of a matrix, which are lists whose order counts.
func (c *comparer) equalInOrder(x, y *node) bool {
	if x.op == opRow && y.op == opRow {
		return slices.EqualFunc(x.kids, y.kids, c.equal)
	}
	return c.equal(x, y)
}

// sameScalars compares expressions, or words.
func (c *comparer) sameScalars(x, y *node) bool {
	if x.op == opText && y.op == opText {
		return strings.EqualFold(words(x.name), words(y.name)) && words(x.name) != ""
	}
	return x.isScalar() && y.isScalar() && agree(x.unitsOf(), y.unitsOf()) && c.sameValues(x, y)
}

// withoutUnit returns the quantity before a unit.
func (n *node) withoutUnit() *node {
	if n.op == opUnit {
		return n.kids[0]
	}
	return n
}

func isCollection(n *node) bool { return n.op == opSet || n.op == opList }

// elements returns the elements of a set or a list. Anything else is its only element.
func elements(n *node) []*node {
	if isCollection(n) {
		return n.kids
	}
	return []*node{n}
}

// operands returns the operands of a union or intersection.
func operands(n *node, op operator) []*node {
	if n.op != op {
		return []*node{n}
	}
	return append(operands(n.kids[0], op), operands(n.kids[1], op)...)
}

// mostElements bounds the comparison of sets, which is quadratic.
const mostElements = 64

// sameElements reports whether the elements are equal in some order.
func (c *comparer) sameElements(a, b []*node) bool {
	if len(a) != len(b) || len(a) > mostElements {
		return false
	}
	rest := slices.Clone(b)
	for _, element := range a {
		at := slices.IndexFunc(rest, func(other *node) bool { return c.equal(element, other) })
		if at < 0 {
			return false
		}
		rest = slices.Delete(rest, at, at+1)
	}
	return true
}

const (
	// points is the number of values that variables get. Expressions must have a value at enough of them.
	points         = 16
	positivePoints = 6
	negativePoints = 3
	wholePoints    = 24
	enoughPoints   = 4
	// coarsePrecision decides that values differ, and finePrecision that constants do not.
	coarsePrecision = 512
	finePrecision   = 4096
	// largestError bounds the error of values that are called equal.
	largestError = -64
)

// places returns the places at which expressions are compared.
func places(trees ...*node) []place {
	variables, whole := false, false
	for _, n := range trees {
		variables = variables || n.hasVariables()
		whole = whole || n.contains(func(n *node) bool {
			isWhole := n.op == opFactorial || n.op == opDoubleFactorial || n.op == opFunction && n.name == "binom"
			return isWhole && n.hasVariables()
		})
	}
	count := points
	switch {
	case !variables:
		return []place{{precision: coarsePrecision, constant: true}}
	case whole:
		count = wholePoints
	}
	all := make([]place, count)
	for i := range all {
		all[i] = place{point: uint64(i), whole: whole, precision: coarsePrecision}
	}
	return all
}

// sameValues compares values at some points. Constants have one point. Points where a value is not real are left out
// if there are enough other points, since the expressions may be on different branches there, such as ln x + ln y and
// ln xy. They are not left out if an expression contains i, or an absolute value, which says that all points count.
func (c *comparer) sameValues(x, y *node) bool {
	if x.contains(isInfinity) || y.contains(isInfinity) {
		return false // It has no value.
	}
	at := places(x, y)
	everywhere := len(at) == 1 || x.contains(needsAllPoints) || y.contains(needsAllPoints)
	var compared, others []place
	for _, place := range at {
		p, q := c.valueOf(x, place), c.valueOf(y, place)
		switch {
		case p == nil || q == nil:
		case everywhere || isReal(p) && isReal(q):
			compared = append(compared, place)
		default:
			others = append(others, place)
		}
	}
	if len(compared) < min(enoughPoints, len(at)) {
		compared = append(compared, others...)
	}
	return len(compared) >= min(enoughPoints, len(at)) &&
		!slices.ContainsFunc(compared, func(place place) bool { return !c.near(x, y, place) })
}

func isInfinity(n *node) bool { return n.op == opVariable && n.name == infinity }

func needsAllPoints(n *node) bool {
	return n.op == opConstant && n.name == "i" || n.op == opFunction && n.name == "abs"
}

func isReal(v *value) bool { return v.exact != nil || v.ball.real }

// near reports whether two values at a place are the same. Values that are not exact are the same if they cannot be
// told apart at a precision with a small error, however large their terms are.
func (c *comparer) near(x, y *node, at place) bool {
	for _, precision := range []uint{coarsePrecision, finePrecision} {
		at.precision = precision
		p, q := c.valueOf(x, at), c.valueOf(y, at)
		if p == nil || q == nil {
			return false
		}
		if p.exact != nil && q.exact != nil {
			return p.exact.Cmp(q.exact) == 0
		}
		a := arithmetic{precision}
		difference := a.subtract(a.of(p), a.of(q))
		if difference.magnitude() > difference.err+2 {
			return false
		}
		last := precision == finePrecision || len(places(x, y)) > 1
		if last && difference.err <= largestError {
			return true
		}
	}
	return false
}
