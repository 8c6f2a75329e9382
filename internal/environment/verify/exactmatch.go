// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

// ExactMatch rewards a reply with 1 if the selected part of it is the answer, and any other reply with 0. A reply
// that a token limit cut earns 0, since its end is not known. The zero value compares the last number, which has to
// be an integer; commas between groups of three digits are ignored. Comparisons of texts ignore the space at both
// ends, and case, punctuation and articles if these are to be normalized.
type ExactMatch settings.ExactMatch

// Grade implements Grader.
func (m ExactMatch) Grade(_ context.Context, row dataset.Row, reply environment.Reply) (Score, error) {
	answer, err := m.answer(row)
	if err != nil {
		return Score{}, err
	}
	found, ok := m.find(reply.Message.Content)
	return compare(reply, ok, found == answer).score(), nil
}

// Answers implements Answerer. The wrong reply has an additional digit, which makes another number and another text.
// Answers returns false if no reply can have the answer as its part, as when the last line is compared and the answer
// has two lines.
func (m ExactMatch) Answers(row dataset.Row) (right, wrong string, ok bool) {
	answer, err := m.answer(row)
	if err != nil {
		return "", "", false
	}
	right, wrong = strings.TrimSpace(row.Answer), strings.TrimSpace(row.Answer)+"1"
	if m.Part == settings.PartAnswerTag {
		right, wrong = "<answer>"+right+"</answer>", "<answer>"+wrong+"</answer>"
	}
	found, ok := m.find(right)
	return right, wrong, ok && found == answer
}

// answer returns the row's answer in the form in which find returns a part of a reply.
func (m ExactMatch) answer(row dataset.Row) (string, error) {
	if row.Answer == "" {
		return "", errNoAnswer()
	}
	switch m.Part {
	case settings.PartText, settings.PartLastLine, settings.PartAnswerTag:
		return m.normalize(row.Answer), nil
	}
	answer := strings.ReplaceAll(strings.TrimSpace(row.Answer), ",", "")
	if integer.FindString(answer) != answer {
		return "", rowFault("the answer %.80q is not an integer, which exactMatch compares: choose exactMatch.part Text, "+
			"LastLine or AnswerTag", row.Answer)
	}
	return canonical(answer), nil
}

// find returns the part of the text in canonical form.
func (m ExactMatch) find(text string) (found string, ok bool) {
	ok = true
	switch m.Part {
	case settings.PartText:
		found = text
	case settings.PartLastLine:
		found = lastLine(text)
	case settings.PartAnswerTag:
		found, ok = lastTag(text, "answer")
	default:
		return lastInteger(text)
	}
	return m.normalize(found), ok && strings.TrimSpace(found) != ""
}

var article = regexp.MustCompile(`(?i)\b(?:a|an|the)\b`)

// normalize drops the parts that a comparison ignores. Punctuation and articles leave spaces behind, which are ignored
// with them.
func (m ExactMatch) normalize(text string) string {
	if slices.Contains(m.Normalize, settings.NormalizeCase) {
		text = strings.ToLower(text)
	}
	punctuation, articles := slices.Contains(m.Normalize, settings.NormalizePunctuation),
		slices.Contains(m.Normalize, settings.NormalizeArticles)
	if punctuation {
		text = strings.Map(func(r rune) rune {
			if unicode.IsPunct(r) || unicode.IsSymbol(r) {
				return -1
			}
			return r
		}, text)
	}
	if articles {
		text = article.ReplaceAllString(text, " ")
	}
	if punctuation || articles || slices.Contains(m.Normalize, settings.NormalizeSpace) {
		return strings.Join(strings.Fields(text), " ")
	}
	return strings.TrimSpace(text)
}

var (
	integer = regexp.MustCompile(`-?[0-9]+`)
	// quantity is a number with a fraction or without, or a quotient of numbers.
	quantity = regexp.MustCompile(
		`\\[dtc]?frac *\{[^{}]*\} *\{[^{}]*\}|-?(?:[0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)(?: ?/ ?[0-9.,]*[0-9])*`)
)

// lastInteger returns the last number of the text in canonical form. A fraction is returned as it is, and equals no
// integer.
func lastInteger(text string) (number string, ok bool) {
	number, ok = last(quantity.FindAllString(text, -1))
	if !ok || strings.ContainsAny(number, `/\`) {
		return number, ok
	}
	if digits, negative := strings.CutPrefix(number, "-"); negative {
		parts := splitThousands(digits)
		parts[0] = "-" + parts[0]
		number, _ = last(parts)
	} else {
		number, _ = last(splitThousands(number))
	}
	return canonical(number), true
}

// canonical drops leading zeros, a fraction of zeros, and the sign of zero.
func canonical(number string) string {
	digits, negative := strings.CutPrefix(strings.TrimSpace(number), "-")
	digits = strings.TrimLeft(digits, "0")
	if strings.Contains(digits, ".") {
		digits = strings.TrimSuffix(strings.TrimRight(digits, "0"), ".")
	}
	if digits == "" {
		return "0"
	}
	if negative {
		return "-" + digits
	}
	return digits
}

var (
	_ Grader   = ExactMatch{}
	_ Answerer = ExactMatch{}
)
