// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// errInvisible says that a step moved nothing that could be told from noise.
var errInvisible = errors.New("looking for the optimizer's state: a step moves nothing")

// Restored says whether a model that was loaded from a state has the optimizer's state with it, where
// optimizer steps led to the state. The model must have done nothing but load; it saves itself under a name
// that is no checkpoint of a run, and is left as it was. Two shadows load that, one with the optimizer and one
// without, and take a step: without a past both take the same.
//
// It costs a state and 96 tokens of training, and is meant for a resume. A state whose weights are those of a
// new adapter has no past to lose, and counts as restored.
func (p Probe) Restored(ctx context.Context, model *client.Model) (bool, error) {
	ctx, stop := context.WithCancelCause(ctx)
	l := &lab{Probe: p, stop: stop, rank: p.Lora.Rank, loss: crossEntropy, report: Report{Findings: map[Feature]Finding{}}}
	defer l.alive.Wait()
	defer stop(nil)
	defer l.clean(ctx)
	if err := l.enter(ctx); err != nil {
		return false, err
	}
	// Saved as a run saves, without a time to live: a refused submit would break the model.
	saving, err := model.SaveState(ctx, client.SaveRequest{Name: "probe-optimizer"})
	saved, err := await(ctx, saving, err)
	if err != nil {
		return false, fmt.Errorf("saving for a look at the optimizer: %w", err)
	}
	l.state = saved.Path
	_ = l.API.SetTTL(ctx, l.state, new(hour)) // should it not come to be deleted
	warm, cold := shadow{load: true, optimizer: true}, shadow{load: true}
	if err := l.followAll(ctx, &warm, &cold); err != nil {
		return false, err
	}
	motion := distance(cold.before, cold.after)
	switch {
	case motion < visible:
		return false, errInvisible
	case distance(warm.after, cold.after) > motion/10:
		return true, nil
	}
	fresh := shadow{}
	if err := l.followAll(ctx, &fresh); err != nil {
		return false, err
	}
	return distance(fresh.before, cold.before) < visible, nil
}

// shadow is a model that takes one step beside the run's.
type shadow struct {
	load, optimizer bool
	before, after   []float64
}

// followAll has shadows take their steps beside one another.
func (l *lab) followAll(ctx context.Context, shadows ...*shadow) error {
	errs := make([]error, len(shadows))
	var under sync.WaitGroup
	for i, s := range shadows {
		under.Go(func() {
			errs[i] = l.persist(ctx, func(ctx context.Context) error { return l.follow(ctx, s) })
		})
	}
	under.Wait()
	return errors.Join(errs...)
}

// follow makes the shadow's model and takes its step. The rate makes up for the rank, by which adapters are
// scaled down.
func (l *lab) follow(ctx context.Context, s *shadow) error {
	open := l.create
	if s.load {
		open = func(ctx context.Context, lora tinker.LoraConfig) (*client.Model, error) {
			return l.load(ctx, lora, s.optimizer)
		}
	}
	model, err := open(ctx, l.Lora)
	if err != nil {
		return err
	}
	if s.before, err = l.measure(ctx, model); err != nil {
		return err
	}
	adam := stepSize
	adam.LearningRate *= float64(l.rank)
	if err := l.step(ctx, model, l.lesson(1), tinker.Loss{Name: l.loss}, adam); err != nil {
		return err
	}
	s.after, err = l.measure(ctx, model)
	return err
}
