// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"encoding/json"
	"math/big"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify/countdown"
)

// Fields of a countdown row.
const (
	fieldNums   = "nums"
	fieldTarget = "target"
)

// Countdown has this metric besides the metrics of a comparison.
const (
	// MetricScore is rLLM's score before it becomes the reward: 0 without an answer, 0.1 for a wrong answer, and 1 for a
	// right one.
	MetricScore = "score"
)

// Countdown rewards a reply with 1 if its answer makes the number of the field target from all numbers of the field
// nums, and any other reply with 0. The answer is in <answer>...</answer>.
type Countdown struct {
	// Strict allows only whole numbers, the four operations and parentheses, and calculates exactly; a reply that a
	// token limit cut earns 0. If Strict is false, Countdown scores as rLLM does.
	Strict bool
}

// Grade implements Grader.
func (c Countdown) Grade(_ context.Context, row dataset.Row, reply environment.Reply) (Score, error) {
	nums, target, err := countdownRow(row)
	if err != nil {
		return Score{}, err
	}
	result := countdown.Compatible(reply.Message.Content, nums, target)
	if c.Strict {
		result = countdown.Strict(reply.Message.Content, nums, target)
	} else {
		reply.Truncated = reply.Truncated && result == countdown.NoAnswer
	}
	graded := compare(reply, result != countdown.NoAnswer, result == countdown.Correct).score()
	graded.Metrics[MetricScore] = 0
	if graded.Metrics[MetricAnswered] == 1 {
		graded.Metrics[MetricScore] = max(0.1, graded.Reward)
	}
	return graded, nil
}

// Answers implements Answerer. It searches for a right answer.
func (c Countdown) Answers(row dataset.Row) (right, wrong string, ok bool) {
	nums, target, err := countdownRow(row)
	if err != nil {
		return "", "", false
	}
	expression, ok := countdown.Solve(nums, target)
	return "<answer>" + expression + "</answer>", "<answer>0</answer>", ok
}

// countdownRow reads the fields.
func countdownRow(row dataset.Row) (nums []int64, target *big.Rat, err error) {
	list, ok := row.Fields[fieldNums].([]any)
	if !ok || len(list) == 0 {
		return nil, nil,
			rowFault("the row's field nums is not a list of numbers: map it to such a column with dataset.fields")
	}
	for _, element := range list {
		value, ok := rational(element)
		if !ok || !value.IsInt() || !value.Num().IsInt64() || value.Sign() < 0 {
			return nil, nil, rowFault("the row's field nums has %.40v, which is not a whole number of at least 0: "+
				"correct the data", element)
		}
		nums = append(nums, value.Num().Int64())
	}
	target, ok = rational(row.Fields[fieldTarget])
	if !ok {
		return nil, nil, rowFault("the row's field target is not a number: map it to such a column with dataset.fields")
	}
	return nums, target, nil
}

// rational reads a number of a row, which some data sets write as text.
func rational(value any) (*big.Rat, bool) {
	var text string
	switch v := value.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = v
	default:
		return nil, false
	}
	if float, err := strconv.ParseFloat(text, 64); err != nil || float > 1e15 || float < -1e15 ||
		len(text) > longestExact {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

var (
	_ Grader   = Countdown{}
	_ Answerer = Countdown{}
)
