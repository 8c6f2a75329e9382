// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"context"
	"maps"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// Losses are the losses of a run. Their order is also the order of passes: the run's own loss first, then the losses of
// roles.
type Losses struct {
	losses []tinker.Loss
	// roles has the place of a role's loss; the place of other roles is 0.
	roles map[string]int
}

// LossesOf returns the losses of an algorithm. Roles with equal losses share one.
func LossesOf(alg algorithm.Algorithm) Losses {
	l := Losses{roles: map[string]int{}}
	l.add(alg.Loss)
	for _, role := range alg.Roles {
		name := string(role.Name)
		l.roles[name] = l.add(alg.LossOf(name))
	}
	return l
}

// add returns the place of a loss, which it appends unless there is an equal loss.
func (l *Losses) add(loss algorithm.Loss) int {
	wire := client.LossOf(loss)
	for i, known := range l.losses {
		if known.Name == wire.Name && maps.Equal(known.Config, wire.Config) {
			return i
		}
	}
	l.losses = append(l.losses, wire)
	return len(l.losses) - 1
}

// pass is the data of one loss.
type pass struct {
	loss   tinker.Loss
	datums []rl.Datum
	// places are the indexes of the datums in the list that was split.
	places []int
}

// split splits data into a pass for each loss. Losses without data have no pass.
func (l Losses) split(datums []rl.Datum) []pass {
	passes := make([]pass, len(l.losses))
	for place, d := range datums {
		p := &passes[l.roles[d.Role]]
		p.datums, p.places = append(p.datums, d), append(p.places, place)
	}
	var used []pass
	for i, p := range passes {
		if len(p.datums) > 0 {
			p.loss = l.losses[i]
			used = append(used, p)
		}
	}
	return used
}

// passInFlight is a submitted pass.
type passInFlight struct {
	future *client.Future[tinker.ForwardBackwardResult]
	places []int
}

// submitPasses submits a pass for each loss. The passes add up to one gradient.
func (m *Model) submitPasses(ctx context.Context, datums []rl.Datum, losses Losses) ([]passInFlight, error) {
	var submitted []passInFlight
	for _, p := range losses.split(datums) {
		future, err := m.model.ForwardBackwardEach(ctx, m.weighted(encode(p.datums, p.loss.Name), len(datums)), p.loss)
		if err != nil {
			return nil, passing.Failed(err, "computing gradients")
		}
		submitted = append(submitted, passInFlight{future: future, places: p.places})
	}
	return submitted, nil
}

// collect takes over the metrics of a pass, and the log-probs that it returned for its data.
func (p passInFlight) collect(result tinker.ForwardBackwardResult, replies *Replies,
	logprobs [][]float32) (complete bool, err error) {
	got, err := logprobsOf(result, len(p.places))
	if err != nil {
		return false, err
	}
	for i, values := range got {
		logprobs[p.places[i]] = values
	}
	for name, value := range result.Metrics {
		if name == lossSum {
			value += replies.Metrics[name]
		}
		replies.Metrics[name] = value
	}
	return got != nil, nil
}
