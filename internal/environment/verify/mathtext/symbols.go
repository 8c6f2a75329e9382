// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"math/cmplx"
	"slices"
	"strings"
)

// functions are those that may be written with and without a backslash.
var functions = map[string]func(complex128) complex128{
	"sqrt": cmplx.Sqrt, "exp": cmplx.Exp, "ln": cmplx.Log, "log": cmplx.Log,
	"sin": cmplx.Sin, "cos": cmplx.Cos, "tan": cmplx.Tan, "cot": cmplx.Cot,
	"sec":    func(z complex128) complex128 { return 1 / cmplx.Cos(z) },
	"csc":    func(z complex128) complex128 { return 1 / cmplx.Sin(z) },
	"arcsin": cmplx.Asin, "arccos": cmplx.Acos, "arctan": cmplx.Atan,
	"asin": cmplx.Asin, "acos": cmplx.Acos, "atan": cmplx.Atan,
	"sinh": cmplx.Sinh, "cosh": cmplx.Cosh, "tanh": cmplx.Tanh,
	"abs": func(z complex128) complex128 { return complex(cmplx.Abs(z), 0) },
}

// greek are the LaTeX commands that are variables.
var greek = strings.Fields(`alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi
	rho sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega infty ell`)

// command reads what begins with a backslash.
func (p *parser) command() (*node, error) {
	p.rest = p.rest[1:]
	name := p.letters()
	p.rest = p.rest[len(name):]
	switch {
	case name == "frac":
		above, err := p.argument()
		if err != nil {
			return nil, err
		}
		below, err := p.argument()
		return &node{op: opDivide, kids: []*node{above, below}, latex: true}, err
	case name == "sqrt" && p.take("["):
		degree, err := p.closed("]")
		if err != nil {
			return nil, err
		}
		of, err := p.argument()
		inverse := &node{op: opDivide, kids: []*node{one, degree}}
		return &node{op: opPower, kids: []*node{of, inverse}}, err
	case name == "pi":
		return &node{op: opConstant, name: "pi"}, nil
	case functions[name] != nil:
		return p.call(name)
	case slices.Contains(greek, name):
		return p.variable(`\` + name)
	default:
		return nil, errSyntax
	}
}

// letters returns the ASCII letters that the rest begins with.
func (p *parser) letters() string {
	end := 0
	for end < len(p.rest) && startsWithLetter(p.rest[end:]) {
		end++
	}
	return p.rest[:end]
}

// word reads a function, a constant or a variable that is written without a backslash. A longer word is not a product
// of variables, but text.
func (p *parser) word() (*node, error) {
	word := p.letters()
	for end := len(word); end > 1; end-- {
		name := word[:end]
		if name != "pi" && functions[name] == nil {
			continue
		}
		p.rest = p.rest[end:]
		if name == "pi" {
			return &node{op: opConstant, name: "pi"}, nil
		}
		return p.call(name)
	}
	if len(word) > longestWord {
		return nil, errSyntax
	}
	p.rest = p.rest[1:]
	switch word[:1] {
	case "e", "i":
		return &node{op: opConstant, name: word[:1]}, nil
	default:
		return p.variable(word[:1])
	}
}

// variable reads the index of a variable, which is a part of its name.
func (p *parser) variable(name string) (*node, error) {
	if p.take("_") {
		index, err := p.index()
		if err != nil {
			return nil, err
		}
		name += "_" + index
	}
	return &node{op: opVariable, name: name}, nil
}

// index reads an index, in braces or of one character.
func (p *parser) index() (string, error) {
	index := ""
	if p.take("{") {
		end := strings.IndexByte(p.rest, '}')
		if end < 0 {
			return "", errSyntax
		}
		index, p.rest = p.rest[:end], p.rest[end+1:]
	} else if p.rest != "" {
		index, p.rest = p.rest[:1], p.rest[1:]
	}
	if index == "" || strings.Trim(index, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "", errSyntax
	}
	return index, nil
}

// call reads the base or the exponent of a function, and its argument.
func (p *parser) call(name string) (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var base, exponent *node
	var err error
	if name == "log" && p.take("_") {
		if base, err = p.argument(); err != nil {
			return nil, err
		}
	}
	if p.take("^") {
		if exponent, err = p.argument(); err != nil {
			return nil, err
		}
		if exponent.op != opNumber { // A negative exponent would mean the inverse function.
			return nil, errSyntax
		}
	}
	of, err := p.argument()
	if err != nil {
		return nil, err
	}
	n := &node{op: opFunction, name: name, kids: []*node{of}}
	if base != nil {
		n = &node{op: opDivide, kids: []*node{n, {op: opFunction, name: "log", kids: []*node{base}}}}
	}
	if exponent != nil {
		n = &node{op: opPower, kids: []*node{n, exponent}}
	}
	return n, nil
}
