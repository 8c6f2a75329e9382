// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/test/model/engine"
)

// The model has one slot with one member. Tries and posts are bounded.
const (
	turns = 2
	tries = 3
	posts = 3
)

// Config is one configuration of the model: the rules, and how many faults of each kind there are.
type Config struct {
	// TryOnLoss means that a lost future (410) raises the try, and with it the seed.
	TryOnLoss bool
	// TryOnCrash means that a lease given to another worker raises the try.
	TryOnCrash bool
	// PostInID means that the sequence number has a counter of re-posts, which the seed does not have.
	PostInID bool
	// LearnerHeartbeat means that the learner keeps the session alive too, or makes a new one.
	LearnerHeartbeat bool

	LostReplies, LostFutures, Crashes, EnvironmentFaults int
}

// The session's knowledge of a sequence number.
const (
	unknown uint8 = iota
	paid
	lost
)

// State is a state of the model.
type State struct {
	Turn, Try, Post uint8
	// Worker and Session are 1 while they are alive.
	Worker, Session uint8
	Key             [turns][tries][posts]uint8
	// Got is 1 plus the try whose sample entered the group.
	Got            [turns]uint8
	Paid, Finished uint8
	// The faults that are left.
	LostReplies, LostFutures, Crashes, EnvironmentFaults uint8
	Broken                                               uint8
}

// notReproducible is the code of the only invariant.
const notReproducible engine.Code = 1

// Model is the model.
type Model struct{ config Config }

// New returns the model of a configuration.
func New(config Config) *Model { return &Model{config} }

// Init implements engine.Model.
func (m *Model) Init() State {
	c := m.config
	return State{
		Worker: 1, Session: 1, LostReplies: uint8(c.LostReplies), LostFutures: uint8(c.LostFutures),
		Crashes: uint8(c.Crashes), EnvironmentFaults: uint8(c.EnvironmentFaults),
	}
}

// Check implements engine.Model.
func (m *Model) Check(s *State) engine.Code { return engine.Code(s.Broken) }

// Done implements engine.Model.
func (m *Model) Done(s *State) bool { return s.Finished == 1 }

// CodeName implements engine.Model.
func (m *Model) CodeName(engine.Code) string { return "I2 the group's samples depend on what was lost" }

// Label implements engine.Model.
func (m *Model) Label(act engine.Act, _, to *State) string {
	switch act.Kind {
	case sampled:
		return fmt.Sprintf("worker gets the sample of turn %d, try %d, post %d", act.A, act.B, act.C)
	case replyLost:
		return fmt.Sprintf("sample of turn %d is made, its reply is LOST", act.A)
	case futureLost:
		if act.A == 1 {
			return fmt.Sprintf("worker asks anew: try %d, post %d", to.Try, to.Post)
		}
		return "the future is LOST for good (410)"
	case workerCrash:
		return "worker CRASHES"
	case workerReplaced:
		return fmt.Sprintf("another worker takes the lease, try %d", to.Try)
	case environmentFault:
		return fmt.Sprintf("the environment has a FAULT, try %d", to.Try)
	case finished:
		return "the group is finished"
	case sessionExpired:
		return "no worker sends heartbeats: the session EXPIRES"
	case sessionMade:
		return "the learner makes a new session"
	}
	return "?"
}
