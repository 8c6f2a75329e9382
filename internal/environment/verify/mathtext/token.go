// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"math/big"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind uint8

const (
	kindEnd kind = iota
	kindNumber
	kindLetter
	kindCommand
	kindSign
	kindText
	kindBegin // The beginning of an environment such as a matrix.
	kindClose // Its end.
)

// token is a part of an answer. White space is not one.
type token struct {
	kind kind
	text string
	// number is the value of a number.
	number *big.Rat
	// spaced means that white space is before the token.
	spaced bool
	// apart means that a space that LaTeX does not ignore is before the token.
	apart bool
	// upright means that the letter was written as a unit is.
	upright bool
	// word is the plain word that begins with this letter.
	word string
}

// is reports whether the token is this sign.
func (t token) is(sign string) bool { return t.kind == kindSign && t.text == sign }

// lexer cuts an answer into tokens. White space separates tokens here, so that none are glued together.
type lexer struct {
	rest   string
	tokens []token
	spaced bool
	apart  bool
	// environments counts the matrices that are open, in which \\ ends a row.
	environments int
	// systems counts the environments that are open in which \\ separates equations.
	systems int
	depth   int
}

// tokenize returns the tokens of an answer, without styles, currencies and the punctuation at its end.
func tokenize(text string) []token {
	l := &lexer{rest: plain(text)}
	l.run()
	tokens := l.tokens
	for len(tokens) > 0 && strings.Contains(".,;", tokens[len(tokens)-1].text) && tokens[len(tokens)-1].kind == kindSign {
		tokens = tokens[:len(tokens)-1]
	}
	return tokens
}

// canonical returns the tokens as a text, in which answers that only differ in spaces and styles are the same.
func canonical(tokens []token) string {
	var out strings.Builder
	for i, t := range tokens {
		switch t.kind {
		case kindCommand:
			out.WriteString(`\` + t.text + " ")
		case kindText:
			out.WriteString(t.text)
		case kindNumber:
			if i > 0 && tokens[i-1].kind == kindNumber {
				out.WriteByte(' ')
			}
			out.WriteString(t.text)
		case kindSign:
			if (t.text == "{" || t.text == "}") && isNeedless(tokens, i) {
				continue
			}
			out.WriteString(t.text)
		default:
			out.WriteString(t.text)
		}
	}
	return out.String()
}

// isNeedless reports whether a brace is around one letter, or around an index or exponent of one digit that no digit
// follows.
func isNeedless(tokens []token, brace int) bool {
	open := brace
	if tokens[brace].text == "}" {
		open -= 2
	}
	if open < 0 || open+2 >= len(tokens) || !tokens[open].is("{") || !tokens[open+2].is("}") {
		return false
	}
	switch content := tokens[open+1]; content.kind {
	case kindLetter:
		return true
	case kindNumber:
		isScript := open > 0 && (tokens[open-1].is("^") || tokens[open-1].is("_"))
		return isScript && len(content.text) == 1 && (open+3 == len(tokens) || tokens[open+3].kind != kindNumber)
	default:
		return false
	}
}

func (l *lexer) run() {
	for l.rest != "" {
		r, size := utf8.DecodeRuneInString(l.rest)
		switch {
		case unicode.IsSpace(r):
			l.rest, l.spaced = l.rest[size:], true
		case r == '\\':
			l.rest = l.rest[1:]
			l.command()
		case isDigit(l.rest) || r == '.' && isDigit(l.rest[1:]):
			l.digits()
		case isLetter(l.rest):
			l.letters()
		default:
			l.sign(size)
		}
	}
}

func (l *lexer) emit(t token) {
	t.spaced, l.spaced = l.spaced, false
	t.apart, l.apart = l.apart, false
	l.tokens = append(l.tokens, t)
}

func (l *lexer) last() token {
	if len(l.tokens) == 0 {
		return token{}
	}
	return l.tokens[len(l.tokens)-1]
}

func isDigit(text string) bool { return text != "" && text[0] >= '0' && text[0] <= '9' }

func isLetter(text string) bool {
	return text != "" && (text[0] >= 'a' && text[0] <= 'z' || text[0] >= 'A' && text[0] <= 'Z')
}

// prefix returns the longest beginning of the text for whose characters the function is true.
func prefix(text string, is func(string) bool) string {
	end := 0
	for is(text[end:]) {
		end++
	}
	return text[:end]
}

// signs of several characters.
var signs = []string{"<=", ">=", "!=", "**", "...", "==", "=>"}

func (l *lexer) sign(size int) {
	text := l.rest[:size]
	for _, sign := range signs {
		if strings.HasPrefix(l.rest, sign) {
			text = sign
		}
	}
	l.rest = l.rest[len(text):]
	switch text {
	case "**":
		text = "^"
	case "==":
		text = "="
	case "...":
		l.emit(token{kind: kindCommand, text: "ldots"})
		return
	case "\x00":
		text = ","
	case ";":
		text = ","
	}
	// Two separators in a row are one.
	if text == "," && l.last().is(",") {
		return
	}
	l.emit(token{kind: kindSign, text: text})
}

// letters reads a plain word: a separator, functions, a Greek letter, or variables.
func (l *lexer) letters() {
	word := prefix(l.rest, isLetter)
	l.rest = l.rest[len(word):]
	isTimes := word == "x" && l.last().kind == kindNumber && strings.HasPrefix(strings.TrimLeft(l.rest, " "), "10^")
	switch lower := strings.ToLower(word); {
	case isTimes: // As in 3 x 10^8.
		l.emit(token{kind: kindSign, text: "*"})
		return
	case lower == "and" || lower == "or":
		l.separator(lower)
		return
	case word == "pi" || greek[word] || greek[synonyms[word]]:
		l.name(word)
		return
	}
	whole := word
	for at := 0; at < len(word); {
		if name := functionIn(word[at:]); name != "" && !plainUnits[singular(word)] {
			if at += len(name); name == "sqrt" {
				name = "surd" // It reaches over a whole number.
			}
			l.name(name)
			continue
		}
		t := token{kind: kindLetter, text: word[at : at+1]}
		if at == 0 {
			t.word = whole
		}
		l.emit(t)
		at++
	}
}

// functionIn returns the longest function, or pi, that the word begins with.
func functionIn(word string) string {
	for end := min(len(word), 6); end > 1; end-- {
		if functions[word[:end]] || word[:end] == "pi" {
			return word[:end]
		}
	}
	return ""
}

func (l *lexer) separator(word string) {
	if word == "and" {
		word = ","
	}
	if l.last().is(",") {
		l.tokens = l.tokens[:len(l.tokens)-1]
	}
	l.emit(token{kind: kindSign, text: word})
}

// name emits a command under the name that it has here.
func (l *lexer) name(name string) {
	if synonym, ok := synonyms[name]; ok {
		name = synonym
	}
	if name == "and" || name == "or" {
		l.separator(name)
		return
	}
	if sign, ok := punctuation[name]; ok {
		l.emit(token{kind: kindSign, text: sign})
		return
	}
	l.emit(token{kind: kindCommand, text: name})
}

// command reads a command behind a backslash.
func (l *lexer) command() {
	// A command may be escaped once too often, where no row of a matrix can end.
	if strings.HasPrefix(l.rest, `\`) && l.environments+l.systems == 0 && isLetter(l.rest[1:]) {
		l.rest = l.rest[1:]
	}
	name := prefix(l.rest, isLetter)
	l.rest = l.rest[len(name):]
	switch {
	case name == "":
		l.escaped()
	case name == "left" || name == "right":
		l.rest = strings.TrimPrefix(l.rest, ".")
	case dropped[name]:
		l.drop(name)
	case hidden[name]:
		l.braced()
	case texts[name] || styles[name]:
		l.rest = strings.TrimPrefix(l.rest, "*") // As in \operatorname*.
		l.styled(name)
	case name == "mathbb":
		l.blackboard()
	case name == "begin" || name == "end":
		l.environment(name)
	default:
		l.name(name)
	}
}

// drop leaves a command out, and the m of m\angle, the measure of an angle.
func (l *lexer) drop(name string) {
	if last := l.last(); name == "angle" && last.kind == kindLetter && last.text == "m" {
		l.tokens = l.tokens[:len(l.tokens)-1]
	}
	l.spaced = true
}

// blackboard reads the name of a set of numbers.
func (l *lexer) blackboard() {
	if content := l.braced(); content == "R" {
		l.name("reals")
	} else {
		l.emit(token{kind: kindText, text: content})
	}
}

// escaped reads a backslash that no letter follows.
func (l *lexer) escaped() {
	if l.rest == "" {
		return
	}
	_, size := utf8.DecodeRuneInString(l.rest)
	text := l.rest[:size]
	l.rest = l.rest[size:]
	switch text {
	case `\`:
		if l.systems > 0 && l.environments == 0 {
			l.separator("and")
			return
		}
		l.emit(token{kind: kindSign, text: `\\`})
	case "{", "}":
		l.emit(token{kind: kindSign, text: `\` + text})
	case "[", "]": // The delimiters of a formula.
	case "|":
		l.emit(token{kind: kindText, text: "norm"})
	default:
		l.spaced, l.apart = true, true
	}
}

// braced returns and removes the content of braces, or the next character.
func (l *lexer) braced() string {
	l.rest = strings.TrimLeft(l.rest, " ")
	if !strings.HasPrefix(l.rest, "{") {
		_, size := utf8.DecodeRuneInString(l.rest)
		content := l.rest[:size]
		l.rest = l.rest[size:]
		return content
	}
	content, rest, ok := cutBraces(l.rest)
	if !ok {
		content, rest = l.rest[1:], ""
	}
	l.rest = rest
	return content
}

// environment reads the name of an environment and the columns of an array.
func (l *lexer) environment(command string) {
	name := strings.TrimRight(l.braced(), "*")
	if name == "array" && command == "begin" {
		l.braced()
	}
	switch {
	case systems[name] && command == "begin":
		l.systems++
	case systems[name]:
		l.systems--
	case command == "begin":
		l.environments++
		l.emit(token{kind: kindBegin, text: name})
	default:
		l.environments--
		l.emit(token{kind: kindClose, text: name})
	}
}

// deepestStyle bounds styles within styles.
const deepestStyle = 8

// styled reads the argument of a style: words, a unit, or mathematics in another font.
func (l *lexer) styled(name string) {
	content := l.braced()
	plain := strings.TrimSpace(strings.ReplaceAll(content, `\ `, " "))
	switch lower := strings.ToLower(strings.Trim(plain, " ,.")); {
	case plain == "":
		l.spaced = true
	case lower == "and" || lower == "or":
		l.separator(lower)
	case functions[plain]:
		l.name(plain)
	case len(plain) == 1 && isLetter(plain) && content == plain:
		l.emit(token{kind: kindLetter, text: plain, upright: name == "mathrm" || texts[name]})
	case l.depth < deepestStyle && isMathematics(name, plain):
		l.depth++
		rest := l.rest
		l.rest = content
		l.run()
		l.rest = rest
		l.depth--
	default:
		l.words(plain)
	}
}

// words emits a text. If it begins with a number, the other words are the unit of the number.
func (l *lexer) words(text string) {
	fields := strings.Fields(text)
	if isDigit(text) && len(fields) > 1 && isMathematics("text", fields[0]) {
		rest := strings.Join(fields[1:], " ")
		isOther := func(word string) bool { return word == "or" || word == "and" || word == "to" }
		if !strings.ContainsAny(rest, "0123456789") && !slices.ContainsFunc(fields, isOther) {
			saved := l.rest
			l.rest = fields[0]
			l.run()
			l.rest = saved
			fields = fields[1:]
		}
	}
	l.emit(token{kind: kindText, text: strings.Join(fields, " ")})
}

// isMathematics reports whether the argument of a style is mathematics, and not words.
func isMathematics(style, content string) bool {
	if texts[style] || style == "mathrm" {
		letters := strings.Trim(content, "()[].-+0123456789, ")
		return letters == "" || len(letters) == 1 && isLetter(letters) && strings.HasPrefix(content, "(") ||
			strings.HasPrefix(content, `\`)
	}
	return true
}
