// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import "github.com/tinker-operator/tinker-operator/test/model/engine"

// Each step needs one group, which takes several samples. Models are never used again once they are replaced.
const (
	steps      = 3
	turns      = 2
	maxWorkers = 2
	maxModels  = 6
	maxOrphans = 3
)

// Config is one configuration of the model: the rules, and how many faults of each kind there are.
type Config struct {
	// Acknowledge means that the learner trains a model only if the worker of each lease of its weights has ended the
	// lease. Otherwise it loads the newest state into a new model.
	Acknowledge bool
	// ReportUnanswered means that a worker reports, with a group, that it gave up a sample.
	ReportUnanswered bool
	// Unload means that a replaced model is unloaded.
	Unload bool
	// ByIndex means that the server finds the adapter of sampler weights by its index, which the next model takes over.
	ByIndex bool

	LostWorkers, Deadlines, Crashes int
}

// The phases of the learner.
const (
	collecting uint8 = iota
	passed           // forward_backward is executed.
	stepped          // optim_step is executed.
	announced        // The sampler weights of the next version can be leased, and its state is not saved yet.
)

// trained is a model at the server: the version of its weights, and one more than the version that it loaded last for
// samples.
type trained struct{ Alive, Weights, Loaded uint8 }

// playing is a worker's play: the group of a version, sampled in a model.
type playing struct {
	Active, Model, Version, Turn uint8
	// Posted is 1 while a sample has no answer, Wrong once a sample came from another version, and Unanswered once the
	// worker gave up a sample.
	Posted, Wrong, Unanswered uint8
}

// orphan is a sample that is not drawn yet and that no worker waits for.
type orphan struct{ Waiting, Model, Version uint8 }

// State is a state of the model.
type State struct {
	Models [maxModels]trained
	// Phase, Model and Version are the learner's; Saved is the version of the newest state.
	Phase, Model, Version, Saved uint8
	// Group is 1 once the group of the version is finished, and Leased is one more than the worker that has its lease.
	Group, Leased uint8
	// Open are the workers that have not ended their lease of the model's weights, and Unclear is 1 once a lease can no
	// longer end.
	Open    [maxWorkers]uint8
	Unclear uint8
	Workers [maxWorkers]playing
	// Lost are the workers that the learner has lost.
	Lost    [maxWorkers]uint8
	Orphans [maxOrphans]orphan
	// The faults that are left.
	LostWorkers, Deadlines, Crashes uint8
	Broken                          uint8
}

// The invariants.
const (
	biasedWeights engine.Code = iota + 1
	wrongVersion
)

// Model is the model.
type Model struct{ config Config }

// New returns the model of a configuration.
func New(config Config) *Model { return &Model{config} }

// Init implements engine.Model.
func (m *Model) Init() State {
	c := m.config
	s := State{LostWorkers: uint8(c.LostWorkers), Deadlines: uint8(c.Deadlines), Crashes: uint8(c.Crashes)}
	s.Models[0].Alive = 1
	return s
}

// Check implements engine.Model.
func (m *Model) Check(s *State) engine.Code { return engine.Code(s.Broken) }

// Done implements engine.Model.
func (m *Model) Done(s *State) bool { return s.Saved == steps }

// CodeName implements engine.Model.
func (m *Model) CodeName(code engine.Code) string {
	if code == biasedWeights {
		return "I1 a version is trained from, or saved with, the weights of another one"
	}
	return "I2 a group has samples of another version"
}
