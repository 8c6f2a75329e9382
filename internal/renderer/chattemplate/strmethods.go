// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"strings"
	"unicode"

	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

type strMethod func(e *evaluator, s str, a args) any

// strMethods are the methods of str. init fills the map, because format reaches attributes of values.
var strMethods map[string]strMethod

func init() {
	strMethods = map[string]strMethod{
		"lower": mapped("lower", lower), "casefold": mapped("casefold", lower),
		"upper":      mapped("upper", upper),
		"capitalize": mapped("capitalize", capitalize), "title": mapped("title", titled),
		"swapcase": mapped("swapcase", swapped),
		"strip":    strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
		"startswith": affixed(strings.HasPrefix), "endswith": affixed(strings.HasSuffix),
		"removeprefix": without(true), "removesuffix": without(false),
		"find": find("find", false), "rfind": find("rfind", true),
		"index": index(find("index", false)), "rindex": index(find("rindex", true)),
		"count": countMethod, "replace": replaceMethod, "join": joinMethod,
		"split": split(false), "rsplit": split(true), "splitlines": splitLines,
		"partition": partition(false), "rpartition": partition(true),
		"center": pad("center", '^'), "ljust": pad("ljust", '<'), "rjust": pad("rjust", '>'), "zfill": zeroFill,
		"format": formatMethod, "format_map": formatMap,
		"isalpha": all(unicode.IsLetter), "isdigit": all(unicode.IsDigit), "isdecimal": all(unicode.IsDigit),
		"isnumeric": all(unicode.IsNumber), "isspace": all(pyjson.IsSpace),
		"isalnum":     all(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isprintable": property(func(s str) bool { return !strings.ContainsFunc(s.text, isHidden) }),
		"isascii":     property(str.ascii), "islower": property(isLower), "isupper": property(isUpper),
		"istitle": property(isTitle), "isidentifier": property(isIdentifier),
	}
}

// upperOf has the characters that become several in upper case.
var upperOf = map[rune]string{
	'ß': "SS", 'ŉ': "ʼN", 'ǰ': "J̌", 'ΐ': "Ϊ́", 'ΰ': "Ϋ́", 'և': "ԵՒ",
	'ﬀ': "FF", 'ﬁ': "FI", 'ﬂ': "FL", 'ﬃ': "FFI", 'ﬄ': "FFL",
	'ﬅ': "ST", 'ﬆ': "ST",
}

func upperRune(r rune) string {
	if out, ok := upperOf[r]; ok {
		return out
	}
	return string(unicode.ToUpper(r))
}

func lowerRune(r rune) string {
	if r == 'İ' {
		return "i̇"
	}
	return string(unicode.ToLower(r))
}

func titleRune(r rune) string {
	if r == 'ß' {
		return "Ss"
	}
	return string(unicode.ToTitle(r))
}

func upper(s str) str { return s.mapRunes(func(_ int, r rune) string { return upperRune(r) }) }

func isHidden(r rune) bool { return !isPrintable(r) }

func isIdentifier(s str) bool {
	other := func(r rune) bool { return !isWord(r) }
	return s.text != "" && !strings.ContainsFunc(s.text, other) && strings.IndexFunc(s.text, unicode.IsDigit) != 0
}

func isCased(r rune) bool { return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) }

func lower(s str) str {
	return s.mapRunes(func(i int, r rune) string {
		if r == 'Σ' && finalSigma(s.text, i) {
			return "ς"
		}
		return lowerRune(r)
	})
}

// finalSigma reports whether a sigma ends a word.
func finalSigma(text string, i int) bool {
	skip := func(r rune) bool { return unicode.IsMark(r) || strings.ContainsRune("'.:·’", r) }
	before := []rune(strings.TrimRightFunc(text[:i], skip))
	after := []rune(strings.TrimLeftFunc(text[i+len("Σ"):], skip))
	return len(before) > 0 && isCased(before[len(before)-1]) && (len(after) == 0 || !isCased(after[0]))
}

func capitalize(s str) str {
	return s.mapRunes(func(i int, r rune) string {
		if i == 0 {
			return titleRune(r)
		}
		return lowerRune(r)
	})
}

func titled(s str) str {
	inside := false
	return s.mapRunes(func(_ int, r rune) string {
		begin := !inside
		inside = isCased(r)
		if begin {
			return titleRune(r)
		}
		return lowerRune(r)
	})
}

func swapped(s str) str {
	return s.mapRunes(func(_ int, r rune) string {
		if unicode.IsUpper(r) {
			return lowerRune(r)
		}
		return upperRune(r)
	})
}

// mapped is a method without arguments.
func mapped(name string, f func(s str) str) strMethod {
	return func(e *evaluator, s str, a args) any {
		a.only(e, name, 0, 0)
		e.bytes(len(s.text) * 2)
		return f(s)
	}
}

func property(f func(s str) bool) strMethod {
	return func(e *evaluator, s str, a args) any {
		a.only(e, "the method", 0, 0)
		e.bytes(len(s.text))
		return f(s)
	}
}

func all(f func(r rune) bool) strMethod {
	return property(func(s str) bool {
		return s.text != "" && strings.IndexFunc(s.text, func(r rune) bool { return !f(r) }) < 0
	})
}

// onlyCase reports whether a string has cased characters and no bad ones.
func onlyCase(s str, bad func(r rune) bool) bool {
	return strings.IndexFunc(s.text, isCased) >= 0 && strings.IndexFunc(s.text, bad) < 0
}

func isLower(s str) bool {
	return onlyCase(s, func(r rune) bool { return unicode.IsUpper(r) || unicode.IsTitle(r) })
}
func isUpper(s str) bool {
	return onlyCase(s, func(r rune) bool { return unicode.IsLower(r) || unicode.IsTitle(r) })
}
func isTitle(s str) bool {
	return onlyCase(s, func(rune) bool { return false }) && titled(s).text == s.text
}

// strip removes characters at the ends.
func strip(left, right bool) strMethod {
	return func(e *evaluator, s str, a args) any {
		p := a.only(e, "strip", 0, 1)
		in := pyjson.IsSpace
		if len(p) == 1 && p[0] != nil {
			set := e.text(p[0]).text
			in = func(r rune) bool { return strings.ContainsRune(set, r) }
		}
		e.bytes(len(s.text))
		begin, end := 0, len(s.text)
		if left {
			begin = end - len(strings.TrimLeftFunc(s.text, in))
		}
		if right {
			end = begin + len(strings.TrimRightFunc(s.text[begin:], in))
		}
		return s.cut(begin, end)
	}
}

// window limits a string to the bounds that follow an argument.
func (e *evaluator) window(s str, p []any) (text string, from int, ok bool) {
	size := s.count()
	first, last := 0, size
	if len(p) > 1 {
		first = e.bound(p[1], 0, 0, size+1, size)
	}
	if len(p) > 2 {
		last = e.bound(p[2], size, 0, size, size)
	}
	if first > last {
		return "", first, false
	}
	at := s.offsets()
	return s.text[at[first]:at[last]], first, true
}

func affixed(has func(text, affix string) bool) strMethod {
	return func(e *evaluator, s str, a args) any {
		p := a.only(e, "startswith or endswith", 1, 3)
		e.bytes(len(s.text))
		text, _, ok := e.window(s, p)
		affixes, isList := p[0].(*list)
		if !isList || !affixes.tuple {
			return has(text, e.text(p[0]).text) && ok
		}
		for _, affix := range affixes.items {
			if has(text, e.text(affix).text) && ok {
				return true
			}
		}
		return false
	}
}

func without(prefix bool) strMethod {
	return func(e *evaluator, s str, a args) any {
		affix := e.text(a.only(e, "removeprefix or removesuffix", 1, 1)[0]).text
		switch {
		case prefix && strings.HasPrefix(s.text, affix):
			return s.cut(len(affix), len(s.text))
		case !prefix && strings.HasSuffix(s.text, affix):
			return s.cut(0, len(s.text)-len(affix))
		}
		return s
	}
}

func find(name string, fromEnd bool) strMethod {
	return func(e *evaluator, s str, a args) any {
		p := a.only(e, name, 1, 3)
		part := e.text(p[0]).text
		e.bytes(len(s.text))
		text, from, ok := e.window(s, p)
		search := strings.Index
		if fromEnd {
			search = strings.LastIndex
		}
		i := search(text, part)
		if !ok || i < 0 {
			return integer(-1)
		}
		return integer(from + lit(text[:i]).count())
	}
}

func index(find strMethod) strMethod {
	return func(e *evaluator, s str, a args) any {
		at := find(e, s, a)
		if e.small(at) < 0 {
			e.fail("substring not found")
		}
		return at
	}
}

func countMethod(e *evaluator, s str, a args) any {
	p := a.only(e, "count", 1, 3)
	part := e.text(p[0]).text
	e.bytes(len(s.text))
	text, _, ok := e.window(s, p)
	if !ok {
		return integer(0)
	}
	return integer(strings.Count(text, part))
}
