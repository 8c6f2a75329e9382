// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"math/big"
	"strconv"
	"strings"
)

// digits reads a number: digits, perhaps in groups, with a point, an exponent, or digits that repeat for ever.
func (l *lexer) digits() {
	whole := l.groups()
	fraction := ""
	if strings.HasPrefix(l.rest, ".") && (isDigit(l.rest[1:]) || repetend(l.rest[1:]) != "") {
		fraction = prefix(l.rest[1:], isDigit)
		l.rest = l.rest[1+len(fraction):]
		if command := repetend(l.rest); command != "" {
			l.rest = l.rest[len(command):]
			l.repeating(whole, fraction, l.braced())
			return
		}
		if block, ok := repeated(fraction); ok && l.takeDots() {
			l.repeating(whole, fraction, block)
			return
		}
	}
	text := whole
	if fraction != "" {
		text += "." + fraction
	}
	l.emitNumber(text + l.exponent())
}

// emitNumber emits a number as it is written, with a digit before a point.
func (l *lexer) emitNumber(text string) {
	if !isDigit(text) {
		text = "0" + text
	}
	value, ok := new(big.Rat).SetString(text)
	if !ok {
		value = nil
	}
	l.emit(token{kind: kindNumber, text: text, number: value})
}

// groups reads digits, or groups of three digits that are joined by a separator other than a comma.
func (l *lexer) groups() string {
	digits := prefix(l.rest, isDigit)
	l.rest = l.rest[len(digits):]
	if len(digits) == 0 || len(digits) > 3 || digits[0] == '0' {
		return digits
	}
	for {
		gap := prefix(l.rest, func(text string) bool { return text != "" && strings.Contains(" \\\x00,", text[:1]) })
		switch strings.ReplaceAll(gap, " ", "") {
		case "\x00", `\`, `,\`: // A comma in braces, a thin space, or a comma before one.
		case "":
			if gap == "" {
				return digits
			}
		default:
			return digits
		}
		group := prefix(l.rest[len(gap):], isDigit)
		rest := l.rest[len(gap)+len(group):]
		if len(group) != 3 || strings.HasPrefix(strings.TrimLeft(rest, " "), "/") {
			return digits
		}
		digits, l.rest = digits+group, rest
	}
}

// largestExponentText bounds the exponent that a number is written with.
const largestExponentText = 20_000

// exponent reads the exponent of a number, as in 1.5e3.
func (l *lexer) exponent() string {
	if l.rest == "" || l.rest[0] != 'e' && l.rest[0] != 'E' {
		return ""
	}
	sign := ""
	rest := l.rest[1:]
	if strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
		sign, rest = rest[:1], rest[1:]
	}
	digits := prefix(rest, isDigit)
	size, err := strconv.Atoi(digits)
	after := rest[len(digits):]
	if err != nil || size > largestExponentText || isLetter(after) || strings.HasPrefix(after, ".") {
		return ""
	}
	l.rest = after
	return "e" + sign + digits
}

// repetend returns the command before digits that repeat, or nothing.
func repetend(text string) string {
	for _, command := range []string{`\overline`, `\bar`, `\dot`} {
		if rest, ok := strings.CutPrefix(text, command); ok && (strings.HasPrefix(rest, "{") || isDigit(rest)) {
			return command
		}
	}
	return ""
}

// takeDots removes the dots after digits that repeat.
func (l *lexer) takeDots() bool {
	rest := strings.TrimLeft(l.rest, " ")
	for _, dots := range []string{`\ldots`, `\dots`, `\cdots`, "..."} {
		if after, ok := strings.CutPrefix(rest, dots); ok {
			l.rest = after
			return true
		}
	}
	return false
}

// repeated returns the shortest block that the digits end with three times, or twice if it has several digits.
func repeated(digits string) (block string, ok bool) {
	for size := 1; 2*size <= len(digits); size++ {
		block := digits[len(digits)-size:]
		times := 3
		if size > 1 {
			times = 2
		}
		if strings.HasSuffix(digits, strings.Repeat(block, times)) {
			return block, true
		}
	}
	return "", false
}

// repeating emits a number whose fraction ends with a block that repeats for ever.
func (l *lexer) repeating(whole, fraction, block string) {
	head, okHead := new(big.Rat).SetString("0" + whole + "." + fraction + "0")
	tail, okTail := new(big.Rat).SetString(block)
	if !okHead || !okTail || prefix(block, isDigit) != block {
		l.emit(token{kind: kindText, text: whole + "." + fraction + "(" + block + ")"})
		return
	}
	ten := big.NewInt(10)
	shift := new(big.Int).Exp(ten, big.NewInt(int64(len(fraction))), nil)
	nines := new(big.Int).Exp(ten, big.NewInt(int64(len(block))), nil)
	nines.Sub(nines, big.NewInt(1))
	tail.Quo(tail, new(big.Rat).SetInt(nines.Mul(nines, shift)))
	value := head.Add(head, tail)
	l.emit(token{kind: kindNumber, text: value.RatString(), number: value})
}

// joinThousands returns the tokens with the commas between groups of three digits removed, and whether there are any.
func joinThousands(tokens []token) (joined []token, changed bool) {
	for i := 0; i < len(tokens); i++ {
		first := tokens[i]
		joined = append(joined, first)
		if first.kind != kindNumber || len(first.text) > 3 || prefix(first.text, isDigit) != first.text || first.text == "0" {
			continue
		}
		text := first.text
		for i+2 < len(tokens) && isGroup(tokens[i+1], tokens[i+2]) && !strings.Contains(text, ".") {
			text += tokens[i+2].text
			i += 2
		}
		if text == first.text {
			continue
		}
		if value, ok := new(big.Rat).SetString(text); ok {
			joined[len(joined)-1] = token{kind: kindNumber, text: text, number: value, spaced: first.spaced}
			changed = true
		}
	}
	return joined, changed
}

// isGroup reports whether a comma and a number continue a number.
func isGroup(comma, group token) bool {
	whole, _, _ := strings.Cut(group.text, ".")
	isAdjacent := comma.is(",") && !comma.spaced && group.kind == kindNumber && !group.spaced
	return isAdjacent && len(whole) == 3 && prefix(whole, isDigit) == whole
}
