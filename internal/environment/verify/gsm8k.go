// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"regexp"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify/mathtext"
)

// finalMark precedes the answer in the solutions of the data set GSM8K.
const finalMark = "####"

// GSM8K compares numbers as the data set GSM8K writes them. The answer is the number behind the last #### of the row's
// answer, or the only number of an answer without that mark. A reply that a token limit cut earns 0.
type GSM8K struct {
	// Strict takes the reply's answer only from the first "#### ", and compares it as text without commas, as the
	// authors of the data set do. Otherwise the answer is the first number behind the last ####, else the last number
	// of the last \boxed{...}, else the last number of the reply, and it is compared by its value.
	Strict bool
}

// Grade implements Grader.
func (g GSM8K) Grade(_ context.Context, row dataset.Row, reply environment.Reply) (Score, error) {
	answer, ok := goldNumber(row.Answer)
	switch {
	case row.Answer == "":
		return Score{}, errNoAnswer()
	case !ok:
		return Score{}, rowFault("the answer %.80q has no number behind ####, and is not a number: map the field answer to "+
			"the column with the solution", row.Answer)
	}
	text := reply.Message.Content
	if g.Strict {
		found, ok := strictNumber(text)
		return compare(reply, ok, found == answer).score(), nil
	}
	found, ok := flexibleNumber(text)
	return compare(reply, ok, ok && equalNumbers(found, answer)).score(), nil
}

// Answers implements Answerer.
func (g GSM8K) Answers(row dataset.Row) (right, wrong string, ok bool) {
	answer, ok := goldNumber(row.Answer)
	return finalMark + " " + answer, finalMark + " " + answer + "1", ok && !strings.Contains(answer, "e")
}

// goldNumber returns the number of a row's answer.
func goldNumber(answer string) (string, bool) {
	if at := strings.LastIndex(answer, finalMark); at >= 0 {
		return first(numbersIn(answer[at+len(finalMark):]))
	}
	all := numbersIn(answer)
	if len(all) != 1 {
		return "", false
	}
	return all[0], true
}

// published is the expression of the data set's authors.
var published = regexp.MustCompile(`#### (-?[0-9.,]+)`)

func strictNumber(text string) (string, bool) {
	found := published.FindStringSubmatch(text)
	if found == nil {
		return "", false
	}
	return strings.ReplaceAll(found[1], ",", ""), true
}

func flexibleNumber(text string) (string, bool) {
	if at := strings.LastIndex(text, finalMark); at >= 0 {
		if found, ok := first(numbersIn(text[at+len(finalMark):])); ok {
			return found, true
		}
	}
	if boxed, ok := mathtext.Boxed(text); ok {
		if found, ok := last(numbersIn(strings.ReplaceAll(boxed, "{,}", ","))); ok {
			return found, true
		}
	}
	return last(numbersIn(text))
}

func first(all []string) (string, bool) {
	if len(all) == 0 {
		return "", false
	}
	return all[0], true
}

func last[T any](all []T) (found T, ok bool) {
	if len(all) == 0 {
		return found, false
	}
	return all[len(all)-1], true
}

var (
	_ Grader   = GSM8K{}
	_ Answerer = GSM8K{}
)
