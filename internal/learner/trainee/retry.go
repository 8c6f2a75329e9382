// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"context"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// Sample returns a step that shows whether the endpoint still refuses this one. It has a single sequence for each loss:
// the longest if the endpoint refused the data, and the shortest otherwise.
func (s Step) Sample(refused problem.Code) Step {
	sample := Step{Substeps: 1, Losses: s.Losses, Adam: s.Adam}
	for _, p := range s.Losses.split(s.Datums) {
		chosen := p.datums[0]
		for _, d := range p.datums[1:] {
			if longer := len(d.Tokens) > len(chosen.Tokens); longer == (refused == problem.DataRefused) {
				chosen = d
			}
		}
		sample.Datums = append(sample.Datums, chosen)
	}
	return sample
}

// abandonTimeout bounds the time for abandoning a model whose context may have ended. A model that is not abandoned
// in time is ended later by the endpoint itself.
const abandonTimeout = 30 * time.Second

// Try takes a step with a model of its own, which is abandoned. No model of the run trains at the same time.
func (f *Factory) Try(ctx context.Context, step Step) error {
	model, err := f.create(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
		defer stop()
		model.Abandon(ctx)
	}()
	training, err := model.Train(ctx, step)
	if err == nil {
		_, err = training.Wait(ctx)
	}
	return err
}
