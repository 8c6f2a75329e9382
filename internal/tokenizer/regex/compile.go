// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package regex

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

type op uint8

const (
	opRune   op = iota // consumes one character, which is r
	opSet              // consumes one character of the table
	opRepeat           // consumes as many characters of the table as possible, from least to most
	opSplit            // continues at x; if that fails, at y
	opJump             // continues at x
	opAtomic           // runs the program at x; continues at y from its end
	opLook             // runs the programs of looks, and continues if one of them matches, or none if not is set
	opAnchor
	opEnd
)

type instruction struct {
	op          op
	not, behind bool
	anchor      anchor
	r           rune
	x, y        int
	least, most int
	table       *table
	looks       []look
	// choice numbers the splits. The splits of atomic groups and look-arounds have numbers of their own.
	choice int
	inner  bool
}

// look is an alternative of a look-around. A look-behind begins back characters before the place.
type look struct{ start, back int }

type program struct {
	code []instruction
	// first has the characters that a match begins with. It is nil if a match may be empty.
	first          *table
	choices, inner int
}

type compiler struct {
	pattern string
	// fast permits opRepeat.
	fast    bool
	out     *program
	tables  map[string]*table
	visited int
	// depth counts the atomic groups and look-arounds around the compiled node.
	depth int
}

func compile(pattern string, tree *node, fast bool) (out *program, err error) {
	defer func() {
		if r := recover(); r != nil {
			stopped, ok := r.(stop)
			if !ok {
				panic(r)
			}
			err = stopped.err
		}
	}()
	c := &compiler{pattern: pattern, fast: fast, out: &program{}, tables: map[string]*table{}}
	c.node(tree)
	c.emit(instruction{op: opEnd}, tree)
	if !nullable(tree) {
		c.out.first = c.table(begins(tree), tree)
	}
	return c.out, nil
}

func (c *compiler) fail(at int, problem string) {
	panic(stop{&Error{Pattern: c.pattern, At: at, Problem: problem}})
}

func (c *compiler) emit(i instruction, n *node) int {
	if len(c.out.code) >= maxProgram {
		c.fail(n.at, "the pattern is too large with its repetitions: write smaller ones")
	}
	if i.op == opSplit {
		count, most := &c.out.choices, maxChoices
		if i.inner = c.depth > 0; i.inner {
			count, most = &c.out.inner, maxInner
		}
		if i.choice = *count; *count >= most {
			c.fail(n.at, "the pattern has too many alternatives and repetitions: write fewer or smaller ones")
		}
		*count++
	}
	c.out.code = append(c.out.code, i)
	return len(c.out.code) - 1
}

// here returns the index of the next instruction.
func (c *compiler) here() int { return len(c.out.code) }

func (c *compiler) table(set charset, n *node) *table {
	var key strings.Builder
	for _, s := range set {
		key.WriteRune(s.first)
		key.WriteRune(s.last)
		key.WriteByte(byte(s.first >> 11)) // WriteRune writes all surrogates alike.
		key.WriteByte(byte(s.last >> 11))
	}
	if known, ok := c.tables[key.String()]; ok {
		return known
	}
	const mostTables = 500
	if len(c.tables) >= mostTables {
		c.fail(n.at, "the pattern has too many different sets of characters: write fewer")
	}
	made := newTable(set)
	c.tables[key.String()] = made
	return made
}

func (c *compiler) node(n *node) {
	const mostVisits = 200_000
	if c.visited++; c.visited > mostVisits {
		c.fail(n.at, "the pattern is too large with its repetitions: write smaller ones")
	}
	switch n.kind {
	case kindEmpty:
	case kindSet:
		if r, ok := n.set.single(); ok {
			c.emit(instruction{op: opRune, r: r}, n)
			return
		}
		c.emit(instruction{op: opSet, table: c.table(n.set, n)}, n)
	case kindConcat:
		for _, one := range n.nodes {
			c.node(one)
		}
	case kindChoice:
		c.choice(n)
	case kindRepeat:
		c.repeat(n)
	case kindAnchor:
		i := instruction{op: opAnchor, anchor: n.anchor}
		if n.anchor == wordEdge || n.anchor == noWordEdge {
			i.table = wordTable()
		}
		c.emit(i, n)
	case kindAtomic:
		at := c.emit(instruction{op: opAtomic}, n)
		c.out.code[at].x = c.here()
		c.sub(n.nodes[0])
		c.out.code[at].y = c.here()
	case kindLook:
		c.look(n)
	}
}

// sub compiles a program of its own.
func (c *compiler) sub(n *node) {
	c.depth++
	c.node(n)
	c.depth--
	c.emit(instruction{op: opEnd}, n)
}

var wordTable = sync.OnceValue(func() *table { return newTable(wordAlone()) })

func (c *compiler) choice(n *node) {
	var ends []int
	for i, one := range n.nodes {
		if i == len(n.nodes)-1 {
			c.node(one)
			break
		}
		split := c.emit(instruction{op: opSplit}, n)
		c.out.code[split].x = c.here()
		c.node(one)
		ends = append(ends, c.emit(instruction{op: opJump}, n))
		c.out.code[split].y = c.here()
	}
	for _, end := range ends {
		c.out.code[end].x = c.here()
	}
}

func (c *compiler) repeat(n *node) {
	inner := alone(n.nodes[0])
	if c.fast && inner.kind == kindSet && !n.lazy {
		c.emit(instruction{op: opRepeat, table: c.table(inner.set, n), least: n.least, most: n.most}, n)
		return
	}
	for range n.least {
		c.node(inner)
	}
	if n.most == endless {
		split := c.emit(instruction{op: opSplit}, n)
		c.node(inner)
		c.emit(instruction{op: opJump, x: split}, n)
		c.branch(split, n.lazy)
		return
	}
	var splits []int
	for range n.most - n.least {
		splits = append(splits, c.emit(instruction{op: opSplit}, n))
		c.node(inner)
	}
	for _, split := range splits {
		c.branch(split, n.lazy)
	}
}

// branch makes a split choose between the instructions after it and the instructions that are compiled next.
func (c *compiler) branch(split int, lazy bool) {
	x, y := split+1, c.here()
	if lazy {
		x, y = y, x
	}
	c.out.code[split].x, c.out.code[split].y = x, y
}

func (c *compiler) look(n *node) {
	at := c.emit(instruction{op: opLook, not: n.not, behind: n.behind}, n)
	inner := alone(n.nodes[0])
	if n.behind {
		c.checkBehind(inner, n.not)
	}
	parts := []*node{inner}
	if n.behind && inner.kind == kindChoice {
		parts = inner.nodes
	}
	var looks []look
	for _, one := range parts {
		back := 0
		if n.behind {
			var ok bool
			if back, ok = c.length(one); !ok {
				c.fail(n.at, "look-behind of a length that varies is not supported, other than by its alternatives: write an "+
					"alternative for each length")
			}
		}
		looks = append(looks, look{start: c.here(), back: back})
		c.sub(one)
	}
	c.out.code[at].looks, c.out.code[at].y = looks, c.here()
}

// checkBehind refuses patterns that Oniguruma refuses in a look-behind.
func (c *compiler) checkBehind(n *node, not bool) {
	switch {
	case n.kind == kindLook && !n.behind:
		c.fail(n.at, "look-ahead within look-behind is not supported: write it beside the look-behind")
	case n.kind == kindAnchor && (n.anchor == textEnd || n.anchor == lastLineEnd):
		c.fail(n.at, "the end of the text within look-behind is not supported: leave it out")
	case n.captures && not:
		c.fail(n.at, "a group within negative look-behind is not supported: write (?:…)")
	}
	for _, one := range n.nodes {
		c.checkBehind(one, not)
	}
}

// length returns the number of characters that a node matches, if that does not vary.
func (c *compiler) length(n *node) (length int, ok bool) {
	const mostLength = 10_000
	switch n.kind {
	case kindSet:
		return 1, true
	case kindConcat, kindAtomic:
		for _, one := range n.nodes {
			more, ok := c.length(one)
			if length += more; !ok || length > mostLength {
				return 0, false
			}
		}
		return length, true
	case kindChoice:
		length, ok = c.length(n.nodes[0])
		return length, ok && !slices.ContainsFunc(n.nodes[1:], func(one *node) bool {
			other, same := c.length(one)
			return !same || other != length
		})
	case kindRepeat:
		length, ok = c.length(n.nodes[0])
		return length * n.least, ok && n.least == n.most && length*n.least <= mostLength
	default:
		return 0, true
	}
}

// begins returns the characters with which a match of a node may begin, if the match is not empty.
func begins(n *node) charset {
	switch n.kind {
	case kindSet:
		return n.set
	case kindChoice:
		var set charset
		for _, one := range n.nodes {
			set = append(set, begins(one)...)
		}
		return set.normal()
	case kindRepeat, kindAtomic:
		if n.kind == kindRepeat && n.most == 0 {
			return nil
		}
		return begins(n.nodes[0])
	case kindConcat:
		var set charset
		for _, one := range n.nodes {
			set = append(set, begins(one)...)
			if !nullable(one) {
				break
			}
		}
		return set.normal()
	default:
		return nil
	}
}

// anchored reports whether an anchor holds at an index.
func anchored(i *instruction, text string, at int) bool {
	switch i.anchor {
	case textStart:
		return at == 0
	case textEnd:
		return at == len(text)
	case lastLineEnd:
		return at == len(text) || at == len(text)-1 && text[at] == '\n'
	case lineStart:
		return at == 0 || text[at-1] == '\n' && at < len(text)
	case lineEnd:
		return at == len(text) || text[at] == '\n'
	default:
		before := false
		if at > 0 {
			r, _ := utf8.DecodeLastRuneInString(text[:at])
			before = i.table.has(r)
		}
		return (before != (i.table.at(text, at) > 0)) == (i.anchor == wordEdge)
	}
}
