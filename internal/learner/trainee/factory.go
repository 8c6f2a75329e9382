// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// The keys of a model's user_metadata, by which a run's models are found.
const (
	MetadataRun     = "run"
	MetadataAttempt = "attempt"
	// MetadataName is the run's namespace/name, and MetadataSpec the digest of the settings that decide its weights.
	MetadataName = "name"
	MetadataSpec = "spec"
)

// MetadataStep is the key of a checkpoint's user_metadata that has its step.
const MetadataStep = "step"

// Factory makes the models of one attempt.
type Factory struct {
	API    endpoint
	Logger *slog.Logger
	// Session returns the session that models are made in; it may be another one after a restart of the
	// server.
	Session func(ctx context.Context) (string, error)
	Run     contract.RunReference
	Attempt int32
	// SpecDigest is the digest in the run file.
	SpecDigest string
	Base       contract.Model
	// Described is the metadata of checkpoints, to which their step is added; nil if the server may refuse metadata.
	Described tinker.Metadata
	// RequireOptimizer refuses states that load without the optimizer.
	RequireOptimizer bool
	// Lost is called with a session that no longer exists.
	Lost func(session string)
	// Made is called with each model before anything is done with it, and Ended once the model is no longer used. saved
	// says whether the model may have saved something. Both functions may be nil.
	Made  func(ctx context.Context, model string) error
	Ended func(model string, saved bool)
	// Check reports whether the optimizer of a state was restored with it. If Check is nil, nothing is checked.
	Check func(ctx context.Context, state checkpoints.Entry, model *client.Model) (bool, error)

	// Now is the clock.
	Now func() time.Time
	// Averages is set if the server averages gradients over tokens and sequences, which models then compensate.
	Averages atomic.Bool

	// made counts the models of the attempt.
	made atomic.Int64

	mu sync.Mutex
	// failing has, by path, the time since which a state has failed to load without being refused.
	failing map[string]time.Time
}

// Fresh makes the model that a run begins with: the base model, or the checkpoint in init.
func (f *Factory) Fresh(ctx context.Context, init *contract.InitFrom) (*Model, error) {
	if init == nil {
		return f.create(ctx)
	}
	model, err := f.load(ctx, init.Checkpoint, init.RestoreOptimizer)
	if failure.CodeOf(err) == problem.NoUsableCheckpoint && init.RestoreOptimizer && !f.RequireOptimizer {
		f.Logger.Warn("first weights do not load with their optimizer", "path", init.Checkpoint, "err", err)
		model, err = f.load(ctx, init.Checkpoint, false)
	}
	if failure.CodeOf(err) == problem.NoUsableCheckpoint {
		return nil, failure.New(problem.CheckpointMissing, err, "no first weights can be loaded")
	}
	return model, err
}

// Resume loads the first of the states, which are given newest first, that can be loaded to train on, and returns it
// with its model. It falls back to an older state only after each newer one was refused or has failed for minutes. If
// the optimizer is not required, a state that loads without it is used, and the model is Cold.
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
	path, err := model.SaveSampler(ctx, name)
	return path, name, err
}

// Restore is like Resume, but for a model that takes no step: whether its optimizer was restored does not matter.
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
	var outage error
	for _, open := range loads {
		for _, state := range states {
			if state.Name.Step == 0 && errors.Is(errors.Join(refusals...), ErrColdOptimizer) {
				continue // a lost optimizer does not justify beginning again from the start
			}
			model, err := open(ctx, state)
			if err == nil {
				return model, state, nil
			}
			if failure.CodeOf(err) != problem.NoUsableCheckpoint {
				if !f.isStuck(ctx, state.Path, err) {
					return nil, checkpoints.Entry{}, err
				}
				outage = err
				continue
			}
			f.Logger.Warn("state is refused", "path", state.Path, "err", err)
			refusals = append(refusals, err)
		}
	}
	if outage != nil {
		return nil, checkpoints.Entry{}, outage
	}
	return nil, checkpoints.Entry{}, failure.New(problem.NoUsableCheckpoint,
		errors.Join(refusals[:min(len(refusals), 3)]...), "no saved state can be loaded")
}

// isStuck reports whether a state has failed to load for so long, without being refused, that an older state is tried
// instead, because the outage may concern this state alone.
func (f *Factory) isStuck(ctx context.Context, path string, err error) bool {
	const patience = 5 * time.Minute
	if code := failure.CodeOf(err); ctx.Err() != nil || (code != failure.Outage && code != failure.LostModel) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing == nil {
		f.failing = map[string]time.Time{}
	}
	since, known := f.failing[path]
	if !known {
		f.failing[path] = f.Now()
	}
	return known && f.Now().Sub(since) >= patience
}

// warm loads a state with its optimizer and checks that the optimizer was restored. A load may lose the optimizer
// once, so the state is loaded again. If the optimizer is lost again, the state is refused, or used without it.
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
			return nil, failure.New(problem.NoUsableCheckpoint, ErrColdOptimizer, "loading %s", state.Path)
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
	if err := f.askFor(ctx, state); failure.CodeOf(err) == problem.NoUsableCheckpoint {
		return nil, err
	}
	return f.load(ctx, state.Path, optimizer)
}

// askFor asks for a state that the server does not list: rows name states that may never have been saved, and asking is
// cheaper than making a model.
func (f *Factory) askFor(ctx context.Context, state checkpoints.Entry) error {
	if state.Listed {
		return nil
	}
	return f.ask(ctx, state.Path)
}

// Exists reports whether a state exists. It returns true if the endpoint does not support the question.
func (f *Factory) Exists(ctx context.Context, state checkpoints.Entry) (bool, error) {
	err := f.askFor(ctx, state)
	switch code := failure.CodeOf(err); {
	case code == problem.NoUsableCheckpoint:
		return false, nil
	case code == failure.Outage, code == problem.KeyRefused, client.CategoryFrom(err) == tinker.CategoryNotTinker:
		return false, err
	}
	return true, ctx.Err()
}

// ask asks for a state. The state counts as lost if the endpoint says so twice and answers another question in
// between, because one 404 may come from a proxy.
func (f *Factory) ask(ctx context.Context, path string) error {
	var err error
	for again := range 2 {
		if again > 0 {
			if _, err := f.API.Capabilities(ctx); err != nil {
				return failure.New(failure.Outage, err, "asking for %s", path)
			}
		}
		if _, err = f.API.WeightsInfo(ctx, path); failure.CodeOf(asking.Failed(err, "")) != problem.NoUsableCheckpoint {
			break
		}
	}
	return asking.Failed(err, "asking for %s", path)
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
		if err = f.loadFailed(ctx, path, model.load(ctx, path, optimizer)); err == nil {
			return model, nil
		}
		model.Abandon(ctx)
		if code := failure.CodeOf(err); code != failure.Outage && code != failure.LostModel {
			break
		}
	}
	return nil, err
}

// loadFailed classifies the failure of a load. A 404 may concern the model or the state, and a refusal that is not a
// result may come from a proxy. In these cases the state counts as lost only if the endpoint says so when it is
// asked.
func (f *Factory) loadFailed(ctx context.Context, path string, err error) error {
	operation := loading
	if err != nil && damaged.MatchString(err.Error()) {
		return failure.New(problem.NoUsableCheckpoint, err, "loading %s", path)
	}
	refused := false
	switch client.CategoryFrom(err) {
	case tinker.CategoryNotFound:
		refused = true
	case tinker.CategoryUser, tinker.CategoryTooLarge:
		refused = !client.IsResult(err)
	}
	if refused {
		operation.Refused = failure.Outage
		if failure.CodeOf(f.ask(ctx, path)) == problem.NoUsableCheckpoint {
			operation = failure.Operation{Refused: problem.NoUsableCheckpoint, Missing: problem.NoUsableCheckpoint}
		}
	}
	return operation.Failed(err, "loading %s", path)
}

// damaged matches the messages of servers about a checkpoint that is damaged. The API has no code for it.
var damaged = regexp.MustCompile(`(?i)\bcorrupt`)

func (m *Model) load(ctx context.Context, path string, optimizer bool) error {
	future, err := m.model.LoadState(ctx, path, optimizer)
	if err == nil {
		_, err = future.Wait(ctx)
	}
	return err
}

func (f *Factory) create(ctx context.Context) (*Model, error) {
	session, err := f.Session(ctx)
	if err != nil {
		return nil, err
	}
	number := int(f.made.Add(1))
	seed := f.Base.Seed
	model, err := f.API.CreateModel(ctx, tinker.CreateModelRequest{
		Session: session, ModelSeq: number - 1, BaseModel: f.Base.Name,
		Lora: tinker.LoraConfig{
			Rank: f.Base.LoraRank, Seed: &seed,
			TrainUnembed: f.Base.TrainUnembed, TrainMLP: f.Base.TrainMLP, TrainAttn: f.Base.TrainAttention,
		},
		UserMetadata: f.metadata(),
	})
	if client.CategoryFrom(err) == tinker.CategoryNotFound {
		f.Lost(session)
	}
	if err != nil {
		return nil, creating.Failed(err, "making a model")
	}
	made := &Model{api: f.API, model: model, averages: f.Averages.Load(), described: f.Described, Number: number,
		ended: f.Ended}
	if f.Made != nil {
		if err := f.Made(ctx, made.ID()); err != nil {
			made.Abandon(ctx)
			return nil, err
		}
	}
	return made, nil
}

// metadata lets other attempts and other runs find a model.
func (f *Factory) metadata() tinker.Metadata {
	return tinker.Metadata{
		MetadataRun: f.Run.UID, MetadataAttempt: strconv.Itoa(int(f.Attempt)),
		MetadataName: f.Run.Namespace + "/" + f.Run.Name, MetadataSpec: f.SpecDigest,
	}
}
