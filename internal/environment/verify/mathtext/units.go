// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"math/big"
	"slices"
	"strings"
)

// knownUnits maps the words for units to the names of the units. Two different names contradict each other.
var knownUnits = merged(
	`mm=mm millimeter=mm millimetre=mm cm=cm centimeter=cm centimetre=cm km=km kilometer=km kilometre=km
	m=m meter=m metre=m mile=mile mi=mile inch=inch inches=inch in=inch foot=foot feet=foot ft=foot yard=yard yd=yard
	second=s sec=s s=s minute=minute min=minute hour=hour hr=hour h=hour day=day week=week month=month year=year
	g=g gram=g kg=kg kilogram=kg mg=mg milligram=mg pound=pound lb=pound ounce=ounce oz=ounce ton=ton
	liter=liter litre=liter l=liter ml=ml milliliter=ml gallon=gallon
	degree=degree radian=radian percent=percent percentage=percent pct=percent dollar=dollar cent=cent euro=euro
	mph=mile-per-hour kph=km-per-hour square=2 sq=2 squared=2 cubic=3 cubed=3 per=/ am=am pm=pm
	north=north south=south east=east west=west left=left right=right up=up down=down
	clockwise=clockwise counterclockwise=counterclockwise`)

// plainUnits are the words that are read as units behind a number even without a style.
var plainUnits = set(
	`mm cm km m kg mph kph degree percent percentage pct dollar cent unit millimeter centimeter kilometer
	meter mile inch inches foot feet yard second minute hour day week month year gram kilogram pound liter litre ft in lb oz min hr sec yd
	square cubic am pm`)

// spacedUnits are plain units that could be products of variables. They need a space before them.
var spacedUnits = set("in am pm lb oz hr yd min sec")

// scales are words that multiply.
var scales = map[string]int64{"dozen": 12, "hundred": 100, "thousand": 1e3, "million": 1e6, "billion": 1e9,
	"trillion": 1e12}

// singular returns a word of a unit in small letters and without the ending of the plural.
func singular(word string) string {
	word = strings.ToLower(word)
	if _, known := knownUnits[word]; !known && len(word) > 3 {
		return strings.TrimSuffix(word, "s")
	}
	return word
}

// startsUnit reports whether a unit follows the expression.
func (p *parser) startsUnit(left *node) bool {
	t := p.peek()
	if t.kind == kindText || t.kind == kindLetter && t.upright && knownUnits[singular(t.text)] != "" ||
		len(p.unitFraction()) > 0 {
		return true
	}
	word := singular(t.word)
	if !plainUnits[word] && scales[word] == 0 || spacedUnits[word] && !t.spaced || left.hasVariables() {
		return false
	}
	p.sawUnits = true
	if p.units {
		p.plainUnits++
	}
	return p.units
}

// unit reads a unit: words with exponents, and slashes or dots between them.
func (p *parser) unit(left *node) *node {
	words := p.unitFraction()
	if len(words) > 0 {
		p.at += sizeOfUnitFraction
	}
	for {
		t := p.peek()
		slash := ""
		if t.is("/") || t.is("*") {
			slash = t.text
			t = p.ahead(1)
		}
		word, size := unitWord(t, len(words) > 0)
		if size == 0 {
			break
		}
		if slash != "" {
			p.at++
			words = append(words, strings.Trim(slash, "*"))
		}
		words = append(words, word)
		p.at += size
		if exponent, size := p.unitExponent(); size > 0 {
			words = append(words, exponent)
			p.at += size
		}
	}
	if p.startsFactor() || p.units && p.takesSign() {
		p.misread = true // Words between factors are no unit, as in 3 ft 6 in, and a plain unit ends an expression.
	}
	value, names := scaled(strings.Join(words, " "))
	if value > 1 {
		left = apply(opMultiply, left, &node{op: opNumber, number: big.NewRat(value, 1)})
	}
	if len(names) == 0 {
		return left
	}
	return &node{op: opUnit, kids: []*node{left}, name: strings.Join(names, " ")}
}

// sizeOfUnitFraction is the number of tokens of \frac{km}{h}.
const sizeOfUnitFraction = 7

// unitFraction returns the words of a fraction of two units, or nothing.
func (p *parser) unitFraction() []string {
	frac, open, end, open2, end2 := p.peek(), p.ahead(1), p.ahead(3), p.ahead(4), p.ahead(6)
	if frac.kind != kindCommand || frac.text != "frac" || !open.is("{") || !end.is("}") || !open2.is("{") ||
		!end2.is("}") {
		return nil
	}
	above, size := unitWord(p.ahead(2), false)
	below, size2 := unitWord(p.ahead(5), false)
	if size != 1 || size2 != 1 {
		return nil
	}
	return []string{above, "/", below}
}

// takesSign reports whether another term or factor follows.
func (p *parser) takesSign() bool {
	t := p.peek()
	return t.is("+") || t.is("-") || t.is("*") || t.is("/") || t.is("^") || t.is("±")
}

// unitWord returns the words of a token that is part of a unit, and how many tokens they take.
func unitWord(t token, follows bool) (word string, size int) {
	switch {
	case t.kind == kindText:
		return t.text, 1
	case t.kind == kindLetter && t.upright && (follows || knownUnits[singular(t.text)] != ""):
		return t.text, 1
	case t.word != "" && (plainUnits[singular(t.word)] || scales[singular(t.word)] > 0 || follows &&
		knownUnits[singular(t.word)] != ""):
		return t.word, len(t.word)
	default:
		return "", 0
	}
}

// unitExponent returns the exponent of a unit, and how many tokens it takes.
func (p *parser) unitExponent() (exponent string, size int) {
	if !p.peek().is("^") {
		return "", 0
	}
	if t := p.ahead(1); t.kind == kindNumber {
		return t.text, 2
	}
	if t := p.ahead(2); p.ahead(1).is("{") && t.kind == kindNumber && p.ahead(3).is("}") {
		return t.text, 4
	}
	if t := p.ahead(3); p.ahead(1).is("{") && p.ahead(2).is("-") && t.kind == kindNumber && p.ahead(4).is("}") {
		return strings.TrimSuffix("/ "+t.text, " 1"), 5
	}
	return "", 0
}

// scaled returns the product of the words of a unit that multiply, such as dozen, and the names of the other words.
func scaled(text string) (value int64, names []string) {
	value = 1
	text = strings.ReplaceAll(text, ".", "")
	text = strings.NewReplacer("/", " / ", "^", " ", "²", " 2 ", "³", " 3 ", "-", " ", ",", " ", "(", " ", ")",
		" ").Replace(text)
	for _, word := range strings.Fields(text) {
		word = singular(word)
		if scale := scales[word]; scale > 0 && value < 1e12 {
			value *= scale
			continue
		}
		switch name := knownUnits[word]; {
		case word == "unit" || word == "of" || word == "the":
		case name != "":
			names = append(names, strings.Fields(strings.NewReplacer("-per-", " / ").Replace(name))...)
		default:
			names = append(names, word)
		}
	}
	return value, names
}

// unitsOf returns the words of all units of a tree.
func (n *node) unitsOf() []string {
	var all []string
	if n.op == opUnit {
		all = strings.Fields(n.name)
	}
	for _, kid := range n.kids {
		all = append(all, kid.unitsOf()...)
	}
	return all
}

// agree reports whether units do not contradict each other. A missing unit agrees with any. The words of one may be a
// part of the other's, as in apples and red apples, but a unit that is known has to be the same.
func agree(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return true
	}
	slices.Sort(a)
	slices.Sort(b)
	a, b = slices.Compact(a), slices.Compact(b)
	known := func(words []string) []string {
		return slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !canonicalUnits[word] })
	}
	if x, y := known(a), known(b); len(x) > 0 && len(y) > 0 {
		return slices.Equal(x, y)
	}
	within := func(a, b []string) bool {
		return !slices.ContainsFunc(a, func(word string) bool { return !slices.Contains(b, word) })
	}
	return within(a, b) || within(b, a)
}

// canonicalUnits are the names of known units.
var canonicalUnits = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range knownUnits {
		all[name] = true
	}
	return all
}()
