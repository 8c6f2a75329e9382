// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"slices"
	"strings"
)

// added is a token that is found in text by its name, before the text is split.
type added struct {
	id      int32
	content string
	special bool
}

// matcher finds added tokens: the longest of the tokens that begin first. It is a tree of bytes; the edges of a node
// are adjacent.
type matcher struct {
	first [256]bool // It has the bytes with which tokens begin.
	nodes []node
	edges []edge
	// words says whether there are tokens that are not special.
	words bool
}

type node struct {
	edges   uint32 // It is the index of the first one.
	count   uint16
	special bool
	id      int32 // It is the id of the token that ends here, or -1.
}

type edge struct {
	label byte
	to    uint32
}

func newMatcher(tokens []added) *matcher {
	m := &matcher{}
	sorted := slices.Clone(tokens)
	slices.SortFunc(sorted, func(a, b added) int { return strings.Compare(a.content, b.content) })
	for _, token := range sorted {
		m.first[token.content[0]] = true
		m.words = m.words || !token.special
	}
	m.nodes = append(m.nodes, node{id: -1})
	m.grow(0, sorted, 0)
	return m
}

// grow adds the children of a node. The tokens are sorted and agree in their first depth bytes.
func (m *matcher) grow(at uint32, tokens []added, depth int) {
	if len(tokens) > 0 && len(tokens[0].content) == depth {
		m.nodes[at].id, m.nodes[at].special = tokens[0].id, tokens[0].special
		tokens = tokens[1:]
	}
	first := len(m.edges)
	for i, token := range tokens {
		if i == 0 || tokens[i-1].content[depth] != token.content[depth] {
			m.edges = append(m.edges, edge{label: token.content[depth]})
		}
	}
	m.nodes[at].edges, m.nodes[at].count = uint32(first), uint16(len(m.edges)-first)
	for i := range int(m.nodes[at].count) {
		label := m.edges[first+i].label
		n := 0
		for n < len(tokens) && tokens[n].content[depth] == label {
			n++
		}
		child := uint32(len(m.nodes))
		m.edges[first+i].to = child
		m.nodes = append(m.nodes, node{id: -1})
		m.grow(child, tokens[:n], depth+1)
		tokens = tokens[n:]
	}
}

// match is a token that was found in a text.
type match struct {
	start, end int
	id         int32
	special    bool
}

// find returns the first token from an index on.
func (m *matcher) find(text string, from int) (match, bool) {
	for ; from < len(text); from++ {
		if !m.first[text[from]] {
			continue
		}
		if found, ok := m.longest(text, from); ok {
			return found, true
		}
	}
	return match{}, false
}

func (m *matcher) longest(text string, start int) (found match, ok bool) {
	at := &m.nodes[0]
	for i := start; i < len(text); i++ {
		next := m.child(at, text[i])
		if next == nil {
			break
		}
		at = next
		if at.id >= 0 {
			found, ok = match{start: start, end: i + 1, id: at.id, special: at.special}, true
		}
	}
	return found, ok
}

func (m *matcher) child(at *node, label byte) *node {
	for _, e := range m.edges[at.edges : at.edges+uint32(at.count)] {
		if e.label == label {
			return &m.nodes[e.to]
		}
	}
	return nil
}
