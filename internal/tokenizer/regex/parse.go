// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package regex

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

type kind uint8

const (
	kindEmpty  kind = iota
	kindSet         // one character of set
	kindConcat      // the nodes one after the other
	kindChoice      // the first of the nodes that leads to a match
	kindRepeat      // the only node, from least to most times; most is endless if it is negative
	kindAtomic      // the only node, whose first match is final
	kindLook        // the only node matches ahead, or ends here
	kindAnchor
)

// node is a part of a pattern.
type node struct {
	kind        kind
	set         charset
	nodes       []*node
	least, most int
	lazy        bool
	behind, not bool   // of kindLook
	anchor      anchor // of kindAnchor
	at          int    // It is where the pattern has it.
	// letter is set for a single character that was written while case is ignored.
	letter rune
	// captures is set for a group that Oniguruma captures.
	captures bool
}

type anchor uint8

const (
	lineStart anchor = iota
	lineEnd
	textStart
	textEnd
	lastLineEnd
	wordEdge
	noWordEdge
)

const endless = -1

// options are the options that a group such as (?im) sets.
type options struct{ ignoreCase, dotAll, extended bool }

type parser struct {
	pattern string
	at      int
	depth   int
}

// stop carries an *Error up to parse.
type stop struct{ err *Error }

func (p *parser) fail(at int, format string, values ...any) {
	panic(stop{&Error{Pattern: p.pattern, At: at, Problem: fmt.Sprintf(format, values...)}})
}

func parse(pattern string) (tree *node, err error) {
	defer func() {
		if r := recover(); r != nil {
			stopped, ok := r.(stop)
			if !ok {
				panic(r)
			}
			err = stopped.err
		}
	}()
	p := &parser{pattern: pattern}
	switch {
	case len(pattern) > maxPattern:
		p.fail(maxPattern, "the pattern has %d bytes, and at most %d are supported", len(pattern), maxPattern)
	case !utf8.ValidString(pattern):
		p.fail(0, "the pattern is not UTF-8")
	}
	tree = p.alternatives(options{})
	if p.at < len(pattern) {
		p.fail(p.at, "the parenthesis is not open: escape it as \\)")
	}
	return tree, nil
}

func (p *parser) peek() rune {
	if p.at >= len(p.pattern) {
		return -1
	}
	r, _ := utf8.DecodeRuneInString(p.pattern[p.at:])
	return r
}

func (p *parser) next() rune {
	r, size := utf8.DecodeRuneInString(p.pattern[p.at:])
	p.at += size
	return r
}

// take skips a prefix and reports whether it was there.
func (p *parser) take(prefix string) bool {
	if strings.HasPrefix(p.pattern[p.at:], prefix) {
		p.at += len(prefix)
		return true
	}
	return false
}

// alternatives reads up to the end of a group.
func (p *parser) alternatives(o options) *node {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.at, "groups are nested in more than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	choice := &node{kind: kindChoice, at: p.at}
	for {
		choice.nodes = append(choice.nodes, p.sequence(o))
		if !p.take("|") {
			break
		}
	}
	if len(choice.nodes) == 1 {
		return choice.nodes[0]
	}
	return choice
}

// sequence reads up to the end of an alternative.
func (p *parser) sequence(o options) *node {
	list := &node{kind: kindConcat, at: p.at}
	for p.at < len(p.pattern) {
		if c := p.pattern[p.at]; c == '|' || c == ')' {
			break
		}
		if o.extended && p.skipExtended() {
			continue
		}
		one, isolated := p.atom(o)
		if one == nil {
			continue // a comment
		}
		if !isolated {
			one = p.quantified(one, o)
		}
		list.nodes = append(list.nodes, one)
	}
	p.checkExpansions(list)
	return list
}

// skipExtended skips white space and comments, which have no meaning in extended patterns.
func (p *parser) skipExtended() bool {
	start := p.at
	for p.at < len(p.pattern) && strings.IndexByte(" \t\n\r\v\f", p.pattern[p.at]) >= 0 {
		p.at++
	}
	if p.take("#") {
		for p.at < len(p.pattern) && p.next() != '\n' {
			continue
		}
	}
	return p.at > start
}

// atom reads one element without its quantifier; nil if it is a comment. isolated means that the element extends to
// the end of the alternatives.
func (p *parser) atom(o options) (one *node, isolated bool) {
	start := p.at
	switch r := p.next(); r {
	case '(':
		return p.group(start, o)
	case '[':
		set := p.class(o)
		return &node{kind: kindSet, set: set, at: start}, false
	case '.':
		return &node{kind: kindSet, set: dot(o), at: start}, false
	case '^':
		return &node{kind: kindAnchor, anchor: lineStart, at: start}, false
	case '$':
		return &node{kind: kindAnchor, anchor: lineEnd, at: start}, false
	case '\\':
		return p.escape(start, o), false
	case '*', '+', '?':
		p.fail(start, "%q repeats nothing: escape it with \\", r)
	case '{':
		if _, _, ok := p.interval(); ok {
			p.fail(start, "the interval repeats nothing: escape it with \\")
		}
		return literal(r, start, o), false
	default:
		return literal(r, start, o), false
	}
	return nil, false
}

func dot(o options) charset {
	if o.dotAll {
		return charset{{0, utf8.MaxRune}}
	}
	return of('\n').complement()
}

func literal(r rune, at int, o options) *node {
	if !o.ignoreCase {
		return &node{kind: kindSet, set: of(r), at: at}
	}
	return &node{kind: kindSet, set: of(append([]rune(letters()[r]), r)...), at: at, letter: r}
}

// checkExpansions refuses literals that Oniguruma also matches with another number of characters when it ignores case.
func (p *parser) checkExpansions(list *node) {
	flat := flatten(list)
	if !slices.ContainsFunc(flat, func(n *node) bool { return n.letter != 0 }) {
		return
	}
	letters := letters()
	equal := func(a, b rune) bool { return a == b || letters[a] != "" && letters[a] == letters[b] }
	for i, one := range flat {
		if one.letter == 0 {
			continue
		}
		for _, e := range expansions {
			from, size := utf8.DecodeRuneInString(e)
			to := []rune(e[size:])
			matches := len(flat)-i >= len(to)
			for j := 0; matches && j < len(to); j++ {
				matches = flat[i+j].letter != 0 && equal(flat[i+j].letter, to[j])
			}
			if matches || equal(one.letter, from) {
				p.fail(one.at, "case is ignored, and %q equals %q then, which is not supported: leave out (?i), or write both",
					from, e[size:])
			}
		}
	}
}

// flatten returns the elements of a list and of the lists in it. A node that is not a list is one element.
func flatten(list *node) []*node {
	if list.kind != kindConcat {
		return []*node{list}
	}
	var flat []*node
	for _, one := range list.nodes {
		flat = append(flat, flatten(one)...)
	}
	return flat
}

// quantified reads the quantifiers of an element.
func (p *parser) quantified(one *node, o options) *node {
	for {
		if o.extended && p.skipExtended() {
			continue
		}
		start := p.at
		repeat := &node{kind: kindRepeat, nodes: []*node{one}, at: start}
		possessive := false
		switch c := p.peek(); c {
		case '*', '+', '?':
			p.at++
			repeat.least, repeat.most = map[rune]int{'+': 1}[c], map[rune]int{'*': endless, '+': endless, '?': 1}[c]
			if repeat.lazy = p.take("?"); !repeat.lazy {
				possessive = p.take("+")
			}
		case '{':
			p.at++
			least, most, ok := p.interval()
			if !ok {
				p.at = start
				return one
			}
			repeat.least, repeat.most = least, most
			// {n}? means {0,n} of the whole.
			if least == most && p.take("?") {
				repeat = &node{kind: kindRepeat, nodes: []*node{p.checked(repeat)}, most: 1, at: start}
			} else {
				repeat.lazy = p.take("?")
			}
		default:
			return one
		}
		if matchesPlace(one) {
			p.fail(start, "a quantifier after something that matches no characters is not supported: leave it out")
		}
		one = p.checked(repeat)
		if possessive {
			one = &node{kind: kindAtomic, nodes: []*node{one}, at: start}
		}
	}
}

// alone returns the element of lists that have only one element, or the node itself.
func alone(n *node) *node {
	for n.kind == kindConcat && len(n.nodes) == 1 {
		n = n.nodes[0]
	}
	return n
}

// matchesPlace reports whether a node, or one of its alternatives, is an anchor or a look-around.
func matchesPlace(n *node) bool {
	n = alone(n)
	return n.kind == kindAnchor || n.kind == kindLook || n.kind == kindChoice && slices.ContainsFunc(n.nodes, matchesPlace)
}

// checked refuses endless repetitions of nodes that may match nothing, and reduces repetitions of repetitions.
func (p *parser) checked(repeat *node) *node {
	inner := alone(repeat.nodes[0])
	if repeat.most != endless || !nullable(inner) {
		return repeat
	}
	// (x*)*, (x?)* and the like are x*.
	if inner.kind == kindRepeat && !inner.lazy && !repeat.lazy && !nullable(inner.nodes[0]) &&
		(inner.most == endless && inner.least <= 1 || inner.most == 1) {
		return &node{kind: kindRepeat, nodes: inner.nodes, most: endless, at: repeat.at}
	}
	p.fail(repeat.at, "an endless repetition of a group that may match nothing is not supported: "+
		"write the group so that it matches at least one character")
	return nil
}

// nullable reports whether a node may match nothing.
func nullable(n *node) bool {
	switch n.kind {
	case kindSet:
		return false
	case kindConcat:
		return !slices.ContainsFunc(n.nodes, func(n *node) bool { return !nullable(n) })
	case kindChoice:
		return slices.ContainsFunc(n.nodes, nullable)
	case kindRepeat:
		return n.least == 0 || nullable(n.nodes[0])
	case kindAtomic:
		return nullable(n.nodes[0])
	default:
		return true
	}
}

// interval reads {least,most} after its brace.
func (p *parser) interval() (least, most int, ok bool) {
	start := p.at
	defer func() {
		if !ok {
			p.at = start
		}
	}()
	least, hasLeast := p.number()
	most, hasMost := least, hasLeast
	if p.take(",") {
		if most, hasMost = p.number(); !hasMost {
			most = endless
		}
	}
	if !hasLeast && !hasMost || !p.take("}") {
		return 0, 0, false
	}
	if most != endless && most < least {
		p.fail(start, "the interval ends before it begins: write the smaller number first")
	}
	if max(least, most) > maxRepeats {
		p.fail(start, "more than %d repetitions are not supported", maxRepeats)
	}
	return least, most, true
}

func (p *parser) number() (n int, ok bool) {
	for p.at < len(p.pattern) && p.pattern[p.at] >= '0' && p.pattern[p.at] <= '9' && n <= maxRepeats {
		n = n*10 + int(p.pattern[p.at]-'0')
		p.at++
		ok = true
	}
	return n, ok
}

// group reads a group after its parenthesis. Capturing groups are like other groups.
func (p *parser) group(start int, o options) (one *node, isolated bool) {
	wrap := &node{at: start, kind: kindConcat}
	switch {
	case p.take("?#"):
		for p.at < len(p.pattern) && p.pattern[p.at] != ')' {
			p.at++
		}
		p.close(start)
		return nil, false
	case p.take("?:"):
	case p.take("?>"):
		wrap.kind = kindAtomic
	case p.take("?="):
		wrap.kind = kindLook
	case p.take("?!"):
		wrap.kind, wrap.not = kindLook, true
	case p.take("?<="):
		wrap.kind, wrap.behind = kindLook, true
	case p.take("?<!"):
		wrap.kind, wrap.behind, wrap.not = kindLook, true, true
	case p.take("?<"):
		p.groupName(start)
		wrap.captures = true
	case p.take("?"):
		return p.optionGroup(start, o)
	default:
		wrap.captures = true
	}
	inner := p.alternatives(o)
	p.close(start)
	wrap.nodes = []*node{inner}
	return wrap, false
}

func (p *parser) close(start int) {
	if !p.take(")") {
		p.fail(start, "the parenthesis is not closed: add ), or escape it as \\(")
	}
}

// groupName skips the name of a group.
func (p *parser) groupName(start int) {
	end := strings.IndexByte(p.pattern[p.at:], '>')
	if end <= 0 || strings.ContainsFunc(p.pattern[p.at:p.at+end], func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		p.fail(start, "the name of the group is not supported: write (?: instead of (?<name>")
	}
	p.at += end + 1
}

// optionGroup reads (?i:…), or (?i), which applies up to the end of the enclosing group.
func (p *parser) optionGroup(start int, o options) (one *node, isolated bool) {
	on := true
	for {
		switch r := p.peek(); r {
		case '-':
			on = false
		case 'i':
			o.ignoreCase = on
		case 'm':
			o.dotAll = on
		case 'x':
			o.extended = on
		case ':', ')':
			p.at++
			inner := p.alternatives(o)
			if r == ':' {
				p.close(start)
			}
			return &node{kind: kindConcat, nodes: []*node{inner}, at: start}, r == ')'
		default:
			p.fail(start,
				"the group is not supported; supported are (…), (?<name>…), (?:…), (?>…), (?=…), (?!…), (?<=…), (?<!…), (?#…) "+
					"and the options i, m and x")
		}
		p.at++
	}
}
