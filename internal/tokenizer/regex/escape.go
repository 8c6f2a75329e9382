// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package regex

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// controls are the escapes of single characters.
var controls = map[rune]rune{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f', 'v': '\v', 'a': '\a', 'e': 0x1b}

// shorthands are the escapes of sets. Their capitals are the complements.
var shorthands = map[rune]func() charset{
	'd': func() charset { return categorySet("Nd") },
	's': func() charset { return propertySet("White_Space") },
	'w': func() charset { return propertySet("Word") },
	'h': hexDigits,
}

// escape reads an escape sequence outside of brackets, after its backslash.
func (p *parser) escape(start int, o options) *node {
	at := func(a anchor) *node { p.at++; return &node{kind: kindAnchor, anchor: a, at: start} }
	switch p.peek() {
	case 'A':
		return at(textStart)
	case 'z':
		return at(textEnd)
	case 'Z':
		return at(lastLineEnd)
	case 'b':
		return at(wordEdge)
	case 'B':
		return at(noWordEdge)
	case 'R':
		p.at++
		// A carriage return and a newline match together, whatever follows.
		both := &node{kind: kindConcat, at: start, nodes: []*node{{kind: kindSet, set: of('\r'), at: start},
			{kind: kindSet, set: of('\n'), at: start}}}
		one := &node{kind: kindSet, set: newlines, at: start}
		return &node{kind: kindAtomic, at: start, nodes: []*node{{kind: kindChoice, at: start, nodes: []*node{both, one}}}}
	case 'N':
		p.at++
		return &node{kind: kindSet, set: of('\n').complement(), at: start}
	case 'O':
		p.at++
		return &node{kind: kindSet, set: charset{{0, utf8.MaxRune}}, at: start}
	}
	set, single, ok := p.setEscape(start, false)
	if ok {
		return &node{kind: kindSet, set: set, at: start}
	}
	return literal(single, start, o)
}

// setEscape reads an escape sequence for a set or a single character, after its backslash, in brackets or not.
func (p *parser) setEscape(start int, bracket bool) (set charset, single rune, isSet bool) {
	if p.at >= len(p.pattern) {
		p.fail(start, "the pattern ends with a backslash: escape it as \\\\")
	}
	r := p.next()
	if set, ok := shorthand(r, bracket); ok {
		return set, 0, true
	}
	switch {
	case (r == 'p' || r == 'P') && p.take("{"):
		return p.property(start, r == 'P', bracket), 0, true
	case r == 'x' || r == 'u':
		return nil, p.codePoint(start, r), false
	case r >= utf8.RuneSelf || controls[r] == 0 && !isAlphanumeric(r):
		return nil, r, false
	case controls[r] != 0:
		return nil, controls[r], false
	}
	p.fail(start, "\\%c is not supported: write the pattern without it", r)
	return nil, 0, false
}

// shorthand returns the set of an escape such as \s, in brackets or not.
func shorthand(r rune, bracket bool) (set charset, ok bool) {
	lower := r | 0x20
	sets, ok := shorthands[lower]
	if !ok || r >= utf8.RuneSelf {
		return nil, false
	}
	if set = sets(); lower == 'w' && !bracket {
		set = wordAlone()
	}
	if r != lower {
		set = set.complement()
	}
	return set, true
}

func isAlphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z'
}

// codePoint reads \x41, \x{41} or \u0041 after its letter.
func (p *parser) codePoint(start int, letter rune) rune {
	digits, least, most := "", 4, 4
	switch rest := p.pattern[p.at:]; {
	case letter == 'x' && p.take("{"):
		digits, _, _ = strings.Cut(p.pattern[p.at:], "}")
		p.at += len(digits) + 1
		least, most = 1, 8
	case letter == 'x':
		for most = 2; len(digits) < most && len(digits) < len(rest) && isHex(rest[len(digits)]); {
			digits = rest[:len(digits)+1]
		}
		p.at += len(digits)
		least = 1
	case len(rest) >= most:
		digits = rest[:most]
		p.at += most
	}
	r, ok := numbered(digits, least, most)
	if !ok || p.at > len(p.pattern) || most == 2 && r >= utf8.RuneSelf {
		p.fail(start, "the escape is not the number of a character: write it as \\x{…}")
	}
	return r
}

// numbered returns the character whose number has these hexadecimal digits.
func numbered(digits string, least, most int) (r rune, ok bool) {
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || len(digits) < least || len(digits) > most || n > utf8.MaxRune {
		return 0, false
	}
	return rune(n), utf8.ValidRune(rune(n))
}

func isHex(b byte) bool { return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'f' }

// property reads the name of a property up to its brace.
func (p *parser) property(start int, not, bracket bool) charset {
	name, _, ok := strings.Cut(p.pattern[p.at:], "}")
	p.at += len(name) + 1
	if !ok {
		p.fail(start, "the name of the property has no end: add }")
	}
	if rest, negated := strings.CutPrefix(name, "^"); negated {
		name, not = rest, !not
	}
	set, found := known()[plain(name)]
	if !found {
		p.fail(start, "the property %q is not supported; supported are general categories, scripts by their long "+
			"names, and %s",
			name, strings.Join(propertyNames[:len(propertyNames)-2], ", "))
	}
	if plain(name) == "word" && !bracket {
		set = wordAlone
	}
	if not {
		return set().complement()
	}
	return set()
}

// wordAlone is the set of \w outside of brackets, which also decides where words begin and end. It has a few more
// numbers of Latin-1 than \w in brackets.
func wordAlone() charset { return propertySet("word alone") }

// class reads a set in brackets after the first bracket.
func (p *parser) class(o options) charset {
	start := p.at - 1
	if p.depth++; p.depth > maxDepth {
		p.fail(start, "brackets are nested in more than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	not := p.take("^")
	var whole, part charset
	joined, empty := false, true
	and := func() {
		if joined {
			part = whole.intersect(part)
		}
		whole, part, joined = part, nil, true
	}
	for ; ; empty = false {
		switch {
		case p.at >= len(p.pattern):
			p.fail(start, "the bracket is not closed: add ], or escape it as \\[")
		case p.peek() == ']' && !empty:
			p.at++
			if joined {
				and()
				part = whole
			}
			return p.folded(start, part, not, o)
		case p.take("&&"):
			and()
		default:
			part = part.union(p.item(o))
		}
	}
}

// folded applies the options to a set in brackets.
func (p *parser) folded(start int, set charset, not bool, o options) charset {
	if o.ignoreCase {
		if r, ok := set.expands(); ok && !not {
			p.fail(start, "case is ignored, and the set has %q, which equals several characters then; that is not supported: "+
				"leave out (?i)", r)
		}
		set = set.folded()
	}
	if not {
		return set.complement()
	}
	return set
}

// item reads an element of a set in brackets: a character, a range, a set or another bracket.
func (p *parser) item(o options) charset {
	start := p.at
	if p.take("[:") {
		return p.posixBracket(start)
	}
	if p.take("[") {
		// The option to ignore case is applied to the outermost set.
		o.ignoreCase = false
		return p.class(o)
	}
	first, set := p.member()
	if set != nil {
		if p.isRange() {
			p.fail(p.at, "a range begins with a set: escape the hyphen as \\-")
		}
		return set
	}
	if !p.isRange() {
		return of(first)
	}
	p.at++
	if p.peek() == '[' || strings.HasPrefix(p.pattern[p.at:], "&&") {
		p.fail(start, "a range ends with a set: escape the hyphen as \\-")
	}
	last, set := p.member()
	if set != nil || last < first {
		p.fail(start, "the range does not end with a character that is not before its first: write the smaller one first")
	}
	return charset{{first, last}}
}

// isRange reports whether a hyphen follows that is not the last character of the brackets.
func (p *parser) isRange() bool {
	rest := p.pattern[p.at:]
	return len(rest) > 1 && rest[0] == '-' && rest[1] != ']'
}

// member reads a character in brackets, or an escape for a set.
func (p *parser) member() (rune, charset) {
	start := p.at
	if p.at >= len(p.pattern) {
		p.fail(start, "the bracket is not closed: add ]")
	}
	if !p.take("\\") {
		return p.next(), nil
	}
	if p.peek() == 'R' || p.peek() == 'N' || p.peek() == 'O' {
		p.fail(start, "\\%c is not supported in brackets", p.peek())
	}
	set, single, isSet := p.setEscape(start, true)
	if isSet && set == nil {
		set = charset{}
	}
	if isSet {
		return 0, set
	}
	return single, nil
}

func (p *parser) posixBracket(start int) charset {
	name, _, ok := strings.Cut(p.pattern[p.at:], ":]")
	p.at += len(name) + 2
	rest, not := strings.CutPrefix(name, "^")
	var set charset
	switch {
	case !ok:
		p.fail(start, "the bracket is not closed: escape it as \\[")
	case rest == "punct":
		set = propertySet("posix punct")
	case posix[rest] == "":
		p.fail(start, "the bracket [:%s:] is not known", name)
	default:
		set = known()[posix[rest]]()
	}
	if not {
		return set.complement()
	}
	return set
}
