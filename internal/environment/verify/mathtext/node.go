// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"math/big"
	"slices"
	"strings"
)

// operator is the operator of a node of an answer's tree.
type operator uint8

const (
	// These have no kids.
	opNumber operator = iota
	opConstant
	opVariable
	opText

	// These are expressions.
	opAdd
	opNegate
	opMultiply
	opDivide
	opPower
	opFactorial
	opDoubleFactorial
	opFunction
	opDegrees
	opPlusMinus // The kid with either sign.
	opMinusPlus // The kid with the sign that opPlusMinus does not have.
	opUnit      // The kid with a unit.

	// These are not.
	opTuple // In brackets: a point, an interval or a vector.
	opSet
	opList
	opUnion
	opIntersection
	opDifference
	opMatrix // The kids are rows.
	opRow
	opRelation
	opRatio
)

// node is a node of an answer's tree.
type node struct {
	op     operator
	kids   []*node
	number *big.Rat
	// name is the name of a constant, variable or function, the words of a text or unit, the two brackets of a tuple, the
	// separator of a list, or the relations between the kids, separated by spaces.
	name string
	// grouped marks a node that was written in parentheses.
	grouped bool
}

func number(n int64) *node { return &node{op: opNumber, number: big.NewRat(n, 1)} }

func apply(op operator, kids ...*node) *node { return &node{op: op, kids: kids} }

// call applies a function. A root has its degree as the second argument, and a logarithm its base.
func call(name string, arguments ...*node) *node {
	return &node{op: opFunction, name: name, kids: arguments}
}

func variable(name string) *node { return &node{op: opVariable, name: name} }

// contains reports whether the function is true for a node of the tree.
func (n *node) contains(is func(*node) bool) bool {
	return is(n) || slices.ContainsFunc(n.kids, func(kid *node) bool { return kid.contains(is) })
}

func (n *node) hasVariables() bool {
	return n.contains(func(n *node) bool { return n.op == opVariable })
}

// isScalar reports whether the tree is an expression throughout.
func (n *node) isScalar() bool {
	return !n.contains(func(n *node) bool { return n.op >= opTuple || n.op == opText })
}

// equal reports whether the trees are the same.
func (n *node) equal(other *node) bool {
	return n.op == other.op && n.name == other.name && (n.number == nil || n.number.Cmp(other.number) == 0) &&
		slices.EqualFunc(n.kids, other.kids, (*node).equal)
}

// withSign returns the tree with one choice of the signs ± and ∓: either all upper signs, or all lower signs if minus
// is set.
func (n *node) withSign(minus bool) *node {
	if len(n.kids) == 0 {
		return n
	}
	copied := *n
	copied.kids = make([]*node, len(n.kids))
	for i, kid := range n.kids {
		copied.kids[i] = kid.withSign(minus)
	}
	if n.op == opPlusMinus || n.op == opMinusPlus {
		if minus == (n.op == opPlusMinus) {
			return apply(opNegate, copied.kids[0])
		}
		return copied.kids[0]
	}
	return &copied
}

// bothSigns returns the tree with either sign, or the tree itself if it has no such sign.
func (n *node) bothSigns() []*node {
	if !n.contains(func(n *node) bool { return n.op == opPlusMinus || n.op == opMinusPlus }) {
		return []*node{n}
	}
	return []*node{n.withSign(false), n.withSign(true)}
}

// relations returns the signs between the kids of a relation.
func (n *node) relations() []string { return strings.Fields(n.name) }
