// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"regexp"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

// ExactMatch has these metrics, each 0 or 1. Exactly one of the first four is 1.
const (
	// MetricCorrect counts replies with the right number.
	MetricCorrect = "correct"
	// MetricWrong counts replies with another number.
	MetricWrong = "wrong"
	// MetricNoAnswer counts replies that ended without a number.
	MetricNoAnswer = "no_answer"
	// MetricTruncated counts replies that a token limit cut, whatever their text.
	MetricTruncated = "truncated"
	// MetricAnswered counts replies that are correct or wrong.
	MetricAnswered = "answered"
)

// ExactMatch gives a reply whose last integer is the answer a reward of 1, and any other a reward of 0. It ignores
// commas between digits. A reply that a token limit cut earns 0, since its end is not known.
type ExactMatch struct{}

// Grade implements Grader.
func (ExactMatch) Grade(_ context.Context, row dataset.Row, reply environment.Reply) (Score, error) {
	found := MetricWrong
	number, ok := lastInteger(reply.Message.Content)
	switch {
	case reply.Truncated:
		found = MetricTruncated
	case !ok:
		found = MetricNoAnswer
	case number == canonical(row.Answer):
		found = MetricCorrect
	}
	score := Score{Metrics: map[string]float64{
		MetricCorrect: 0, MetricWrong: 0, MetricNoAnswer: 0, MetricTruncated: 0, MetricAnswered: 0,
	}}
	score.Metrics[found] = 1
	score.Metrics[MetricAnswered] = score.Metrics[MetricCorrect] + score.Metrics[MetricWrong]
	score.Reward = score.Metrics[MetricCorrect]
	return score, nil
}

// Answers implements Answerer. An additional digit makes another number.
func (ExactMatch) Answers(row dataset.Row) (right, wrong string, ok bool) {
	return row.Answer, row.Answer + "1", row.Answer != ""
}

var integer = regexp.MustCompile(`-?[0-9]+`)

// lastInteger returns the last integer of the text in canonical form. It ignores commas.
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

var (
	_ Grader   = ExactMatch{}
	_ Answerer = ExactMatch{}
)
