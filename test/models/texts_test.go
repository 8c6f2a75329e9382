// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models

package models

import (
	"math/rand/v2"
	"strings"
	"unicode"
)

// texts makes random strings of characters that tokenizers get wrong.
type texts struct {
	*rand.Rand
	// names of added tokens.
	names []string
}

func newTexts(seed uint64, names []string) *texts {
	return &texts{Rand: rand.New(rand.NewPCG(seed, 5)), names: names}
}

var (
	spaces = []rune(" \t\n\r\v\f\u0085\u00a0\u1680\u2000\u2007\u200a\u2028\u2029\u202f\u205f\u3000")
	// not white space to the references
	almost = []rune("\u180e\u200b\u200c\u200d\u2060\ufeff\u00ad\x00\x1c\x1d\x1e\x1f\x7f")
	quotes = []string{"'", "'", "’", "`", "ʼ", "＇"}
	ends   = []string{"s", "t", "re", "ve", "m", "ll", "d", "S", "T", "RE", "rE", "VE", "M", "LL", "lL", "D", "ſ", "ſt",
		"K", "v", "r", "l", "x"}
	letter = []rune("abcxyzABCXYZéÉßøñÑİıſǅǈǋªºʰˠⅷⅨΑαΣςЖжԱևაᲐאبकखगไ中文字々〇〆ーあアガ가힣𐐀𐐨𝐀𝒷𠀀")
	other  = []rune("!\"#$%&()*+,-./:;<=>?@[\\]^_{|}~¡§«»¿–—…‽、。「」！？€£¥₿±×÷∑√≠∞←→■☃☺✓⌘℃№™©®😀👍🏽🏳🌈🇩🇪ᾼ᾽῀")
	digit  = []rune("0123456789٠١٩०५९๐๙０９²³¹¼½⅚①⑨ⅣⅫ〡〩𝟘𝟡")
	hangul = []rune("ᄀᄒᅟᅡᅵᆨᇂꥠힰퟋ가각힣ㄱㅏ")
	keys   = strings.Fields("func return if err != nil { } := range map[string]int32 // TODO: def __init__(self, " +
		"x=None): import numpy as np " +
		"<div class=\"a\"> </div> SELECT * FROM t WHERE id=1; 0x1F 1e-9 3.14159 1,000,000 " +
		"https://example.org/a/b?c=d&e=%20 user@example.org C:\\dir\\file.txt " +
		"the quick brown fox can't won't I'll we've they're it's THE QUICK iPhone McDonald XMLHttpRequest snake_case " +
		"camelCase kebab-case")
)

// one makes one string.
func (g *texts) one() string {
	var b strings.Builder
	for range 1 + g.IntN(14) {
		g.part(&b)
	}
	return b.String()
}

// long makes a string of tens of thousands of characters that hardly differ.
func (g *texts) long() string {
	units := []string{"a", " ", "\n", "ab", "0", "中", "́", "é", "!", " a", "Aa", "😀", "\x1f", "ー・", "中a", "\r\n ", "a1"}
	unit := units[g.IntN(len(units))]
	return g.one() + strings.Repeat(unit, (20_000+g.IntN(40_000))/len([]rune(unit))) + g.one()
}

func (g *texts) part(b *strings.Builder) {
	switch g.IntN(14) {
	case 0:
		b.WriteString(quotes[g.IntN(len(quotes))] + ends[g.IntN(len(ends))])
	case 1:
		g.runes(b, spaces, 5)
	case 2:
		g.runes(b, []rune(" \n\r\t"), 4)
	case 3:
		g.runes(b, digit, 8)
	case 4:
		g.runes(b, other, 4)
	case 5:
		g.runes(b, letter, 8)
	case 6:
		g.runes(b, hangul, 6)
	case 7:
		g.runes(b, almost, 2)
	case 8:
		g.marked(b)
	case 9:
		g.anything(b)
	case 10:
		if len(g.names) > 0 {
			g.name(b)
		}
	case 11:
		b.WriteString([]string{"/", "//", "/\n", "\n/", "\r\n", "\n\n", "  ", " "}[g.IntN(8)])
	default:
		b.WriteString(keys[g.IntN(len(keys))])
		if g.IntN(2) == 0 {
			b.WriteByte(' ')
		}
	}
}

// runes writes up to most of a set; often one of them again and again.
func (g *texts) runes(b *strings.Builder, set []rune, most int) {
	r := set[g.IntN(len(set))]
	same := g.IntN(4) == 0
	for range 1 + g.IntN(most) {
		if !same {
			r = set[g.IntN(len(set))]
		}
		b.WriteRune(r)
	}
}

// marked writes letters with combining marks of all kinds, in any order.
func (g *texts) marked(b *strings.Builder) {
	for range 1 + g.IntN(4) {
		g.runes(b, letter, 1)
		for range g.IntN(4) {
			b.WriteRune(g.of(unicode.M))
		}
	}
}

// of returns a character of a table.
func (g *texts) of(table *unicode.RangeTable) rune {
	i := g.IntN(len(table.R16) + len(table.R32))
	if i < len(table.R16) {
		r := table.R16[i]
		return rune(r.Lo) + rune(g.IntN(int(r.Hi-r.Lo)/int(r.Stride)+1))*rune(r.Stride)
	}
	r := table.R32[i-len(table.R16)]
	return rune(r.Lo) + rune(g.IntN(int(r.Hi-r.Lo)/int(r.Stride)+1))*rune(r.Stride)
}

// anything writes any code points, assigned or not.
func (g *texts) anything(b *strings.Builder) {
	for range 1 + g.IntN(4) {
		most := []int{0x100, 0x800, 0x3000, 0x10000, 0x20000, 0x110000}[g.IntN(6)]
		if r := rune(g.IntN(most)); r < 0xd800 || r > 0xdfff {
			b.WriteRune(r)
		}
	}
}

// name writes the name of an added token, or something like one.
func (g *texts) name(b *strings.Builder) {
	name := []rune(g.names[g.IntN(len(g.names))])
	switch i := g.IntN(len(name) + 1); g.IntN(8) {
	case 0:
		name = name[:i]
	case 1:
		name = name[i:]
	case 2:
		name = append(append(append([]rune{}, name[:i]...), letter[g.IntN(len(letter))]), name[i:]...)
	case 3:
		name = append(name, name...)
	}
	b.WriteString(string(name))
}
