// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package split

import "unicode/utf8"

// class is the set of properties of a character that the patterns refer to.
type class uint8

// These are the properties, with their general categories of Unicode, in the order of hack/models/unicode_tables.py.
const (
	upper       class = 1 << iota // Lu, Lt
	lower                         // Ll
	uncased                       // Lm, Lo: letters that are on both sides of a change of case
	mark                          // M
	number                        // N
	punctuation                   // P, S
	space                         // the set of \s
	han                           // the script, letters or not

	letter = upper | lower | uncased
)

// run is a range of code points of one class, including both ends.
type run struct {
	first, last rune
	class       class
}

const blockBits = 8

// table finds the class of a code point in two steps, so that equal blocks are stored once.
type table struct {
	block  [(utf8.MaxRune + 1) >> blockBits]uint16
	blocks [][1 << blockBits]class
}

var (
	classes = newTable(runs)
	ascii   = asciiClasses(classes)
)

func newTable(runs []run) *table {
	t := &table{}
	known := map[[1 << blockBits]class]uint16{}
	for i := range t.block {
		var block [1 << blockBits]class
		first := rune(i) << blockBits
		for len(runs) > 0 && runs[0].first < first+(1<<blockBits) {
			for r := max(runs[0].first, first); r <= min(runs[0].last, first+(1<<blockBits)-1); r++ {
				block[r-first] = runs[0].class
			}
			if runs[0].last >= first+(1<<blockBits) {
				break // It continues in the next block.
			}
			runs = runs[1:]
		}
		number, ok := known[block]
		if !ok {
			number = uint16(len(t.blocks))
			known[block] = number
			t.blocks = append(t.blocks, block)
		}
		t.block[i] = number
	}
	return t
}

func (t *table) of(r rune) class {
	return t.blocks[t.block[r>>blockBits]][r&(1<<blockBits-1)]
}

// asciiClasses has an entry for every byte, so that no index needs a check. Only the entries of ASCII are filled.
func asciiClasses(t *table) [256]class {
	var ascii [256]class
	for r := range rune(utf8.RuneSelf) {
		ascii[r] = t.of(r)
	}
	return ascii
}

// at returns the class of the character at an index and its length in bytes, or 0, 0 at the end. Bytes that are not
// UTF-8 have the class of U+FFFD.
func at(text string, i int) (class, int) {
	if i >= len(text) {
		return 0, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return ascii[b], 1
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	return classes.of(r), size
}

// after is the end of the run of characters from an index on that have a property of the set.
func after(text string, i int, set class) int {
	for i < len(text) {
		if b := text[i]; b < utf8.RuneSelf {
			if ascii[b]&set == 0 {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if classes.of(r)&set == 0 {
			return i
		}
		i += size
	}
	return i
}

// afterOther is the end of the run of characters from an index on that have no property of the set.
func afterOther(text string, i int, set class) int {
	for i < len(text) {
		c, size := at(text, i)
		if c&set != 0 {
			return i
		}
		i += size
	}
	return i
}
