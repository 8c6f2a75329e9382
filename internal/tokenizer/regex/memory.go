// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package regex

// memory has the outcomes of choices at places of a text. Whether the rest of a program matches depends only on the
// choice and the place, since programs have no counters and no references to groups. Therefore each pair is tried once
// in all attempts together, and the time of a search is proportional to the product of the lengths of program and
// text.
//
// Programs of atomic groups and look-arounds may match the same text repeatedly without consuming it. Therefore the
// ends of their matches are remembered as well.
type memory struct {
	choices, inner int
	// failed has, for each 64 bytes of text, a word for each choice. It is nil as long as no choice has failed there.
	failed [][]uint64
	// ends has, for each 64 bytes of text, a row of 64 for each inner choice: -1 for a failure, or the end plus one.
	ends [][]int32
}

func newMemory(p *program, length int) *memory {
	return &memory{choices: p.choices, inner: p.inner, failed: make([][]uint64, length/64+1),
		ends: make([][]int32, length/64+1)}
}

func (m *memory) fail(choice, at int, inner bool) {
	if inner {
		m.set(choice, at, -1)
		return
	}
	block := &m.failed[at/64]
	if *block == nil {
		*block = make([]uint64, m.choices)
	}
	(*block)[choice] |= 1 << (at % 64)
}

func (m *memory) succeed(choice, at, end int) { m.set(choice, at, int32(end)+1) }

func (m *memory) set(choice, at int, end int32) {
	block := &m.ends[at/64]
	if *block == nil {
		*block = make([]int32, 64*m.inner)
	}
	(*block)[choice*64+at%64] = end
}

// recall returns the outcome of a choice at a place.
func (m *memory) recall(choice, at int, inner bool) (end int, known, failed bool) {
	if !inner {
		block := m.failed[at/64]
		failed = block != nil && block[choice]>>(at%64)&1 == 1
		return 0, failed, failed
	}
	if block := m.ends[at/64]; block != nil {
		if end := block[choice*64+at%64]; end != 0 {
			return int(end) - 1, true, end < 0
		}
	}
	return 0, false, false
}
