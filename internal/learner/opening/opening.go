// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package opening finds the state from which a run resumes, and the versions that can be sampled from there, and keeps
// the run's sessions of the Tinker API alive.
package opening

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// api is the part of the Tinker API that lists the models and checkpoints of earlier attempts.
type api interface {
	TrainingRuns(ctx context.Context) iter.Seq2[tinker.TrainingRun, error]
	UnloadModel(ctx context.Context, modelID string) error
	Checkpoints(ctx context.Context) iter.Seq2[tinker.Checkpoint, error]
	RunCheckpoints(ctx context.Context, runID string) ([]tinker.Checkpoint, error)
	Capabilities(ctx context.Context) (tinker.ServerCapabilities, error)
}

// models makes models.
type models interface {
	Fresh(ctx context.Context, init *contract.InitFrom) (*trainee.Model, error)
	Resume(ctx context.Context, states []checkpoints.Entry) (*trainee.Model, checkpoints.Entry, error)
	RemakeSampler(ctx context.Context, states []checkpoints.Entry) (string, rl.CheckpointName, error)
	Exists(ctx context.Context, state checkpoints.Entry) (bool, error)
}

// rows names states that the server may not list.
type rows interface {
	RecentStates() []string
	// Origin returns the lineage of the version 0 that a version descends from, if rows lead there.
	Origin(v rl.Version) (rl.Lineage, bool)
}

// unloads records which models the attempts of the run have unloaded. If the record is lost, the models are unloaded
// again.
type unloads interface {
	Unloaded() []string
	SetUnloaded(ctx context.Context, models []string) error
}

// Config configures an Opener.
type Config struct {
	File   contract.RunFile
	API    api
	Models models
	Book   *checkpoints.Book
	Rows   rows
	// Unloads is read once.
	Unloads unloads
	// Record keeps which models the attempts of the run have made.
	Record records
	// Saved is called for each checkpoint that was saved.
	Saved func(path string, name rl.CheckpointName, sampler bool)
	// IsMissing reports whether a worker did not find the sampler weights at a path.
	IsMissing func(path string) bool
	Logger    *slog.Logger
	Now       func() time.Time
}

// Opener opens the models of one attempt.
type Opener struct {
	Config

	// Former is the run file of the run that File.ResumeFrom names; nil if not known.
	Former *contract.RunFile
	// Namesake is an earlier run of the same namespace and name that has committed a step; nil if there is none.
	Namesake *contract.EarlierRun
	// models are the models that the endpoint lists, and unloaded the models that need not be unloaded again.
	models   map[string]tinker.Metadata
	unloaded map[string]bool
	// own are the models that this attempt has made, and loaded is set if it has made one since the last List.
	own    []string
	loaded bool
	record record
	// lost are the steps whose versions were lost from a window.
	lost map[int64]bool
}

// New returns an opener.
func New(config Config) *Opener { return &Opener{Config: config} }

// Loaded is a model and the position of the state that was loaded into it.
type Loaded struct {
	// Model is nil if a run that only evaluates uses sampler weights as they are.
	Model *trainee.Model
	At    checkpoints.Position
	// Former says that the state belongs to the run that File.ResumeFrom names.
	Former bool
}

// Load loads the newest state, or the run's initial weights. A state of a higher attempt means that this attempt is
// superseded.
func (o *Opener) Load(ctx context.Context) (Loaded, error) {
	var states []checkpoints.Entry
	if o.File.Fixed.Algorithm != nil {
		states = o.Book.States()
	}
	own, former := o.split(states)
	if len(own) > 0 && own[0].Name.Attempt > o.File.Attempt {
		return Loaded{}, fmt.Errorf("attempt %d: %w: %d", o.File.Attempt, artifacts.ErrFenced, own[0].Name.Attempt)
	}
	states, err := o.ofOwnSettings(ctx, own)
	if err != nil {
		return Loaded{}, err
	}
	if states, err = o.withFormer(states, former); err != nil {
		return Loaded{}, err
	}
	if len(states) == 0 {
		model, err := o.first(ctx)
		at := checkpoints.Position{Version: rl.Version{Lineage: rl.Genesis(o.File.SpecDigest)}}
		if init := o.File.Fixed.InitFrom; init != nil {
			at.Cursor = init.Cursor
		}
		return Loaded{Model: model, At: at}, err
	}
	model, state, err := o.Models.Resume(ctx, states)
	if err != nil {
		return Loaded{}, err
	}
	at := checkpoints.PositionOf(state.Name)
	o.Logger.Info("state is loaded", "path", state.Path, "step", at.Step)
	return Loaded{Model: model, At: at, Former: state.Former}, nil
}

// first makes the model that the run begins with.
func (o *Opener) first(ctx context.Context) (*trainee.Model, error) {
	if o.GivenSampler() != "" {
		return nil, nil
	}
	return o.Models.Fresh(ctx, o.File.Fixed.InitFrom)
}

// GivenSampler returns the path of the sampler weights that a run evaluates as they are; empty if there are none.
func (o *Opener) GivenSampler() string {
	init := o.File.Fixed.InitFrom
	if o.File.Fixed.Algorithm != nil || init == nil {
		return ""
	}
	if path, err := tinker.ParsePath(init.Checkpoint); err != nil || path.Kind != tinker.KindSampler {
		return ""
	}
	return init.Checkpoint
}
