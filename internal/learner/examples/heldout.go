// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"context"
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
)

// HeldOut is the negative log-likelihood of the rows of a split.
type HeldOut struct {
	// NLL is the mean over all tokens with weight, each weighted as in its row, whatever the normalization of training.
	supervised.NLL
	// Rows counts the measured rows, and LeftOut the rows that cannot be measured.
	Rows, LeftOut int64
}

// logprobs returns the log-probabilities of the targets of data under the model.
type logprobs func(ctx context.Context, datums []rl.Datum) ([][]float32, error)

// heldOutRows is the number of rows that are requested at once.
const heldOutRows = 256

// HeldOut measures the rows of a split, in the order of the split.
func (r *Reader) HeldOut(ctx context.Context, split contract.HeldOut, ask logprobs) (HeldOut, error) {
	perToken := *r
	perToken.builder.Normalization = supervised.PerToken
	rows := r.splits[split.Name]
	if split.Take > 0 {
		rows = min(rows, split.Take)
	}
	var result HeldOut
	var datums []supervised.Datum
	for index := range rows {
		datum, err := perToken.load(ctx, rl.Task{Split: split.Name, Index: index})
		var left *supervised.Unusable
		switch {
		case errors.As(err, &left):
			result.LeftOut++
		case err != nil:
			return HeldOut{}, err
		default:
			datums = append(datums, datum)
		}
		if len(datums) == 0 || len(datums) < heldOutRows && index+1 < rows {
			continue
		}
		values, err := ask(ctx, datumsOf(datums))
		if err == nil && len(values) != len(datums) {
			err = errors.New("measuring held-out rows: the endpoint returns no log-probabilities")
		}
		if err != nil {
			return HeldOut{}, err
		}
		for i, d := range datums {
			if err := result.Add(d.Weights, values[i]); err != nil {
				return HeldOut{}, err
			}
		}
		result.Rows += int64(len(datums))
		datums = datums[:0]
	}
	return result, nil
}

// datumsOf returns examples as training data.
func datumsOf(examples []supervised.Datum) []rl.Datum {
	datums := make([]rl.Datum, 0, len(examples))
	for _, e := range examples {
		datums = append(datums, rl.Datum{Tokens: e.Tokens, Targets: e.Targets, Weights: e.Weights})
	}
	return datums
}
