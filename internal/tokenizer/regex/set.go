// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package regex

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// run is a row of code points with a value, in the generated tables.
type run struct {
	first, last rune
	value       uint32
}

// span is a row of code points, including both ends.
type span struct{ first, last rune }

// charset is a set of code points: spans in order, without overlaps and not adjacent.
type charset []span

func of(runes ...rune) charset {
	var set charset
	for _, r := range runes {
		set = append(set, span{r, r})
	}
	return set.normal()
}

// normal returns the set in order.
func (c charset) normal() charset {
	slices.SortFunc(c, func(a, b span) int { return int(a.first - b.first) })
	var out charset
	for _, s := range c {
		if n := len(out); n > 0 && s.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, s.last)
			continue
		}
		out = append(out, s)
	}
	return out
}

func (c charset) union(other charset) charset { return append(slices.Clone(c), other...).normal() }

func (c charset) complement() charset {
	var out charset
	next := rune(0)
	for _, s := range c {
		if s.first > next {
			out = append(out, span{next, s.first - 1})
		}
		next = s.last + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, span{next, utf8.MaxRune})
	}
	return out
}

func (c charset) intersect(other charset) charset {
	return c.complement().union(other.complement()).complement()
}

func (c charset) has(r rune) bool {
	_, ok := slices.BinarySearchFunc(c, r, func(s span, r rune) int {
		switch {
		case s.last < r:
			return -1
		case s.first > r:
			return 1
		}
		return 0
	})
	return ok
}

// single returns the only code point of a set.
func (c charset) single() (rune, bool) {
	if len(c) == 1 && c[0].first == c[0].last {
		return c[0].first, true
	}
	return 0, false
}

// letters has, for each character, the characters that equal it when case is ignored.
var letters = sync.OnceValue(func() map[rune]string {
	letters := map[rune]string{}
	for _, class := range foldings {
		for _, r := range class {
			letters[r] = class
		}
	}
	return letters
})

// folded returns the set with all characters that equal a character of the set when case is ignored.
func (c charset) folded() charset {
	out := slices.Clone(c)
	for _, class := range foldings {
		if strings.ContainsFunc(class, c.has) {
			for _, r := range class {
				out = append(out, span{r, r})
			}
		}
	}
	return out.normal()
}

// expands returns a character of the set that equals several characters when case is ignored.
func (c charset) expands() (rune, bool) {
	for _, e := range expansions {
		if r, _ := utf8.DecodeRuneInString(e); c.has(r) {
			return r, true
		}
	}
	return 0, false
}

// where returns the code points of a generated table for whose value wanted returns true.
func where(runs []run, wanted func(value uint32) bool) charset {
	var set charset
	next := rune(0)
	for _, r := range runs {
		if r.first > next && wanted(0) {
			set = append(set, span{next, r.first - 1})
		}
		if wanted(r.value) {
			set = append(set, span{r.first, r.last})
		}
		next = r.last + 1
	}
	if next <= utf8.MaxRune && wanted(0) {
		set = append(set, span{next, utf8.MaxRune})
	}
	return set.normal()
}

// categorySet is the set of the general categories whose name begins with a prefix.
func categorySet(prefix string) charset {
	return where(categories, func(value uint32) bool { return strings.HasPrefix(categoryNames[value], prefix) })
}

func propertySet(name string) charset {
	bit := slices.Index(propertyNames, name)
	return where(properties, func(value uint32) bool { return value>>bit&1 == 1 })
}

// longNames are the long names of general categories.
var longNames = map[string]string{
	"other": "C", "control": "Cc", "format": "Cf", "unassigned": "Cn", "privateuse": "Co", "letter": "L",
	"lowercaseletter": "Ll",
	"modifierletter":  "Lm", "otherletter": "Lo", "titlecaseletter": "Lt", "uppercaseletter": "Lu", "mark": "M",
	"combiningmark": "M",
	"spacingmark":   "Mc", "enclosingmark": "Me", "nonspacingmark": "Mn", "number": "N", "decimalnumber": "Nd",
	"letternumber": "Nl",
	"othernumber":  "No", "punctuation": "P", "connectorpunctuation": "Pc", "dashpunctuation": "Pd",
	"closepunctuation": "Pe",
	"finalpunctuation": "Pf", "initialpunctuation": "Pi", "otherpunctuation": "Po", "openpunctuation": "Ps", "symbol": "S",
	"currencysymbol": "Sc", "modifiersymbol": "Sk", "mathsymbol": "Sm", "othersymbol": "So", "separator": "Z",
	"lineseparator":      "Zl",
	"paragraphseparator": "Zp", "spaceseparator": "Zs", "digit": "Nd", "cntrl": "Cc", "punct": "P",
}

// known has the sets of names, in lower case and without spaces, hyphens and underscores.
var known = sync.OnceValue(func() map[string]func() charset {
	names := map[string]func() charset{
		"any":      func() charset { return charset{{0, utf8.MaxRune}} },
		"assigned": func() charset { return categorySet("Cn").complement() },
		"ascii":    func() charset { return charset{{0, 0x7f}} },
		"alpha":    func() charset { return propertySet("Alphabetic") },
		"upper":    func() charset { return propertySet("Uppercase") },
		"lower":    func() charset { return propertySet("Lowercase") },
		"space":    func() charset { return propertySet("White_Space") },
		"alnum":    func() charset { return propertySet("Alphabetic").union(categorySet("Nd")) },
		"blank":    func() charset { return categorySet("Zs").union(of('\t')) },
		"xdigit":   hexDigits,
	}
	for long, short := range longNames {
		names[long] = func() charset { return categorySet(short) }
	}
	for _, name := range categoryNames {
		names[plain(name)] = func() charset { return categorySet(name) }
		names[plain(name[:1])] = func() charset { return categorySet(name[:1]) }
	}
	names["lc"] = func() charset { return categorySet("Lu").union(categorySet("Ll")).union(categorySet("Lt")) }
	for i, name := range scriptNames {
		names[plain(name)] = func() charset { return where(scripts, func(value uint32) bool { return int(value) == i }) }
	}
	for _, name := range propertyNames {
		names[plain(name)] = func() charset { return propertySet(name) }
	}
	delete(names, plain("posix punct"))
	delete(names, plain("word alone"))
	return names
})

func hexDigits() charset { return charset{{'0', '9'}, {'A', 'F'}, {'a', 'f'}} }

func plain(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(name))
}

// posix are the names that a bracket such as [:alpha:] may have, with the names of their sets.
var posix = map[string]string{
	"alnum": "alnum", "alpha": "alpha", "blank": "blank", "cntrl": "cntrl", "digit": "digit", "graph": "graph",
	"lower": "lower",
	"print": "print", "space": "space", "upper": "upper", "xdigit": "xdigit", "word": "word", "ascii": "ascii",
}

// newlines are the single characters that \R matches.
var newlines = charset{{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}

const blockBits = 8

// table looks up quickly whether a code point is in a set.
type table struct {
	ascii  [4]uint64 // It has an entry for each byte; entries from 0x80 on are empty.
	block  []uint16
	blocks [][1 << blockBits / 64]uint64
}

func newTable(set charset) *table {
	t := &table{block: make([]uint16, (utf8.MaxRune+1)>>blockBits)}
	numbers := map[[1 << blockBits / 64]uint64]uint16{}
	next := 0
	for i := range t.block {
		var bits [1 << blockBits / 64]uint64
		first := rune(i) << blockBits
		for ; next < len(set) && set[next].last < first; next++ {
			continue
		}
		for j := next; j < len(set) && set[j].first < first+1<<blockBits; j++ {
			for r := max(set[j].first, first); r <= min(set[j].last, first+1<<blockBits-1); r++ {
				bits[(r-first)>>6] |= 1 << (r & 63)
			}
		}
		number, ok := numbers[bits]
		if !ok {
			number = uint16(len(t.blocks))
			numbers[bits] = number
			t.blocks = append(t.blocks, bits)
		}
		t.block[i] = number
	}
	t.ascii = [4]uint64{t.blocks[t.block[0]][0], t.blocks[t.block[0]][1]}
	return t
}

func (t *table) has(r rune) bool {
	block := &t.blocks[t.block[r>>blockBits]]
	return block[r>>6&3]>>(r&63)&1 == 1
}

// at returns the size of the character at an index if the set has the character, and 0 otherwise.
func (t *table) at(text string, i int) int {
	if i >= len(text) {
		return 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return int(t.ascii[b>>6] >> (b & 63) & 1)
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	if t.has(r) {
		return size
	}
	return 0
}
