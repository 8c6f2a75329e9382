// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// Rewards that compare with an answer have these metrics, each 0 or 1. Exactly one of the first four is 1.
const (
	// MetricCorrect counts replies with the right answer.
	MetricCorrect = "correct"
	// MetricWrong counts replies with another answer.
	MetricWrong = "wrong"
	// MetricNoAnswer counts replies that ended without an answer.
	MetricNoAnswer = "no_answer"
	// MetricTruncated counts replies that a token limit cut, whatever their text.
	MetricTruncated = "truncated"
	// MetricAnswered counts replies that are correct or wrong.
	MetricAnswered = "answered"
)

// compared is the result of the comparison with an answer: the metric that is 1.
type compared string

// Compare returns the score of a reply: found says that the reply has an answer, and correct that the answer is
// right. A reply that a token limit cut earns 0.
func Compare(reply environment.Reply, found, correct bool) Score {
	return compare(reply, found, correct).score()
}

// score returns a reward of 1 for a correct reply, and of 0 for any other.
func (c compared) score() Score {
	score := Score{Metrics: map[string]float64{
		MetricCorrect: 0, MetricWrong: 0, MetricNoAnswer: 0, MetricTruncated: 0, MetricAnswered: 0,
	}}
	score.Metrics[string(c)] = 1
	score.Metrics[MetricAnswered] = score.Metrics[MetricCorrect] + score.Metrics[MetricWrong]
	score.Reward = score.Metrics[MetricCorrect]
	return score
}

// compare returns the result of the comparison of a reply. found and correct follow from the text alone. A reply that
// a token limit cut has no answer all the same, since its end is not known.
func compare(reply environment.Reply, found, correct bool) compared {
	switch {
	case reply.Truncated:
		return MetricTruncated
	case !found:
		return MetricNoAnswer
	case correct:
		return MetricCorrect
	default:
		return MetricWrong
	}
}

// rowFault reports a row that cannot be graded. A retry does not help.
func rowFault(format string, values ...any) error {
	return &environment.Fault{Permanent: true, Err: fmt.Errorf("grading a reply: "+format, values...)}
}

// errNoAnswer returns the fault of a row without an answer to compare with.
func errNoAnswer() error {
	return rowFault("the row has no answer: map the field answer to a column with dataset.fields, or choose a reward " +
		"that compares with none")
}
