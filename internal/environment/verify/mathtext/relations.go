// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"slices"
	"strings"
)

// reals returns all real numbers as an interval.
func reals() *node {
	return interval("(", apply(opNegate, variable(infinity)), variable(infinity), ")")
}

// infinity is the name of the bound of an interval without an end.
const infinity = `\infty`

func interval(open string, from, to *node, end string) *node {
	return &node{op: opTuple, name: open + " " + end, kids: []*node{from, to}}
}

// meanings returns the possible meanings of an answer: itself, and the value that an equation gives a name, the
// interval of an inequality, the elements of a list, and both values of a plus-minus sign.
func (c *comparer) meanings(n *node) []*node {
	all := []*node{n}
	switch n.op {
	case opRelation:
		if v := c.named(n); v != nil {
			all = append(all, c.meanings(v)...)
			if strings.Contains(n.name, "≈") {
				all = append(all, n.kids[len(n.kids)-1])
			}
		}
		if i := intervalOf(n); i != nil {
			all = append(all, i)
		}
	case opList:
		return c.lists(n)
	case opDifference:
		if u := withoutPoints(n.kids[0], n.kids[1]); u != nil {
			all = append(all, u)
		}
	case opRatio:
		if len(n.kids) == 2 {
			all = append(all, apply(opDivide, n.kids...))
		}
	case opText:
		if allReals[strings.ToLower(words(n.name))] {
			all = append(all, reals())
		}
	default:
		if both := n.bothSigns(); len(both) > 1 {
			if n.op == opSet {
				return []*node{apply(opSet, flattened(n.kids)...)}
			}
			return []*node{apply(opList, both...)}
		}
	}
	return all
}

// allReals are words for all real numbers.
var allReals = set("allrealnumbers allreals realnumbers reals allrealvalues")

// flattened returns the elements with either sign.
func flattened(kids []*node) []*node {
	var all []*node
	for _, kid := range kids {
		all = append(all, kid.bothSigns()...)
	}
	return all
}

// lists returns the possible meanings of a list: the values of one name, the coordinates of a point by their names, or
// the union of intervals.
func (c *comparer) lists(n *node) []*node {
	var values, intervals []*node
	names, letters := map[string]*node{}, map[string]bool{}
	for _, kid := range n.kids {
		value := kid
		if kid.op == opRelation {
			if i := intervalOf(kid); i != nil && n.name == "or" {
				intervals = append(intervals, i)
			}
			if value = c.named(kid); value == nil {
				value = kid
			} else if name := nameOf(kid.kids[0]); name != "" {
				letter, _, _ := strings.Cut(name, "_")
				names[name], letters[letter] = value, true
			}
		}
		if isCollection(value) {
			values = append(values, flattened(value.kids)...)
			continue
		}
		values = append(values, value.bothSigns()...)
	}
	var all []*node
	if len(letters) < 2 {
		all = append(all, n, apply(opList, values...))
	}
	if len(names) > 1 && len(names) == len(n.kids) { // Other lists of several names have no order that could be compared.
		point := &node{op: opTuple, name: "( )"}
		for _, name := range sortedKeys(names) {
			point.kids = append(point.kids, names[name])
		}
		all = append(all, point)
	}
	if len(intervals) == len(n.kids) {
		all = append(all, union(intervals))
	}
	return all
}

func sortedKeys(names map[string]*node) []string {
	var keys []string
	for name := range names {
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
}

func union(parts []*node) *node {
	all := parts[0]
	for _, part := range parts[1:] {
		all = apply(opUnion, all, part)
	}
	return all
}

// withoutPoints returns the real numbers without one point as a union of intervals, or nil if from and points are
// anything else.
func withoutPoints(from, points *node) *node {
	if !from.equal(reals()) || points.op != opSet || len(points.kids) != 1 || points.kids[0].hasVariables() {
		return nil
	}
	return except(points.kids[0])
}

func except(point *node) *node {
	return apply(opUnion, interval("(", apply(opNegate, variable(infinity)), point, ")"),
		interval("(", point, variable(infinity), ")"))
}

// named returns the value that a chain of equations gives: the part behind a name, if all parts behind it are equal.
// Parts behind a sign "about equal" have to be about equal.
func (c *comparer) named(n *node) *node {
	signs, kids := n.relations(), n.kids
	if slices.ContainsFunc(signs, func(sign string) bool { return sign != "=" && sign != "≈" && sign != "∈" }) {
		return nil
	}
	switch {
	case nameOf(kids[0]) != "":
		kids, signs = kids[1:], signs[1:]
	case len(kids) == 2 && kids[1].op == opVariable && signs[0] == "=": // As in 5=x.
		kids, signs = kids[:1], nil
	}
	if len(signs) == 0 {
		return kids[0]
	}
	value := kids[0]
	for i, sign := range signs {
		next := kids[i+1]
		switch {
		case sign == "=" && c.equal(value, next):
		case sign == "≈" && c.about(value, next):
		default:
			return nil
		}
	}
	return value
}

// about reports whether two constants are nearly the same.
func (c *comparer) about(x, y *node) bool {
	at := place{precision: coarsePrecision, constant: true}
	if x.hasVariables() || y.hasVariables() || !x.isScalar() || !y.isScalar() {
		return false
	}
	p, q := c.valueOf(x, at), c.valueOf(y, at)
	if p == nil || q == nil {
		return false
	}
	a := arithmetic{coarsePrecision}
	const bits = 6 // A difference of about 2%.
	difference := a.subtract(a.of(p), a.of(q))
	return difference.magnitude() <= max(a.of(p).magnitude()-bits, difference.err)
}

// nameOf returns the name that a side of an equation is: a variable, points such as AB, words, or a function of
// something. It returns nothing for other expressions.
func nameOf(n *node) string {
	switch n.op {
	case opVariable:
		if n.name == infinity {
			return ""
		}
		return n.name
	case opText:
		return n.name
	case opUnit:
		return nameOf(n.kids[0])
	case opFunction:
		return functionName(n)
	case opPower:
		if n.kids[0].op == opText {
			return n.kids[0].name
		}
	case opTuple:
		if !slices.ContainsFunc(n.kids, func(kid *node) bool { return kid.op != opVariable }) {
			return "point"
		}
	case opDivide:
		return derivativeName(n)
	case opMultiply:
		return productName(n)
	}
	return ""
}

// functionName returns the name of a length, such as |AB|, or of a trigonometric function of an angle.
func functionName(n *node) string {
	switch name := nameOf(n.kids[0]); {
	case n.name == "abs":
		return pointsName(n.kids[0])
	case trigonometric[n.name] && name != "":
		return n.name + name
	default:
		return ""
	}
}

// productName returns the name of points, or the name of a function before its argument.
func productName(n *node) string {
	if name := pointsName(n); name != "" {
		return name
	}
	of, argument := n.kids[0], n.kids[1]
	if of.op == opPower && isMinusOne(of.kids[1]) {
		of = of.kids[0]
	}
	isFunction := of.op == opVariable && !strings.Contains("xyzabcnmkt", of.name[:1]) &&
		(argument.grouped || argument.op == opTuple)
	if of.op == opText || isFunction {
		return of.name
	}
	return ""
}

// pointsName returns the name of a figure with several points, such as a triangle: capital letters.
func pointsName(n *node) string {
	switch {
	case n.op == opVariable && (n.name[0] >= 'A' && n.name[0] <= 'Z' ||
		accents[strings.Trim(strings.Fields(n.name)[0], `\`)]):
		return n.name
	case n.op == opMultiply && !n.kids[1].grouped:
		first, second := pointsName(n.kids[0]), pointsName(n.kids[1])
		if first != "" && second != "" {
			return first + second
		}
	}
	return ""
}

// derivativeName returns the name dy/dx.
func derivativeName(n *node) string {
	name := ""
	for _, kid := range n.kids {
		if kid.op != opMultiply || !kid.kids[0].equal(variable("d")) || kid.kids[1].op != opVariable {
			return ""
		}
		name += "d" + kid.kids[1].name
	}
	return name
}

func isInequality(n *node) bool {
	return n.op == opRelation && !strings.ContainsAny(n.name, "≈∈") && n.name != "= "
}

// ascending returns the kids of inequalities and the signs between them from the smallest to the largest, or nil if
// the signs do not allow that.
func ascending(n *node) (kids []*node, signs []string) {
	kids, signs = slices.Clone(n.kids), n.relations()
	if strings.Contains(n.name, ">") {
		slices.Reverse(kids)
		slices.Reverse(signs)
		for i := range signs {
			signs[i] = strings.NewReplacer(">", "<", "<", ">").Replace(signs[i])
		}
	}
	for _, sign := range signs {
		if sign != "<" && sign != "<=" {
			return nil, nil
		}
	}
	return kids, signs
}

// intervalOf returns the interval of a variable between constants, or for != the union of all other numbers. It
// returns nil if n is neither.
func intervalOf(n *node) *node {
	if n.name == "!= " && n.kids[0].op == opVariable && isBound(n.kids[1]) {
		return except(n.kids[1])
	}
	kids, signs := ascending(n)
	if len(kids) == 2 && kids[0].op == opVariable { // As x<5: nothing bounds it from below.
		kids, signs = slices.Insert(kids, 0, apply(opNegate, variable(infinity))), slices.Insert(signs, 0, "<")
	} else if len(kids) == 2 {
		kids, signs = append(kids, variable(infinity)), append(signs, "<")
	}
	if len(kids) != 3 || kids[1].op != opVariable || !isBound(kids[0]) || !isBound(kids[2]) {
		return nil
	}
	open, end := "(", ")"
	if signs[0] == "<=" {
		open = "["
	}
	if signs[1] == "<=" {
		end = "]"
	}
	return interval(open, kids[0], kids[2], end)
}

// isBound reports whether an interval can end at n.
func isBound(n *node) bool { return n.isScalar() && !n.hasVariables() || isInfinite(n) }

func isInfinite(n *node) bool {
	return n.equal(variable(infinity)) || n.op == opNegate && n.kids[0].equal(variable(infinity))
}

// equalRelations reports whether equations or inequalities are equal: the differences of their sides are multiples of
// each other, or all parts are equal.
func (c *comparer) equalRelations(x, y *node) bool {
	if x.name == y.name && x.kids[0].op != opNumber && slices.EqualFunc(x.kids, y.kids, c.equal) {
		return true
	}
	if x.name == y.name && (x.name == "= " || x.name == "!= ") {
		return c.proportional(sides(x.kids), sides(y.kids), false)
	}
	p, signs := ascending(x)
	q, others := ascending(y)
	switch {
	case signs == nil || !slices.Equal(signs, others):
		return false
	case len(p) == 2:
		return c.proportional(sides(p), sides(q), true)
	default:
		return slices.EqualFunc(p, q, c.equal)
	}
}

// sides returns the difference of two sides.
func sides(kids []*node) *node { return apply(opAdd, kids[0], apply(opNegate, kids[1])) }

// proportional reports whether one expression is a multiple of the other, by a positive number if that is required.
func (c *comparer) proportional(x, y *node, positive bool) bool {
	if !x.isScalar() || !y.isScalar() || !x.hasVariables() || !y.hasVariables() || !agree(x.unitsOf(), y.unitsOf()) {
		return false
	}
	// x(p)/y(p) has to be the same at all points: x - ratio*y is compared with 0.
	at := places(x, y)
	for _, anchor := range at {
		p, q := c.valueOf(x, anchor), c.valueOf(y, anchor)
		if p == nil || q == nil {
			continue
		}
		ratio := c.arithmetic(arithmetic{anchor.precision}, opDivide, p, q)
		if ratio == nil || positive && !isPositive(ratio) {
			return false
		}
		return c.isMultiple(x, y, ratio, at)
	}
	return false
}

func isPositive(v *value) bool {
	if v.exact != nil {
		return v.exact.Sign() > 0
	}
	return v.ball.real && v.ball.re.Sign() > 0
}

// isMultiple reports whether x is y times the ratio at enough places, and not 0 there.
func (c *comparer) isMultiple(x, y *node, ratio *value, at []place) bool {
	compared := 0
	for _, place := range at {
		a := arithmetic{place.precision}
		p, q := c.valueOf(x, place), c.valueOf(y, place)
		if p == nil || q == nil {
			continue
		}
		multiple := c.arithmetic(a, opMultiply, q, ratio)
		if multiple == nil {
			continue
		}
		difference := a.subtract(a.of(p), a.of(multiple))
		if p.exact != nil && multiple.exact != nil {
			if p.exact.Cmp(multiple.exact) != 0 {
				return false
			}
		} else if difference.magnitude() > difference.err+2 || difference.err > largestError {
			return false
		}
		if _, ok := a.of(p).atLeast(); ok {
			compared++
		}
	}
	return compared >= enoughPoints
}
