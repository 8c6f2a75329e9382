// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"slices"
	"strconv"
	"strings"
)

// expression reads an expression with its inline if.
func (p *parser) expression() expr {
	p.enter()
	defer p.leave()
	before := len(p.unknown)
	out := p.or()
	for p.isName("if") {
		line := p.line()
		p.next()
		cond := &condExpr{yes: out, line: line}
		cond.test = p.or()
		if p.skipName("else") {
			cond.no = p.expression()
		}
		p.unknown = p.unknown[:before]
		out = cond
	}
	return out
}

// withoutCond reads an expression without an inline if.
func (p *parser) withoutCond() expr {
	p.enter()
	defer p.leave()
	return p.or()
}

func (p *parser) or() expr {
	left := p.and()
	for p.skipName("or") {
		left = &logicExpr{left, p.and(), true}
	}
	return left
}

func (p *parser) and() expr {
	left := p.not()
	for p.skipName("and") {
		left = &logicExpr{left, p.not(), false}
	}
	return left
}

func (p *parser) not() expr {
	if p.isName("not") {
		p.next()
		p.enter()
		defer p.leave()
		return &notExpr{p.not()}
	}
	return p.compare()
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">="}

func (p *parser) compare() expr {
	first := p.sum()
	var ops []comparison
	for {
		switch {
		case p.tok.kind == operator && slices.Contains(comparisons, p.tok.text):
			op := p.next().text
			ops = append(ops, comparison{op, p.sum()})
		case p.skipName("in"):
			ops = append(ops, comparison{"in", p.sum()})
		case p.isName("not") && p.peek().kind == nameToken && p.peek().text == "in":
			p.next()
			p.next()
			ops = append(ops, comparison{"not in", p.sum()})
		case len(ops) == 0:
			return first
		default:
			return &compareExpr{first, ops}
		}
	}
}

// binary reads operators of one precedence.
func (p *parser) binary(operand func() expr, ops ...string) expr {
	left := operand()
	for p.tok.kind == operator && slices.Contains(ops, p.tok.text) {
		op := p.next().text
		left = &binaryExpr{op, left, operand()}
	}
	return left
}

func (p *parser) sum() expr     { return p.binary(p.concat, "+", "-") }
func (p *parser) product() expr { return p.binary(p.power, "*", "/", "//", "%") }
func (p *parser) power() expr {
	return p.binary(func() expr { return p.unary(true) }, "**")
}

func (p *parser) concat() expr {
	parts := []expr{p.product()}
	for p.skipOp("~") {
		parts = append(parts, p.product())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &concatExpr{parts}
}

func (p *parser) unary(filters bool) expr {
	p.enter()
	defer p.leave()
	var out expr
	switch {
	case p.skipOp("-"):
		out = &signExpr{p.unary(false), true}
	case p.skipOp("+"):
		out = &signExpr{p.unary(false), false}
	default:
		out = p.primary()
	}
	out = p.postfix(out)
	if filters {
		out = p.filtersAndTests(out)
	}
	return out
}

// words are the names that stand for constants.
var words = map[string]any{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

func (p *parser) primary() expr {
	switch p.tok.kind {
	case nameToken:
		name := p.next().text
		if value, ok := words[name]; ok {
			return &constant{value}
		}
		p.load(name)
		return &nameExpr{name}
	case stringToken:
		out := p.stringValue(p.next())
		for p.tok.kind == stringToken {
			out = concat(out, p.stringValue(p.next()))
		}
		return &constant{out}
	case integerToken:
		return &constant{integerValue(p.next().text)}
	case floatToken:
		f, _ := strconv.ParseFloat(strings.ReplaceAll(p.next().text, "_", ""), 64)
		return &constant{f}
	}
	switch {
	case p.skipOp("("):
		out := p.tuple(p.expression, true)
		p.wantOp(")")
		return out
	case p.skipOp("["):
		out := &tupleExpr{items: p.items("]", p.expression)}
		return out
	case p.skipOp("{"):
		return p.dict()
	}
	p.fail("expected an expression")
	return nil
}

// items reads a list up to its bracket.
func (p *parser) items(end string, read func() expr) []expr {
	var out []expr
	for !p.isOp(end) {
		if len(out) > 0 {
			p.wantOp(",")
			if p.isOp(end) {
				break
			}
		}
		out = append(out, read())
	}
	p.next()
	return out
}

func (p *parser) dict() expr {
	out := &dictExpr{}
	out.values = p.items("}", func() expr {
		out.keys = append(out.keys, p.expression())
		p.wantOp(":")
		return p.expression()
	})
	return out
}

// tuple reads an expression, or several with commas between them. As in jinja2, a comma before in or recursive does
// not end a tuple.
func (p *parser) tuple(read func() expr, parenthesised bool) expr {
	var items []expr
	comma := false
	for {
		if len(items) > 0 {
			p.wantOp(",")
		}
		if p.tok.kind == variableEnd || p.tok.kind == blockEnd || p.isOp(")") {
			break
		}
		items = append(items, read())
		if !p.isOp(",") {
			break
		}
		comma = true
	}
	if !comma && len(items) > 0 {
		return items[0]
	}
	if !comma && !parenthesised {
		p.fail("expected an expression")
	}
	return &tupleExpr{items, true}
}

// target reads the target of an assignment.
func (p *parser) target(attributes bool) expr {
	p.enter()
	defer p.leave()
	loads := p.loads
	p.loads = nil
	out := p.tuple(func() expr {
		if attributes && p.tok.kind == nameToken && p.peek().kind == operator && p.peek().text == "." {
			if _, ok := words[p.tok.text]; !ok {
				name := p.next().text
				p.next()
				return &attrRef{name, p.wantName()}
			}
		}
		return p.primary()
	}, false)
	p.loads = loads
	if ref, ok := out.(*attrRef); ok {
		p.load(ref.name)
	}
	p.assignable(out)
	return out
}

func (p *parser) assignable(target expr) {
	switch t := target.(type) {
	case *nameExpr:
		if t.name == "loop" && p.loops > 0 {
			p.fail("loop cannot be assigned in a loop")
		}
	case *attrRef:
	case *tupleExpr:
		if !t.tuple {
			p.fail("a list cannot be assigned to")
		}
		for _, item := range t.items {
			p.assignable(item)
		}
	default:
		p.fail("the expression cannot be assigned to")
	}
}

// assigned reads a name that a statement defines.
func (p *parser) assigned() string {
	if _, ok := words[p.tok.text]; ok {
		p.fail("a constant cannot be assigned to")
	}
	name := p.wantName()
	p.assignable(&nameExpr{name})
	return name
}

func (p *parser) postfix(out expr) expr {
	for {
		switch {
		case p.isOp(".") || p.isOp("["):
			out = p.subscript(out)
		case p.isOp("("):
			line := p.line()
			out = &callExpr{out, p.arguments(), line}
		default:
			return out
		}
	}
}

func (p *parser) subscript(of expr) expr {
	if p.skipOp(".") {
		switch p.tok.kind {
		case nameToken:
			return &attrExpr{of, p.next().text}
		case integerToken:
			return &itemExpr{of, &constant{integerValue(p.next().text)}}
		}
		p.fail("expected a name or a number")
	}
	p.next()
	var keys []expr
	sliced := false
	for !p.isOp("]") {
		if len(keys) > 0 {
			p.wantOp(",")
		}
		key, isSlice := p.subscribed(of)
		sliced = sliced || isSlice
		keys = append(keys, key)
	}
	p.next()
	switch {
	case len(keys) == 1 && sliced:
		return keys[0]
	case len(keys) == 1:
		return &itemExpr{of, keys[0]}
	case sliced:
		p.fail("a subscript has several slices")
	}
	return &itemExpr{of, &tupleExpr{keys, true}}
}

// subscribed reads a key, or a slice of the value.
func (p *parser) subscribed(of expr) (key expr, isSlice bool) {
	part := func() expr {
		if p.isOp(":") || p.isOp("]") || p.isOp(",") {
			return nil
		}
		return p.expression()
	}
	start := expr(nil)
	if !p.isOp(":") {
		start = p.expression()
		if !p.isOp(":") {
			return start, false
		}
	}
	p.next()
	out := &sliceExpr{of: of, start: start}
	out.stop = part()
	if p.skipOp(":") {
		out.step = part()
	}
	return out, true
}

func (p *parser) arguments() arguments {
	var out arguments
	p.wantOp("(")
	for first := true; !p.isOp(")"); first = false {
		if !first {
			p.wantOp(",")
			if p.isOp(")") {
				break
			}
		}
		p.argument(&out)
	}
	p.next()
	return out
}

func (p *parser) argument(out *arguments) {
	switch {
	case p.skipOp("**"):
		p.must(out.mapping == nil)
		out.mapping = p.expression()
	case p.skipOp("*"):
		p.must(out.list == nil && out.mapping == nil)
		out.list = p.expression()
	case p.tok.kind == nameToken && p.peek().kind == operator && p.peek().text == "=":
		p.must(out.mapping == nil)
		if slices.Contains(out.names, p.tok.text) {
			p.fail("two arguments are named " + p.tok.text)
		}
		out.names = append(out.names, p.next().text)
		p.next()
		out.keywords = append(out.keywords, p.expression())
	default:
		p.must(out.list == nil && out.mapping == nil && len(out.names) == 0)
		out.positional = append(out.positional, p.expression())
	}
}

func (p *parser) must(ok bool) {
	if !ok {
		p.fail("an argument is in the wrong place")
	}
}

func (p *parser) filtersAndTests(out expr) expr {
	for {
		switch {
		case p.isOp("|"):
			out = p.filters(out, false)
		case p.isName("is"):
			out = p.test(out)
		case p.isOp("("):
			line := p.line()
			out = &callExpr{out, p.arguments(), line}
		default:
			return out
		}
	}
}

// known notes a filter or test that does not exist. ok says that it exists.
func (p *parser) known(name token, ok bool) {
	if !ok && !p.soft {
		p.unknown = append(p.unknown, name)
	}
}

// dotted reads a name with dots.
func (p *parser) dotted() token {
	name := p.tok
	name.text = p.wantName()
	for p.skipOp(".") {
		name.text += "." + p.wantName()
	}
	return name
}

func (p *parser) filters(out expr, inline bool) expr {
	for inline || p.isOp("|") {
		if !inline {
			p.next()
		}
		inline = false
		line := p.line()
		name := p.dotted()
		p.known(name, filters[name.text] != nil)
		f := &filterExpr{of: out, name: name.text, line: line}
		if p.isOp("(") {
			f.args = p.arguments()
		}
		out = f
	}
	return out
}

func (p *parser) test(of expr) expr {
	line := p.line()
	p.next()
	negated := p.skipName("not")
	name := p.dotted()
	p.known(name, tests[name.text] != nil)
	t := &testExpr{of: of, name: name.text, line: line}
	switch {
	case p.isOp("("):
		t.args = p.arguments()
	case p.isName("is"):
		p.fail("tests cannot be chained with is")
	case p.tok.kind == nameToken && !p.isName("else") && !p.isName("or") && !p.isName("and"),
		p.tok.kind == stringToken, p.tok.kind == integerToken, p.tok.kind == floatToken, p.isOp("["), p.isOp("{"):
		t.args.positional = []expr{p.postfix(p.primary())}
	}
	if negated {
		return &notExpr{t}
	}
	return t
}
