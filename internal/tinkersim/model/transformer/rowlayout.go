// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

// rowLayout assigns rows to the sequences of a pass. A sequence shares the rows of the first tokens that are equal in
// the sequence before it: the members of a group have the same prompt.
type rowLayout struct {
	tokens    []int32
	positions []int32
	paths     []path
	rows      []int32
}

// path is the rows of one sequence.
type path struct {
	start, length int // in rowLayout.rows
	shared        int // how many of them belong to an earlier sequence
}

func (p *rowLayout) reset() {
	p.tokens, p.positions = p.tokens[:0], p.positions[:0]
	p.paths, p.rows = p.paths[:0], p.rows[:0]
}

// add assigns rows to one more sequence.
func (p *rowLayout) add(sequence, previous []int32) {
	shared := 0
	if n := len(p.paths); n > 0 {
		shared = commonPrefix(sequence, previous)
	}
	start := len(p.rows)
	if shared > 0 {
		before := p.paths[len(p.paths)-1]
		p.rows = append(p.rows, p.rows[before.start:before.start+shared]...)
	}
	for i, token := range sequence[shared:] {
		p.rows = append(p.rows, int32(len(p.tokens)))
		p.tokens = append(p.tokens, token)
		p.positions = append(p.positions, int32(shared+i))
	}
	p.paths = append(p.paths, path{start: start, length: len(sequence), shared: shared})
}

// rowsOf returns the rows of sequence i, in order.
func (p *rowLayout) rowsOf(i int) []int32 {
	at := p.paths[i]
	return p.rows[at.start : at.start+at.length]
}

func commonPrefix(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
