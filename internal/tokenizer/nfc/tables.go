// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package nfc

// The generated tables consist of these types.
type (
	// order is the canonical combining class of a row of code points.
	order struct {
		first, last rune
		class       uint8
	}
	decomposition struct {
		whole rune
		parts string
	}
	composition struct{ first, second, whole rune }
)

var properties = newTables()

// tables are the generated tables with their indexes.
type tables struct {
	order         map[rune]uint8
	decomposition map[rune]string
	composition   map[[2]rune]rune
	// doubtful has a bit for each code point that decomposes, is reordered or composes with the one before it.
	doubtful [0x110000 / 64]uint64
}

func newTables() *tables {
	t := &tables{
		order:         map[rune]uint8{},
		decomposition: make(map[rune]string, len(decompositions)),
		composition:   make(map[[2]rune]rune, len(compositions)),
	}
	for _, o := range orders {
		for r := o.first; r <= o.last; r++ {
			t.order[r] = o.class
			t.doubt(r)
		}
	}
	composed := map[rune]bool{}
	for _, c := range compositions {
		t.composition[[2]rune{c.first, c.second}] = c.whole
		composed[c.whole] = true
		t.doubt(c.second)
	}
	for _, d := range decompositions {
		t.decomposition[d.whole] = d.parts
		if !composed[d.whole] {
			t.doubt(d.whole)
		}
	}
	for r := rune(vowelPart); r < vowelPart+vowels; r++ {
		t.doubt(r)
	}
	for r := rune(lastPart + 1); r < lastPart+lasts; r++ {
		t.doubt(r)
	}
	return t
}

func (t *tables) doubt(r rune) { t.doubtful[r/64] |= 1 << (r % 64) }

// of returns 1 for a character that text in form C does not have, or has only after certain other characters. It
// returns 0 for all others.
func (t *tables) of(r rune) uint64 { return t.doubtful[r/64] >> (r % 64) & 1 }
