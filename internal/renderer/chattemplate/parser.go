// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"slices"
	"strings"
)

// parser reads statements; expression.go reads expressions. A syntax error is a panic that Parse recovers.
type parser struct {
	lex     *lexer
	tok     token
	at      int
	depth   int
	loops   int  // the for tags around; within one, loop cannot be assigned
	inLoop  bool // break and continue are allowed
	soft    bool // an unknown filter or test fails only when it runs
	unknown []token
	loads   []map[string]bool
}

// deepest bounds how deeply expressions and blocks nest.
const deepest = 150

func (p *parser) next() token {
	before := p.tok
	p.tok = p.lex.tokens[min(p.at, len(p.lex.tokens)-1)]
	p.at++
	return before
}

func (p *parser) peek() token { return p.lex.tokens[min(p.at, len(p.lex.tokens)-1)] }

func (p *parser) fail(message string) { p.lex.fail(p.tok.at, message) }

func (p *parser) enter() {
	if p.depth++; p.depth > deepest {
		p.fail("expressions or blocks nest too deeply")
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) line() int { return p.tok.line }

func (p *parser) isName(name string) bool { return p.tok.kind == nameToken && p.tok.text == name }
func (p *parser) isOp(op string) bool     { return p.tok.kind == operator && p.tok.text == op }

func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipOp(op string) bool {
	if p.isOp(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) wantOp(op string) {
	if !p.skipOp(op) {
		p.fail("expected " + op)
	}
}

func (p *parser) wantName() string {
	if p.tok.kind != nameToken {
		p.fail("expected a name")
	}
	return p.next().text
}

func (p *parser) wantKind(kind tokenKind, what string) {
	if p.tok.kind != kind {
		p.fail("expected " + what)
	}
	p.next()
}

// template reads the whole source.
func (p *parser) template() []node {
	body := p.until()
	if len(p.unknown) > 0 {
		p.lex.fail(p.unknown[0].at, "no filter or test is named "+p.unknown[0].text)
	}
	return body
}

// until reads statements up to a tag that has one of the names, and leaves the name as the current token.
func (p *parser) until(ends ...string) []node {
	p.enter()
	defer p.leave()
	var body []node
	for {
		switch p.tok.kind {
		case dataToken:
			body = append(body, &textNode{p.next().text})
		case variableBegin:
			line := p.line()
			p.next()
			body = append(body, &printNode{p.tuple(p.expression, false), line})
			p.wantKind(variableEnd, "the end of the print statement")
		case blockBegin:
			p.next()
			if p.tok.kind == nameToken && slices.Contains(ends, p.tok.text) {
				return body
			}
			body = append(body, p.statement())
			p.wantKind(blockEnd, "the end of the tag")
		default:
			if len(ends) > 0 {
				p.fail("missing tag " + strings.Join(ends, " or "))
			}
			return body
		}
	}
}

// body reads the end of a tag, and statements up to the end tag, which it skips.
func (p *parser) body(end string) []node {
	p.wantKind(blockEnd, "the end of the tag")
	out := p.until(end)
	p.next()
	return out
}

// withSoft reads with soft set to a value: whether unknown filters and tests fail only when they run.
func (p *parser) withSoft(soft bool, read func()) {
	before := p.soft
	p.soft = soft
	read()
	p.soft = before
}

// statements are the tags that begin a statement.
var statements map[string]func(p *parser) node

func init() {
	statements = map[string]func(p *parser) node{
		"for": (*parser).forTag, "if": (*parser).ifTag, "set": (*parser).setTag, "macro": (*parser).macroTag,
		"call": (*parser).callTag, "filter": (*parser).filterTag, "with": (*parser).withTag,
		"generation": (*parser).generationTag, "break": (*parser).controlTag, "continue": (*parser).controlTag,
		"print": (*parser).printTag,
	}
}

func (p *parser) statement() node {
	if p.tok.kind != nameToken {
		p.fail("expected the name of a tag")
	}
	read, ok := statements[p.tok.text]
	if !ok {
		p.fail("unknown tag " + p.tok.text)
	}
	return read(p)
}

func (p *parser) printTag() node {
	line := p.line()
	p.next()
	if p.tok.kind == blockEnd {
		return &textNode{}
	}
	value := p.expression()
	if !p.isOp(",") {
		return &printNode{value, line}
	}
	out := &ifNode{line: line, other: []node{&printNode{value, line}}}
	for p.skipOp(",") {
		out.other = append(out.other, &printNode{p.expression(), line})
	}
	return out
}

func (p *parser) controlTag() node {
	if !p.inLoop {
		p.fail(p.tok.text + " is outside a loop")
	}
	if p.next().text == "break" {
		return loopControl(breakLoop)
	}
	return loopControl(continueLoop)
}

func (p *parser) ifTag() node {
	out := &ifNode{line: p.line()}
	p.withSoft(true, func() {
		for {
			p.next()
			test := p.tuple(p.withoutCond, false)
			p.wantKind(blockEnd, "the end of the tag")
			out.branches = append(out.branches, branch{test, p.until("elif", "else", "endif")})
			if p.isName("elif") {
				continue
			}
			if p.next().text == "else" {
				out.other = p.body("endif")
			}
			return
		}
	})
	return out
}

func (p *parser) forTag() node {
	out := &forNode{line: p.line()}
	p.next()
	p.loops++
	out.target = p.target(false)
	if !p.skipName("in") {
		p.fail("expected in")
	}
	out.over = p.tuple(p.withoutCond, false)
	p.withSoft(false, func() {
		if p.skipName("if") {
			out.test = p.expression()
		}
		out.recursive = p.skipName("recursive")
		p.wantKind(blockEnd, "the end of the tag")
		p.loads = append(p.loads, map[string]bool{})
		outer := p.inLoop
		p.inLoop = true
		out.body = p.until("endfor", "else")
		p.inLoop = outer
		out.peeks = p.popLoads()["loop"] || out.recursive
		if p.next().text == "else" {
			out.other = p.body("endfor")
		}
	})
	p.loops--
	return out
}

// popLoads pops the innermost set of names that were read, adds the names to the set around it, and returns the popped
// set.
func (p *parser) popLoads() map[string]bool {
	last := len(p.loads) - 1
	names := p.loads[last]
	p.loads = p.loads[:last]
	for name := range names {
		p.load(name)
	}
	return names
}

func (p *parser) load(name string) {
	if last := len(p.loads) - 1; last >= 0 {
		p.loads[last][name] = true
	}
}

func (p *parser) setTag() node {
	line := p.line()
	p.next()
	target := p.target(true)
	if p.skipOp("=") {
		return &setNode{target, p.tuple(p.expression, false), line}
	}
	mark := &captured{}
	out := &blockSetNode{target: target, captured: mark, line: line}
	p.withSoft(false, func() {
		out.value = p.filters(mark, false)
		out.body = p.body("endset")
	})
	return out
}

func (p *parser) filterTag() node {
	out := &filterNode{captured: &captured{}, line: p.line()}
	p.next()
	p.withSoft(false, func() {
		out.value = p.filters(out.captured, true)
		out.body = p.body("endfilter")
	})
	return out
}

func (p *parser) withTag() node {
	out := &withNode{line: p.line()}
	p.next()
	for p.tok.kind != blockEnd {
		if len(out.targets) > 0 {
			p.wantOp(",")
		}
		out.targets = append(out.targets, p.target(false))
		p.wantOp("=")
		out.values = append(out.values, p.expression())
	}
	p.withSoft(false, func() { out.body = p.body("endwith") })
	return out
}

// function reads the body of a macro.
func (p *parser) function(m *macroNode, end string) {
	p.loads = append(p.loads, map[string]bool{})
	outer := p.inLoop
	p.inLoop = false
	p.withSoft(false, func() { m.body = p.body(end) })
	p.inLoop = outer
	m.uses = p.popLoads()
}

func (p *parser) macroTag() node {
	p.next()
	out := &macroNode{name: p.assigned()}
	p.signature(out)
	p.function(out, "endmacro")
	return out
}

func (p *parser) signature(m *macroNode) {
	p.wantOp("(")
	for !p.isOp(")") {
		if len(m.params) > 0 {
			p.wantOp(",")
		}
		name := p.assigned()
		if slices.Contains(m.params, name) {
			p.fail("two parameters are named " + name)
		}
		m.params = append(m.params, name)
		switch {
		case p.skipOp("="):
			p.withSoft(false, func() { m.defaults = append(m.defaults, p.expression()) })
		case len(m.defaults) > 0:
			p.fail("a parameter without a default follows one with a default")
		}
	}
	p.next()
}

func (p *parser) callTag() node {
	out := &callNode{caller: &macroNode{name: "caller"}, line: p.line()}
	p.next()
	if p.isOp("(") {
		p.signature(out.caller)
	}
	call, ok := p.expression().(*callExpr)
	if !ok {
		p.fail("expected a call")
	}
	out.call = call
	p.function(out.caller, "endcall")
	return out
}

func (p *parser) generationTag() node {
	out := &callNode{caller: &macroNode{name: "caller"}, line: p.line()}
	p.next()
	p.function(out.caller, "endgeneration")
	return out
}
