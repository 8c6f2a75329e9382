// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import "github.com/tinker-operator/tinker-operator/test/model/engine"

const (
	maxAttempts = 3
	// unstarted is an attempt that is never started.
	unstarted = maxAttempts + 1
)

// Config is one configuration of the model: the rules of the exchange and of the heartbeat, and how many faults there
// are.
type Config struct {
	// CheckSignature: a learner is fenced by a report only if the signature in it is valid.
	CheckSignature bool
	// SignAttempt and SignRun: the signed message names the attempt and the run.
	SignAttempt, SignRun bool
	// KeyPerRun: each run has a private key of its own.
	KeyPerRun bool
	// KeyAtLearnersOnly: workers do not have the private key.
	KeyAtLearnersOnly bool
	// ManagerToken: the heartbeat needs a token of its own, not the token of the exchange.
	ManagerToken bool
	// CheckToken: the exchange admits only workers with the run's token.
	CheckToken bool
	// CheckCertificate: a worker believes only messages with the learner's certificate.
	CheckCertificate bool
	// PassOn: a worker reports the signature with the attempt.
	PassOn bool

	// Unreachable: the manager does not reach a learner that it has superseded.
	Unreachable bool
	// Crashes are crashes of learners, and SecondLearners attempts that start while the previous one still runs.
	Crashes, SecondLearners int
}

// The states of a learner.
const (
	absent uint8 = iota
	runs
	fenced
	dead
	done
)

// State is a state of the model. Attempts are numbered from 1.
type State struct {
	// Attempt is the newest attempt that the manager has started.
	Attempt uint8
	Learner [maxAttempts + 1]uint8
	// Known is the highest attempt that the honest worker knows of, and Signed is 1 if it has the signature of its
	// learner.
	Known, Signed uint8
	// Stolen has a bit for each attempt whose signature the attacker has.
	Stolen uint8
	// The faults that are left.
	Crashes, SecondLearners uint8
	Broken                  uint8
}

// The invariants.
const (
	fencedFalsely engine.Code = iota + 1
	strangerAdmitted
)

var codeNames = map[engine.Code]string{
	fencedFalsely:    "I10 a learner is fenced though no later attempt has begun",
	strangerAdmitted: "I10 a worker of another run is admitted",
}

// Model is the model.
type Model struct{ config Config }

// New returns the model of a configuration.
func New(config Config) *Model { return &Model{config} }

// Init implements engine.Model.
func (m *Model) Init() State {
	return State{Crashes: uint8(m.config.Crashes), SecondLearners: uint8(m.config.SecondLearners)}
}

// Check implements engine.Model.
func (m *Model) Check(s *State) engine.Code { return engine.Code(s.Broken) }

// Done implements engine.Model. A run is done once its newest learner is done and no superseded learner runs.
func (m *Model) Done(s *State) bool {
	for n := uint8(1); n < s.Attempt; n++ {
		if s.Learner[n] == runs {
			return false
		}
	}
	return s.Learner[s.Attempt] == done
}

// CodeName implements engine.Model.
func (m *Model) CodeName(code engine.Code) string { return codeNames[code] }
