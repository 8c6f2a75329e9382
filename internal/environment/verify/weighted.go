// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"math"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

// Leaf is one of the rewards that Weighted adds up.
type Leaf struct {
	// Name is unique. It names the leaf's metrics.
	Name   string
	Weight float64
	Grader Grader
}

// Weighted is the sum of the leaves' rewards, each multiplied by its weight. The metric with the name of a leaf is
// the reward of the leaf before it is weighted. The leaf's own metrics are prefixed with its name and a slash.
type Weighted []Leaf

// Grade implements Grader. If a leaf fails, the sum fails.
func (w Weighted) Grade(ctx context.Context, row dataset.Row, reply environment.Reply) (Score, error) {
	sum := Score{Parts: map[string]float64{}, Metrics: map[string]float64{}}
	for _, leaf := range w {
		score, err := leaf.Grader.Grade(ctx, row, reply)
		if err != nil {
			return Score{}, fmt.Errorf("reward %s: %w", leaf.Name, err)
		}
		part := leaf.Weight * score.Reward
		sum.Reward += part
		sum.Parts[leaf.Name] = part
		sum.Metrics[leaf.Name] = score.Reward
		for name, value := range score.Metrics {
			sum.Metrics[leaf.Name+"/"+name] = value
		}
	}
	return sum, nil
}

// CheckRow implements RowChecker.
func (w Weighted) CheckRow(row dataset.Row) error {
	for _, leaf := range w {
		if checker, ok := leaf.Grader.(RowChecker); ok {
			if err := checker.CheckRow(row); err != nil {
				return fmt.Errorf("reward %s: %w", leaf.Name, err)
			}
		}
	}
	return nil
}

// Answers implements Answerer. It asks the leaf that weighs more than all others together, if there is one: the others
// may reward the wrong answer.
func (w Weighted) Answers(row dataset.Row) (right, wrong string, ok bool) {
	var all float64
	for _, leaf := range w {
		all += math.Abs(leaf.Weight)
	}
	for _, leaf := range w {
		if answerer, ok := leaf.Grader.(Answerer); ok && leaf.Weight > all-leaf.Weight {
			return answerer.Answers(row)
		}
	}
	return "", "", false
}

var (
	_ Grader     = Weighted(nil)
	_ Answerer   = Weighted(nil)
	_ RowChecker = Weighted(nil)
)
