// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

type tokenKind int

const (
	endOfSource tokenKind = iota
	dataToken
	blockBegin
	blockEnd
	variableBegin
	variableEnd
	nameToken
	stringToken
	integerToken
	floatToken
	operator
)

type token struct {
	kind tokenKind
	text string
	at   int
	line int
}

// lexer splits a template into tokens.
type lexer struct {
	source  string
	at      int
	tokens  []token
	line    int // of the last token
	counted int // the bytes up to it
	// lineStart says that the last match ended with a newline, so that white space before a block is at a line's start.
	lineStart bool
}

// newlines replaces all line ends with a newline.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func newLexer(source string) *lexer {
	if !utf8.ValidString(source) {
		source = strings.ToValidUTF8(source, "\uFFFD")
	}
	source = strings.TrimSuffix(newlines.Replace(source), "\n")
	l := &lexer{source: source, lineStart: true, line: 1}
	for l.at < len(l.source) {
		l.root()
	}
	l.emit(endOfSource, "", l.at)
	return l
}

func (l *lexer) emit(kind tokenKind, text string, at int) {
	l.line += strings.Count(l.source[l.counted:at], "\n")
	l.counted = at
	l.tokens = append(l.tokens, token{kind, text, at, l.line})
}

// fail stops the parsing at a byte of the source.
func (l *lexer) fail(at int, message string) {
	before := l.source[:min(at, len(l.source))]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:]) + 1
	panic(&SyntaxError{line, column, message})
}

// rest returns the unread source.
func (l *lexer) rest() string { return l.source[l.at:] }

// advance moves on and notes whether the match ended a line.
func (l *lexer) advance(to int) {
	if to > l.at {
		l.lineStart = l.source[to-1] == '\n'
	}
	l.at = to
}

// root reads text up to the next tag, and the tag.
func (l *lexer) root() {
	begin := l.at
	tag := -1
	for i := begin; i+1 < len(l.source); i++ {
		if l.source[i] == '{' && strings.IndexByte("{%#", l.source[i+1]) >= 0 {
			tag = i
			break
		}
	}
	if tag < 0 {
		l.emit(dataToken, l.rest(), begin)
		l.advance(len(l.source))
		return
	}
	kind, after := l.source[tag+1], tag+2
	sign := l.sign(after)
	l.data(begin, tag, sign, kind == '{')
	after += len(sign)
	if m := rawBegin.FindStringIndex(l.source[tag:]); m != nil {
		l.advance(tag + m[1])
		l.raw()
		return
	}
	l.advance(after)
	switch kind {
	case '#':
		l.comment(tag)
	case '%':
		l.emit(blockBegin, "", tag)
		l.expression(blockTag, blockEnd, tag)
	default:
		l.emit(variableBegin, "", tag)
		l.expression(variableTag, variableEnd, tag)
	}
}

// sign returns the sign of white-space control at a byte, or nothing.
func (l *lexer) sign(at int) string {
	if at < len(l.source) && (l.source[at] == '-' || l.source[at] == '+') {
		return l.source[at : at+1]
	}
	return ""
}

// data emits text before a tag, without the white space that the tag takes away.
func (l *lexer) data(begin, end int, sign string, variable bool) {
	text := l.source[begin:end]
	switch {
	case sign == "-":
		text = pyjson.StripRight(text)
	case sign == "" && !variable:
		line := strings.LastIndexByte(text, '\n') + 1
		if (line > 0 || l.lineStart) && pyjson.Strip(text[line:]) == "" {
			text = text[:line]
		}
	}
	if text != "" {
		l.emit(dataToken, text, begin)
	}
}

var (
	space       = "[\\s\\v\x1c-\x1f\\x{85}\\p{Z}]*"
	rawBegin    = regexp.MustCompile("^\\{%[-+]?" + space + "raw" + space + "(?:-%\\}" + space + "|%\\})")
	rawEnd      = regexp.MustCompile("\\{%([-+]?)" + space + "endraw" + space + "(?:\\+%\\}|-%\\}" + space + "|%\\}\n?)")
	commentEnd  = regexp.MustCompile("\\+#\\}|-#\\}" + space + "|#\\}\n?")
	blockTag    = regexp.MustCompile("^(?:\\+%\\}|-%\\}" + space + "|%\\}\n?)")
	variableTag = regexp.MustCompile("^(?:-\\}\\}" + space + "|\\}\\})")
	floats      = regexp.MustCompile(`^(?i:(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?e[-+]?(?:\d+_)*\d+|\.(?:\d+_)*\d+))`)
	integers    = regexp.MustCompile(`^(?i:0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[0-9a-f])+|[1-9](?:_?\d)*|0(?:_?0)*)`)
	texts       = regexp.MustCompile("^(?s:'[^'\\\\]*(?:\\\\.[^'\\\\]*)*'|\"[^\"\\\\]*(?:\\\\.[^\"\\\\]*)*\")")
	operators   = regexp.MustCompile(`^(?://|\*\*|==|!=|>=|<=|[-+/*%~\[\](){}><=.:|,;])`)
)

// raw reads text that is not a template, up to its endraw.
func (l *lexer) raw() {
	m := rawEnd.FindStringSubmatchIndex(l.rest())
	if m == nil {
		l.fail(l.at, "missing end of raw block")
	}
	l.data(l.at, l.at+m[0], l.rest()[m[2]:m[3]], false)
	l.advance(l.at + m[1])
}

func (l *lexer) comment(tag int) {
	m := commentEnd.FindStringIndex(l.rest())
	if m == nil {
		l.fail(tag, "missing end of comment tag")
	}
	l.advance(l.at + m[1])
}

// expression reads the tokens of a tag and its end.
func (l *lexer) expression(end *regexp.Regexp, kind tokenKind, tag int) {
	var open []byte
	for {
		if l.at >= len(l.source) {
			l.fail(tag, "missing end of tag")
		}
		if len(open) == 0 && strings.IndexByte("-+%}", l.source[l.at]) >= 0 {
			if m := end.FindStringIndex(l.rest()); m != nil {
				l.emit(kind, "", l.at)
				l.advance(l.at + m[1])
				return
			}
		}
		if trimmed := pyjson.StripLeft(l.rest()); len(trimmed) < len(l.rest()) {
			l.advance(len(l.source) - len(trimmed))
			continue
		}
		found, text := l.match()
		if found == operator {
			open = l.balance(open, text[0])
		}
		l.emit(found, text, l.at)
		l.advance(l.at + len(text))
	}
}

// match finds the token at the current byte.
func (l *lexer) match() (tokenKind, string) {
	rest := l.rest()
	// The first byte decides which expression is tried, because each try takes time proportional to the rest of the
	// source.
	if rest[0] >= '0' && rest[0] <= '9' {
		rest := rest[:len(rest)-len(strings.TrimLeftFunc(rest, inNumber))]
		if text := floats.FindString(rest); text != "" && l.source[l.at-1] != '.' {
			return floatToken, text
		}
		if text := integers.FindString(rest); text != "" {
			return integerToken, text
		}
	}
	if i := strings.IndexFunc(rest, func(r rune) bool { return !isWord(r) }); i != 0 {
		if i < 0 {
			i = len(rest)
		}
		if first, _ := utf8.DecodeRuneInString(rest); first == '_' || unicode.IsLetter(first) {
			return nameToken, rest[:i]
		}
		l.fail(l.at, "invalid character in identifier")
	}
	if rest[0] == '\'' || rest[0] == '"' {
		if text := texts.FindString(rest); text != "" {
			return stringToken, text
		}
	}
	text := operators.FindString(rest[:min(2, len(rest))])
	if text == "" {
		r, _ := utf8.DecodeRuneInString(rest)
		l.fail(l.at, "unexpected character "+string(r))
	}
	return operator, text
}

func inNumber(r rune) bool {
	return r < utf8.RuneSelf && (isWord(r) || r == '.' || r == '+' || r == '-')
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || r >= utf8.RuneSelf && unicode.IsMark(r)
}

// balance follows brackets, because a tag cannot end inside them.
func (l *lexer) balance(open []byte, c byte) []byte {
	switch c {
	case '{':
		return append(open, '}')
	case '(':
		return append(open, ')')
	case '[':
		return append(open, ']')
	case '}', ')', ']':
		if len(open) == 0 || open[len(open)-1] != c {
			l.fail(l.at, "unexpected "+string(c))
		}
		return open[:len(open)-1]
	}
	return open
}
