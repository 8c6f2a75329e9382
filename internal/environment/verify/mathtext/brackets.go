// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

// closing are the signs that close a bracket. An interval's brackets need not match.
var closing = map[string][]string{
	"(": {")", "]"}, "[": {"]", ")"}, "{": {"}"}, `\{`: {`\}`}, "⟨": {"⟩"}, "|": {"|"}, "⌊": {"⌋"}, "⌈": {"⌉"}, "<": {">"},
}

// calls are the functions that are written as brackets.
var calls = map[string]string{"|": "abs", "⌊": "floor", "⌈": "ceil"}

// bracketed reads an expression, a tuple, an interval or a set in brackets.
func (p *parser) bracketed(open string) (*node, error) {
	closes, ok := closing[open]
	if !ok || open == "|" && p.inAbs {
		return nil, errSyntax
	}
	inAbs := p.inAbs
	p.inAbs = open == "|"
	defer func() { p.inAbs = inAbs }()
	if open == `\{` && p.take(`\}`) {
		return apply(opSet), nil
	}
	property := open == `\{` && p.takeProperty()
	content, err := p.chosen(open)
	if err != nil {
		return nil, err
	}
	closed := p.takeAny(closes...)
	switch function := calls[open]; {
	case closed == "":
		return nil, errSyntax
	case function != "":
		return call(function, content), nil
	case property:
		return content, nil
	case open == `\{` || open == "{" && isSequence(content):
		return asSet(content), nil
	default:
		return enclosed(open, content, closed)
	}
}

// chosen reads a list, or a binomial coefficient in braces, as in {n \choose k}.
func (p *parser) chosen(open string) (*node, error) {
	above, err := p.list()
	if err != nil || open != "{" || !p.takeCommand("choose") {
		return above, err
	}
	below, err := p.list()
	return call("binom", above, below), err
}

// isSequence reports whether commas separate the elements of a list.
func isSequence(n *node) bool { return n.op == opList && n.name == "," }

// enclosed returns a tuple, an interval or an expression in parentheses.
func enclosed(open string, content *node, closed string) (*node, error) {
	tuple := &node{op: opTuple, name: open + " " + closed, kids: []*node{content}}
	switch open + closed {
	case "⟨⟩", "<>":
		if isSequence(content) {
			tuple.kids = content.kids
		}
		return tuple, nil
	}
	if isSequence(content) {
		tuple.kids = content.kids
		return tuple, nil
	}
	switch open + closed {
	case "()", "[]", "{}":
		grouped := *content
		grouped.grouped = open != "{"
		return &grouped, nil
	default:
		return nil, errSyntax
	}
}

// takeProperty removes the text before the property of the elements of a set: a variable, perhaps its domain if that is
// all real numbers, and a bar or colon.
func (p *parser) takeProperty() bool {
	at := 1
	if domain := p.ahead(2); p.ahead(1).is("∈") && domain.kind == kindCommand && domain.text == "reals" {
		at = 3
	}
	if p.peek().kind != kindLetter || !p.ahead(at).is("|") && !p.ahead(at).is(":") {
		return false
	}
	p.at += at + 1
	return true
}

// asSet returns the set of the elements of a list.
func asSet(list *node) *node {
	if list.op == opList {
		return apply(opSet, list.kids...)
	}
	return apply(opSet, list)
}

// matrices are the environments with rows and columns.
var matrices = set("matrix pmatrix bmatrix Bmatrix vmatrix smallmatrix array")

// systems are the environments with an equation in each row.
var systems = set("aligned align gathered cases")

// matrix reads the rows of a matrix. A determinant keeps its name.
func (p *parser) matrix(environment string) (*node, error) {
	if !matrices[environment] {
		return nil, errSyntax
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	matrix := &node{op: opMatrix}
	if environment == "vmatrix" {
		matrix.name = environment
	}
	row := apply(opRow)
	for {
		element, err := p.relation()
		if err != nil {
			return nil, err
		}
		row.kids = append(row.kids, element)
		if p.take("&") {
			continue
		}
		matrix.kids = append(matrix.kids, row)
		row = apply(opRow)
		ended := p.take(`\\`)
		if t := p.peek(); t.kind == kindClose && t.text == environment {
			p.at++
			return matrix, nil
		}
		if !ended {
			return nil, errSyntax
		}
	}
}
