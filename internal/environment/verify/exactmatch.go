// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"regexp"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// Metrics of ExactMatch, 0 or 1. Each reply counts 1 in exactly one of the first four.
const (
	// MetricCorrect is a reply with the right number.
	MetricCorrect = "correct"
	// MetricWrong is a reply with another number.
	MetricWrong = "wrong"
	// MetricNoAnswer is a reply that ended without a number.
	MetricNoAnswer = "no_answer"
	// MetricTruncated is a reply that a token limit cut, whatever it says.
	MetricTruncated = "truncated"
	// MetricAnswered is a reply that is correct or wrong.
	MetricAnswered = "answered"
)

// ExactMatch rewards a reply whose last integer is the answer with 1, any other with 0. Commas between
// digits do not count. A reply that was cut by a token limit earns 0: it did not end, and what it would
// have said is not known.
type ExactMatch struct{}

// Verify implements Verifier.
func (ExactMatch) Verify(answer string, reply environment.Reply) Verdict {
	found := MetricWrong
	number, ok := lastInteger(reply.Message.Content)
	switch {
	case reply.Truncated:
		found = MetricTruncated
	case !ok:
		found = MetricNoAnswer
	case number == canonical(answer):
		found = MetricCorrect
	}
	verdict := Verdict{Metrics: map[string]float64{
		MetricCorrect: 0, MetricWrong: 0, MetricNoAnswer: 0, MetricTruncated: 0, MetricAnswered: 0,
	}}
	verdict.Metrics[found] = 1
	verdict.Metrics[MetricAnswered] = verdict.Metrics[MetricCorrect] + verdict.Metrics[MetricWrong]
	verdict.Reward = verdict.Metrics[MetricCorrect]
	return verdict
}

// Wrong implements Verifier: a digit more is another number.
func (ExactMatch) Wrong(answer string) string { return answer + "1" }

var integer = regexp.MustCompile(`-?[0-9]+`)

// lastInteger gives the last integer of the text in canonical form, after commas are removed.
func lastInteger(text string) (number string, ok bool) {
	found := integer.FindAllString(strings.ReplaceAll(text, ",", ""), -1)
	if len(found) == 0 {
		return "", false
	}
	return canonical(found[len(found)-1]), true
}

// canonical drops leading zeros, and the sign of zero.
func canonical(number string) string {
	digits, negative := strings.CutPrefix(strings.TrimSpace(number), "-")
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return "0"
	}
	if negative {
		return "-" + digits
	}
	return digits
}

var _ Verifier = ExactMatch{}
