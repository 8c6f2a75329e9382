// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"regexp"
	"strings"
)

// set returns the words of a text.
func set(words string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.Fields(words) {
		all[word] = true
	}
	return all
}

// superscripts are exponents that are written as characters.
var (
	superscripts = regexp.MustCompile(`[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+`)
	lowered      = strings.NewReplacer("⁰", "0", "¹", "1", "²", "2", "³", "3", "⁴", "4", "⁵", "5", "⁶", "6", "⁷", "7", "⁸",
		"8", "⁹", "9", "⁻", "-")
)

// plain returns the text with the signs that are used here.
func plain(text string) string {
	text = superscripts.ReplaceAllStringFunc(text, func(exponent string) string {
		return "^{" + lowered.Replace(exponent) +
			"}"
	})
	return characters.Replace(text)
}

// merged returns the pairs "name=canonical" of a text.
func merged(pairs string) map[string]string {
	all := map[string]string{}
	for _, pair := range strings.Fields(pairs) {
		name, canonical, _ := strings.Cut(pair, "=")
		all[name] = canonical
	}
	return all
}

// trigonometric functions take degrees, and have inverse functions.
var trigonometric = set("sin cos tan cot sec csc")

// functions are known with and without a backslash.
var functions = set(`sqrt exp ln log lg abs sin cos tan cot sec csc arcsin arccos arctan asin acos atan sinh cosh tanh`)

// greek are commands that are variables. They are known without a backslash if they are a whole word.
var greek = set(`alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma
	tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega infty ell`)

// synonyms are the names that a command or a plain word has here.
var synonyms = merged(`dfrac=frac tfrac=frac cfrac=frac dbinom=binom tbinom=binom leq=le leqslant=le geq=ge geqslant=ge
	neq=ne varnothing=emptyset lvert=vert rvert=vert degree=circ dots=ldots cdots=ldots dotsc=ldots infinity=infty
	inf=infty
	lor=or vee=or land=and wedge=and smallsetminus=setminus backslash=setminus arcctg=arccot tg=tan ctg=cot
	R=reals iff=Leftrightarrow approxeq=approx simeq=approx lbrack=[ rbrack=]`)

// punctuation are commands that are signs.
var punctuation = merged(
	`cdot=* times=* ast=* div=/ lbrace=\{ rbrace=\} colon=: lt=< gt=> vert=| and=, le=<= ge=>= ne=!=
	langle=⟨ rangle=⟩ lfloor=⌊ rfloor=⌋ lceil=⌈ rceil=⌉ [=[ ]=] approx=≈ in=∈ cup=∪ cap=∩ setminus=∖ pm=± mp=∓ mid=:`)

// dropped are commands that do not change a meaning.
var dropped = set(
	`left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr displaystyle textstyle limits
	quad qquad angle triangle boxed fbox space thinspace hfill nolimits`)

// texts are commands with words as their argument, and styles are commands with mathematics or a unit.
var (
	texts  = set(`text textrm textbf textit textsf texttt textnormal mbox emph`)
	styles = set(`mathrm mathbf mathit mathsf mathcal boldsymbol bm operatorname rm bf underline`)
)

// hidden are commands whose argument is not a part of the answer.
var hidden = set("color textcolor hspace vspace phantom hphantom label tag")

// characters are signs that are written as commands here, or in another way.
var characters = strings.NewReplacer(
	"π", `\pi `, "√", `\surd `, "×", "*", "·", "*", "⋅", "*", "∙", "*", "÷", "/", "∕", "/", "−", "-", "–", "-", "∞",
	`\infty `,
	"≤", "<=", "≥", ">=", "⩽", "<=", "⩾", ">=", "≠", "!=", "°", `^\circ `, "∅", `\emptyset `, "ℝ", `\reals `,
	"\\!", "", "\\,", `\ `, "\\;", `\ `, "\\:", `\ `, "~", `\ `, "\\$", "", "$", "", "€", "", "£", "",
	`\%`, "", "%", "", `\(`, "", `\)`, "", "{,}", "\x00", "…", `\ldots `, "½", `\frac12 `, "¼", `\frac14 `, "¾",
	`\frac34 `,
	"α", `\alpha `, "β", `\beta `, "γ", `\gamma `, "θ", `\theta `, "λ", `\lambda `, "μ", `\mu `, "φ", `\phi `, "ω",
	`\omega `,
	"a.m.", "am", "p.m.", "pm", "A.M.", "AM", "P.M.", "PM", "&=", "=", `\\`, `\\`, "’", "'", "′", "'",
)
