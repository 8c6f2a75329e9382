// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"context"
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// Stream submits the first data of a step while the others are not known. Its requests, and their order, are those of a step
// whose data are all known, so that the gradient is the same to the last bit. A model has one pass for each loss, one after the other:
// hence only data of the first loss are streamed. One goroutine may use it.
type Stream struct {
	model  *Model
	losses Losses
	// begin begins the pass, which is nil before it has data.
	begin func() *client.Pass
	pass  *client.Pass
	// pending are the data that do not fill a request yet. They are the last of those that were added.
	pending []tinker.Datum
	added   int
}

// errPartOfStep says that a model holds the gradient of a part of a step, which a state would contain.
var errPartOfStep = errors.New("the model holds the gradient of a part of the next step")

// errNotStreamed says that data that were submitted are not the first ones of their step.
var errNotStreamed = errors.New("submitting a step: what was submitted before is not its beginning")

// Stream begins a step. The ctx limits the fetching of its results. It returns nil on a server that averages gradients, for
// which the data of a step have to be known together.
func (m *Model) Stream(ctx context.Context, losses Losses) *Stream {
	if m.averages {
		return nil
	}
	return &Stream{model: m, losses: losses, begin: func() *client.Pass { return m.model.NewPass(ctx, losses.losses[0]) }}
}

// Add adds the next data of the step, submits the requests that they fill, and reports whether there were any. After an error
// the model must be abandoned.
func (s *Stream) Add(ctx context.Context, datums []rl.Datum) (submitted bool, err error) {
	for _, p := range s.losses.split(datums) {
		if !p.first {
			continue
		}
		all := append(s.pending, encode(p.datums)...)
		s.added += len(p.datums)
		if s.pass == nil {
			s.pass = s.begin()
		}
		s.pending, err = s.pass.PostFull(ctx, all)
		submitted = len(s.pending) < len(all)
		s.model.accumulates = s.model.accumulates || submitted
	}
	return submitted, passing.Failed(err, "computing gradients")
}

// submitRest submits the data that were not added.
func (s *Stream) submitRest(ctx context.Context, datums []rl.Datum) (*client.Future[tinker.ForwardBackwardResult], error) {
	if s.pass == nil {
		s.pass = s.begin()
	}
	return s.pass.PostRest(ctx, append(s.pending, encode(datums[s.added:])...))
}

// check reports an error if a step cannot begin with what was streamed.
func (s *Stream) check(step Step) error {
	if s == nil || s.added == 0 {
		return nil
	}
	for _, p := range s.losses.split(step.Datums) {
		if p.first && len(p.datums) >= s.added && step.Substeps <= 1 {
			return nil
		}
	}
	return errNotStreamed
}
