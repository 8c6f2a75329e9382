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
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// The keys of a model's user_metadata, by which a run's models are found.
const (
	MetadataRun     = "run"
	MetadataAttempt = "attempt"
)

// Factory makes the models of one attempt.
type Factory struct {
	API    endpoint
	Logger *slog.Logger
	// Session returns the session that models are made in; it may be another one after a restart of the
	// server.
	Session func(ctx context.Context) (string, error)
	RunUID  string
	Attempt int32
	Base    contract.Model
	// RequireOptimizer refuses states that load without the optimizer.
	RequireOptimizer bool
	// Lost is called with a session that no longer exists.
	Lost func(session string)
	// Check reports whether the optimizer of a state was restored with it; nil does not check.
	Check func(ctx context.Context, state checkpoints.Entry, model *client.Model) (bool, error)

	mu   sync.Mutex
	made int
}

// Fresh makes the model that a run begins with: the base model, or what init names.
func (f *Factory) Fresh(ctx context.Context, init *contract.InitFrom) (*Model, error) {
	if init == nil {
		return f.create(ctx)
	}
	model, err := f.load(ctx, init.Checkpoint, init.RestoreOptimizer)
	if errors.Is(err, errRefused) && init.RestoreOptimizer && !f.RequireOptimizer {
		f.Logger.Warn("first weights do not load with their optimizer", "path", init.Checkpoint, "err", err)
		model, err = f.load(ctx, init.Checkpoint, false)
	}
	if errors.Is(err, errRefused) {
		return nil, fmt.Errorf("loading the first weights %s: %w: %w", init.Checkpoint, ErrNoUsableState, err)
	}
	return model, err
}

// Resume loads the first of the states, which are given newest first, that can be loaded to train on, and returns
// it with its model. It falls back to an older one only when each above it was tried and refused. Where the optimizer is
// not required, a state that loads without it is used, and the model is Cold.
func (f *Factory) Resume(ctx context.Context, states []checkpoints.Entry) (*Model, checkpoints.Entry, error) {
	return f.newest(ctx, states, f.warm)
}

// RemakeSampler makes sampler weights from the first of the states that can be loaded, with or without its
// optimizer, and returns their path and name.
func (f *Factory) RemakeSampler(ctx context.Context, states []checkpoints.Entry) (string, rl.CheckpointName, error) {
	model, state, err := f.Restore(ctx, states)
	if err != nil {
		return "", rl.CheckpointName{}, err
	}
	defer model.Abandon(ctx)
	name := state.Name
	name.Attempt, name.Model = f.Attempt, model.Number
	path, err := model.SaveSampler(ctx, name.String())
	return path, name, err
}

// Restore is Resume for a model that takes no step: whether its optimizer was restored does not matter.
func (f *Factory) Restore(ctx context.Context, states []checkpoints.Entry) (*Model, checkpoints.Entry, error) {
	return f.newest(ctx, states, func(ctx context.Context, state checkpoints.Entry) (*Model, error) {
		return f.restore(ctx, state, true)
	})
}

func (f *Factory) newest(
	ctx context.Context, states []checkpoints.Entry, warm func(context.Context, checkpoints.Entry) (*Model, error),
) (*Model, checkpoints.Entry, error) {
	loads := []func(context.Context, checkpoints.Entry) (*Model, error){warm}
	if !f.RequireOptimizer {
		loads = append(loads, f.cold)
	}
	var refusals []error
	for _, open := range loads {
		for _, state := range states {
			if state.Name.Step == 0 && errors.Is(errors.Join(refusals...), ErrColdOptimizer) {
				continue // a lost optimizer is no reason to begin again from the start
			}
			model, err := open(ctx, state)
			if err == nil {
				return model, state, nil
			}
			if !errors.Is(err, errRefused) {
				return nil, checkpoints.Entry{}, err
			}
			f.Logger.Warn("state is refused", "path", state.Path, "err", err)
			refusals = append(refusals, err)
		}
	}
	return nil, checkpoints.Entry{}, fmt.Errorf("%w: %w", ErrNoUsableState, errors.Join(refusals[:min(len(refusals), 3)]...))
}

// warm loads a state with its optimizer and checks that the optimizer was restored. A load may fail once at that;
// then the state is refused, or used as it is.
func (f *Factory) warm(ctx context.Context, state checkpoints.Entry) (*Model, error) {
	for again := true; ; again = false {
		model, err := f.restore(ctx, state, true)
		if err != nil || f.Check == nil {
			return model, err
		}
		restored, err := f.Check(ctx, state, model.model)
		if err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("checking the optimizer of %s: %w", state.Path, err)
		}
		if err != nil {
			f.Logger.Warn("it is not known whether the optimizer was restored", "path", state.Path, "err", err)
		}
		if restored || err != nil {
			return model, nil
		}
		f.Logger.Warn("state was loaded without its optimizer", "path", state.Path)
		if !again && !f.RequireOptimizer {
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
func (f *Factory) cold(ctx context.Context, state checkpoints.Entry) (*Model, error) {
	model, err := f.restore(ctx, state, false)
	if err == nil {
		model.Cold = true
	}
	return model, err
}

func (f *Factory) restore(ctx context.Context, state checkpoints.Entry, optimizer bool) (*Model, error) {
	if !state.Listed {
		// Rows name states that may never have been saved; asking is cheaper than making a model.
		_, err := f.API.WeightsInfo(ctx, state.Path)
		if isRefusal(err) {
			return nil, fmt.Errorf("%w: %w", errRefused, err)
		}
	}
	return f.load(ctx, state.Path, optimizer)
}

// errRefused says that a state cannot be loaded, now or later.
var errRefused = errors.New("the state is refused")

func isRefusal(err error) bool {
	category := client.CategoryFrom(err)
	return category == tinker.CategoryUser || category == tinker.CategoryNotFound
}

// load makes a model and loads a state into it. A failure that may pass is retried, each time with a new model,
// since a model accepts a load only as its first operation.
func (f *Factory) load(ctx context.Context, path string, optimizer bool) (*Model, error) {
	const tries = 3
	var err error
	for range tries {
		var model *Model
		if model, err = f.create(ctx); err != nil {
			return nil, err
		}
		if err = model.load(ctx, path, optimizer); err == nil {
			return model, nil
		}
		model.Abandon(ctx)
		if isFinal(err) {
			return nil, err
		}
		if f.isStateLost(ctx, path, err) {
			break
		}
	}
	return nil, fmt.Errorf("%w: %w", errRefused, err)
}

// isFinal reports whether loading any other state would fail as well.
func isFinal(err error) bool {
	switch client.CategoryFrom(err) {
	case tinker.CategoryUnauthorized, tinker.CategoryCanceled:
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isStateLost reports whether a load failed because of the state. A 404 may mean the model as well.
func (f *Factory) isStateLost(ctx context.Context, path string, err error) bool {
	switch client.CategoryFrom(err) {
	case tinker.CategoryUser:
		return true
	case tinker.CategoryNotFound:
		_, infoErr := f.API.WeightsInfo(ctx, path)
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

func (f *Factory) create(ctx context.Context) (*Model, error) {
	session, err := f.Session(ctx)
	if err != nil {
		return nil, err
	}
	number := f.count()
	seed := f.Base.Seed
	model, err := f.API.CreateModel(ctx, tinker.CreateModelRequest{
		Session: session, ModelSeq: number - 1, BaseModel: f.Base.Name,
		Lora: tinker.LoraConfig{
			Rank: f.Base.LoraRank, Seed: &seed,
			TrainUnembed: f.Base.TrainUnembed, TrainMLP: f.Base.TrainMLP, TrainAttn: f.Base.TrainAttention,
		},
		UserMetadata: tinker.Metadata{MetadataRun: f.RunUID, MetadataAttempt: strconv.Itoa(int(f.Attempt))},
	})
	if client.CategoryFrom(err) == tinker.CategoryNotFound {
		f.Lost(session)
	}
	if isUser(err) {
		return nil, &SettingsError{Err: fmt.Errorf("making a model: %w", err)}
	}
	if err != nil {
		return nil, fmt.Errorf("making a model: %w", err)
	}
	return &Model{api: f.API, model: model, Number: number}, nil
}

// count returns the number of the next model of the attempt.
func (f *Factory) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made++
	return f.made
}
