// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// The keys of a model's user_metadata, by which a run's models are found.
const (
	MetadataRun     = "run"
	MetadataAttempt = "attempt"
)

// Opener makes the models of one attempt.
type Opener struct {
	API    endpoint
	Logger *slog.Logger
	// Session gives the session that models are made in; it may be another one after a restart of the
	// server.
	Session func(ctx context.Context) (string, error)
	RunUID  string
	Attempt int32
	Base    contract.Model
	// RequireOptimizer refuses states that load without the optimizer.
	RequireOptimizer bool
	// Lost is told of a session that is gone.
	Lost func(session string)
	// Check says whether a model that was loaded from a state with its optimizer has that; nil does not look.
	Check func(ctx context.Context, state checkpoints.Entry, model *client.Model) (bool, error)

	mu   sync.Mutex
	made int
}

// Fresh makes the model that a run begins with: the base model, or what init names.
func (o *Opener) Fresh(ctx context.Context, init *contract.InitFrom) (*Model, error) {
	if init == nil {
		return o.create(ctx)
	}
	model, err := o.load(ctx, init.Checkpoint, init.RestoreOptimizer)
	if errors.Is(err, errRefused) && init.RestoreOptimizer && !o.RequireOptimizer {
		o.Logger.Warn("first weights do not load with their optimizer", "path", init.Checkpoint, "err", err)
		model, err = o.load(ctx, init.Checkpoint, false)
	}
	if errors.Is(err, errRefused) {
		return nil, fmt.Errorf("loading the first weights %s: %w: %w", init.Checkpoint, ErrNoUsableState, err)
	}
	return model, err
}

// Resume loads the first of the states, which are given newest first, that can be loaded to train on, and says
// which. It falls back to an older one only when each above it was tried and refused. Where the optimizer is
// not required, a state that loads without it is used, and the model is Cold.
func (o *Opener) Resume(ctx context.Context, states []checkpoints.Entry) (*Model, checkpoints.Entry, error) {
	return o.newest(ctx, states, o.warm)
}

// Restore is Resume for a model that takes no step: nobody looks whether it has its optimizer.
func (o *Opener) Restore(ctx context.Context, states []checkpoints.Entry) (*Model, checkpoints.Entry, error) {
	return o.newest(ctx, states, func(ctx context.Context, state checkpoints.Entry) (*Model, error) {
		return o.restore(ctx, state, true)
	})
}

func (o *Opener) newest(
	ctx context.Context, states []checkpoints.Entry, warm func(context.Context, checkpoints.Entry) (*Model, error),
) (*Model, checkpoints.Entry, error) {
	ways := []func(context.Context, checkpoints.Entry) (*Model, error){warm}
	if !o.RequireOptimizer {
		ways = append(ways, o.cold)
	}
	var refusals []error
	for _, open := range ways {
		for _, state := range states {
			if state.Name.Step == 0 && errors.Is(errors.Join(refusals...), ErrColdOptimizer) {
				continue // for want of an optimizer nothing is begun again from the start
			}
			model, err := open(ctx, state)
			if err == nil {
				return model, state, nil
			}
			if !errors.Is(err, errRefused) {
				return nil, checkpoints.Entry{}, err
			}
			o.Logger.Warn("state is refused", "path", state.Path, "err", err)
			refusals = append(refusals, err)
		}
	}
	return nil, checkpoints.Entry{}, fmt.Errorf("%w: %w", ErrNoUsableState, errors.Join(refusals[:min(len(refusals), 3)]...))
}

// warm loads a state with its optimizer and looks whether it is there. A load may go wrong once; after that
// the state is refused, or used as it is.
func (o *Opener) warm(ctx context.Context, state checkpoints.Entry) (*Model, error) {
	for again := true; ; again = false {
		model, err := o.restore(ctx, state, true)
		if err != nil || o.Check == nil {
			return model, err
		}
		restored, err := o.Check(ctx, state, model.model)
		if err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("looking for the optimizer of %s: %w", state.Path, err)
		}
		if err != nil {
			o.Logger.Warn("nobody knows whether the optimizer was restored", "path", state.Path, "err", err)
		}
		if restored || err != nil {
			return model, nil
		}
		o.Logger.Warn("state was loaded without its optimizer", "path", state.Path)
		if !again && !o.RequireOptimizer {
			model.Cold = true
			return model, nil
		}
		model.Abandon(ctx)
		if !again {
			return nil, fmt.Errorf("%w: %s: %w", errRefused, state.Path, ErrColdOptimizer)
		}
	}
}

// cold loads a state without its optimizer.
func (o *Opener) cold(ctx context.Context, state checkpoints.Entry) (*Model, error) {
	model, err := o.restore(ctx, state, false)
	if err == nil {
		model.Cold = true
	}
	return model, err
}

func (o *Opener) restore(ctx context.Context, state checkpoints.Entry, optimizer bool) (*Model, error) {
	if !state.Listed {
		// Rows name states that may never have been saved; a look is cheaper than a model.
		_, err := o.API.WeightsInfo(ctx, state.Path)
		if isRefusal(err) {
			return nil, fmt.Errorf("%w: %w", errRefused, err)
		}
	}
	return o.load(ctx, state.Path, optimizer)
}

// errRefused says that a state cannot be loaded, now or later.
var errRefused = errors.New("the state is refused")

func isRefusal(err error) bool {
	category := client.CategoryFrom(err)
	return category == tinker.CategoryUser || category == tinker.CategoryNotFound
}

// load makes a model and loads a state into it. Trouble that may pass is tried again, each time with a new
// model, since a load is allowed as a model's first operation alone.
func (o *Opener) load(ctx context.Context, path string, optimizer bool) (*Model, error) {
	const tries = 3
	var err error
	for range tries {
		var model *Model
		if model, err = o.create(ctx); err != nil {
			return nil, err
		}
		if err = model.load(ctx, path, optimizer); err == nil {
			return model, nil
		}
		model.Abandon(ctx)
		if isFinal(err) {
			return nil, err
		}
		if o.isGone(ctx, path, err) {
			break
		}
	}
	return nil, fmt.Errorf("%w: %w", errRefused, err)
}

// isFinal says whether no other state would fare better.
func isFinal(err error) bool {
	switch client.CategoryFrom(err) {
	case tinker.CategoryUnauthorized, tinker.CategoryCanceled:
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isGone says whether a failed load was about the state. A 404 may mean the model as well.
func (o *Opener) isGone(ctx context.Context, path string, err error) bool {
	switch client.CategoryFrom(err) {
	case tinker.CategoryUser:
		return true
	case tinker.CategoryNotFound:
		_, infoErr := o.API.WeightsInfo(ctx, path)
		return isRefusal(infoErr)
	}
	return false
}

func (m *Model) load(ctx context.Context, path string, optimizer bool) error {
	future, err := m.model.LoadState(ctx, path, optimizer)
	if err != nil {
		return fmt.Errorf("loading %s: %w", path, err)
	}
	if _, err := future.Wait(ctx); err != nil {
		return fmt.Errorf("loading %s: %w", path, err)
	}
	return nil
}

func (o *Opener) create(ctx context.Context) (*Model, error) {
	session, err := o.Session(ctx)
	if err != nil {
		return nil, err
	}
	number := o.count()
	seed := o.Base.Seed
	model, err := o.API.CreateModel(ctx, tinker.CreateModelRequest{
		Session: session, ModelSeq: number - 1, BaseModel: o.Base.Name,
		Lora: tinker.LoraConfig{
			Rank: o.Base.LoraRank, Seed: &seed,
			TrainUnembed: o.Base.TrainUnembed, TrainMLP: o.Base.TrainMLP, TrainAttn: o.Base.TrainAttention,
		},
		UserMetadata: tinker.Metadata{MetadataRun: o.RunUID, MetadataAttempt: strconv.Itoa(int(o.Attempt))},
	})
	if client.CategoryFrom(err) == tinker.CategoryNotFound {
		o.Lost(session)
	}
	if isUser(err) {
		return nil, &SettingsError{Err: fmt.Errorf("making a model: %w", err)}
	}
	if err != nil {
		return nil, fmt.Errorf("making a model: %w", err)
	}
	return &Model{api: o.API, model: model, Number: number}, nil
}

// count numbers the models of the attempt.
func (o *Opener) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.made++
	return o.made
}
