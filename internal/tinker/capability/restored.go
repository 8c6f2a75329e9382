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

// errNoMotion says that a step moved nothing that can be distinguished from noise.
var errNoMotion = errors.New("looking for the optimizer's state: a step moves nothing")

// Restored reports whether a model that was loaded from a state has the optimizer's state, provided that optimizer
// steps led to the state. The model must have executed nothing but the load. Restored saves the model under a name
// that no checkpoint of a run has, and does not change it. Two clones load that checkpoint, one with the optimizer
// and one without, and take a step: if the optimizer's state was lost, both steps are the same.
//
// It costs a state and 96 tokens of training, and is meant for a resume. If the weights are a new adapter's, there is
// no optimizer state to lose, and Restored returns true.
func (c Checker) Restored(ctx context.Context, model *client.Model) (bool, error) {
	ctx, stop := context.WithCancelCause(ctx)
	k := newCheck(c, stop)
	k.trainer.rank = c.Lora.Rank
	defer k.trainer.keepAlive.Wait()
	defer stop(nil)
	defer k.cleanUp(ctx)
	if err := k.trainer.createSession(ctx); err != nil {
		return false, err
	}
	// It saves as a run saves, without a TTL: a rejected submit would break the model.
	saving, err := model.SaveState(ctx, client.SaveRequest{Name: "probe-optimizer"})
	saved, err := await(ctx, saving, err)
	if err != nil {
		return false, fmt.Errorf("saving a state to look for the optimizer's: %w", err)
	}
	k.trainer.state = saved.Path
	_ = k.trainer.API.SetTTL(ctx, k.trainer.state, new(hour)) // in case it is not deleted
	warm, cold := clone{optimizer: true}, clone{}
	if err := k.trainer.stepClones(ctx, &warm, &cold); err != nil {
		return false, err
	}
	motion := distance(cold.before, cold.after)
	switch {
	case motion < minMotion:
		return false, errNoMotion
	case distance(warm.after, cold.after) > motion/10:
		return true, nil
	}
	fresh := clone{fresh: true}
	if err := k.trainer.stepClones(ctx, &fresh); err != nil {
		return false, err
	}
	return distance(fresh.before, cold.before) < minMotion, nil
}

// clone is a copy of the run's model, or a new model, that takes one step.
type clone struct {
	fresh, optimizer bool
	before, after    []float64
}

// stepClones takes the steps of the clones concurrently.
func (t *trainer) stepClones(ctx context.Context, clones ...*clone) error {
	errs := make([]error, len(clones))
	var inFlight sync.WaitGroup
	for i, c := range clones {
		inFlight.Go(func() {
			errs[i] = retry(ctx, func(ctx context.Context) error { return t.stepClone(ctx, c) })
		})
	}
	inFlight.Wait()
	return errors.Join(errs...)
}

// stepClone creates the clone's model and takes its step. The learning rate grows with the rank, because adapters
// are scaled down by it.
func (t *trainer) stepClone(ctx context.Context, c *clone) error {
	model, err := t.open(ctx, t.Lora, c.fresh, c.optimizer)
	if err != nil {
		return err
	}
	if c.before, err = t.measure(ctx, model); err != nil {
		return err
	}
	adam := adamParams
	adam.LearningRate *= float64(t.rank)
	if err := step(ctx, model, t.batch(1), tinker.Loss{Name: t.loss}, adam); err != nil {
		return err
	}
	c.after, err = t.measure(ctx, model)
	return err
}
