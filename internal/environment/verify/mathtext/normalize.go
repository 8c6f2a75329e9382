// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"regexp"
	"strings"
)

// replacement is applied to the whole text.
type replacement struct {
	pattern *regexp.Regexp
	by      string
}

func replace(pattern, by string) replacement {
	return replacement{regexp.MustCompile(pattern), by}
}

// replacements remove, in their order, what does not change the meaning of an answer.
var replacements = []replacement{
	replace(`\\\\([a-zA-Z])`, `\$1`), // A backslash that was escaped once too often.
	replace(`\\\\ *`, "\x01"),        // The end of a matrix' row.
	replace(`\\[tdc]frac`, `\frac`),
	replace(`\\(left|right|big|Big|bigl|bigr|Bigl|Bigr)(?:[^a-zA-Z]|$)`, "\x00$0"),
	replace("\x00"+`\\(?:left|right|[bB]ig[lr]?)\.?`, ""),
	replace(`\\(displaystyle|textstyle|limits)\b`, ""),
	replace(`\\(?:lvert|rvert|vert)\b`, "|"),
	replace(`\\(?:q?quad\b|[!,;: ])|~`, " "),
	replace(`\^ *(?:\\circ|\{ *\\circ *\})|\\degree\b|°`, ""),
	replace(`\\?[$%]|[€£]`, ""),
	replace(`\{,\}`, ","),
	replace(`\\(?:text|textrm|mbox) *\{ *(and|or) *\}`, " $1 "),
	replace(`,? +(?:and|or) +`, ","),
	replace(`\\(?:mathrm|mathbf|mathit|boldsymbol|operatorname) *\{([^{}]*)\}`, "$1"),
	// Units after a number are left out. Any other text is kept.
	replace(`([0-9})]) *\\(?:text|textbf|textit|textrm|mbox) *\{[^{}]*\}(?:\^\{?[0-9]\}?)?\.?\s*$`, "$1"),
	replace(`\\(?:text|textbf|textit|textrm|mbox) *\{([^{}]*)\}`, "$1"),
	replace(`([0-9}) ]) *(?:`+units+`)(?: *\^ *\{?[0-9]\}?|[²³])? *\.?\s*$`, "$1"),
	// The name of what was asked for does not belong to the answer.
	replace(`^\s*[a-zA-Z](?:_\{?\w+\}?)? *(?:\( *[a-z] *\))? *(?:=|\\in\b)([^=]*)$`, "$1"),
	// A mixed number.
	replace(`(\d+) +(\d+ */ *\d+)`, "($1+$2)"),
	replace(`\s+`, ""),
	replace(`\.$`, ""),
}

// units are the words that are left out behind a number.
const units = `degrees?|percent|percentage|pct|dollars?|cents?|units?|` +
	`mm|cm|km|m|millimeters?|centimeters?|kilometers?|meters?|miles?|inch(?:es)?|foot|feet|yards?|` +
	`seconds?|minutes?|hours?|days?|weeks?|months?|years?|grams?|kg|kilograms?|pounds?|lit(?:er|re)s?|mph`

// delimiters are pairs that only show that their content is mathematics.
var delimiters = [][2]string{{"$$", "$$"}, {"$", "$"}, {`\(`, `\)`}, {`\[`, `\]`}}

// normalize returns the answer without what does not change its meaning.
func normalize(text string) string {
	text = strings.TrimSpace(text)
	if content, ok := Boxed(text); ok {
		text = content
	}
	for _, pair := range delimiters {
		inner, begins := strings.CutPrefix(text, pair[0])
		inner, ends := strings.CutSuffix(inner, pair[1])
		if begins && ends {
			text = inner
			break
		}
	}
	for _, r := range replacements {
		text = r.pattern.ReplaceAllString(text, r.by)
	}
	return text
}

var thousands = regexp.MustCompile(`(^|[^0-9.])([0-9]{1,3}(?:,[0-9]{3})+)`)

// joinThousands removes the commas between groups of three digits.
func joinThousands(text string) string {
	var out strings.Builder
	for text != "" {
		at := thousands.FindStringIndex(text)
		if at == nil {
			break
		}
		found, rest := text[at[0]:at[1]], text[at[1]:]
		if rest == "" || rest[0] < '0' || rest[0] > '9' {
			before := strings.IndexAny(found, "0123456789")
			found = found[:before] + strings.ReplaceAll(found[before:], ",", "")
		}
		out.WriteString(text[:at[0]])
		out.WriteString(found)
		text = rest
	}
	out.WriteString(text)
	return out.String()
}
