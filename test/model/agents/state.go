// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/test/model/engine"
)

// The agent has two parts at once. Each part makes a first request, and then a second request that follows from the
// sample of the first. Parts that begin with the same prompt do the same with the same sample.
const (
	parts = 2
	// calls is greater than the number of calls that an episode has under any rule.
	calls = 8
)

// Config is one configuration of the model: the rules, and how many faults of each kind there are.
type Config struct {
	// Equal begins both parts with the same prompt.
	Equal bool
	// Repeat makes the count of earlier equal requests of the episode a part of the ID.
	Repeat bool
	// Adopt lets a request continue an equal request whose client has gone, and AdoptOpen any equal request.
	Adopt, AdoptOpen bool
	// ByDigest numbers branches by their first requests, at the end. Otherwise they are numbered as they begin.
	ByDigest bool
	// PlayAgain plays an episode again if its agent ended while a request was unanswered: as the same try, or with NextTry
	// as the next try. Otherwise the episode is trained on as it is.
	PlayAgain, NextTry bool

	Leaves, Outages, WorkerDeaths int
}

// call is a request that is sampled, whatever becomes of its client.
type call struct {
	// Content is 1 plus the content of the request. Seed and number follow from ID.
	Content, ID uint8
	// Held says that a client waits, Sampled that the reply is there, and Delivered that a client has had it.
	Held, Sampled, Delivered uint8
}

// State is a state of the model.
type State struct {
	// Got has 1 plus the ID of each sample that a part has had.
	Got [parts][2]uint8
	// Waits says that a part has asked. Call is 1 plus the call that the part's client waits for; 0 if no client waits.
	Waits, Call [parts]uint8
	// Began is the place, counted from 1, of a part's first request among the parts' first requests; 0 before it.
	Began [parts]uint8
	// Calls are in the order in which they came.
	Calls [calls]call
	// Known are the IDs that were paid for.
	Known uint64
	Paid  uint8
	Try   uint8
	// Worker is 1 while the worker lives.
	Worker uint8
	Ended  uint8
	// The faults that are left.
	Leaves, Outages, WorkerDeaths uint8
	Broken                        uint8
}

// The invariants.
const (
	notReproducible engine.Code = 1 + iota
	shared
	boughtTwice
)

var codeNames = map[engine.Code]string{
	notReproducible: "I2 what is trained on depends on the order of requests",
	shared:          "I2 two open requests have one sample",
	boughtTwice:     "I8 an episode that is played again buys what was paid for",
}

// Model is the model.
type Model struct{ config Config }

// New returns the model of a configuration.
func New(config Config) *Model { return &Model{config} }

// Init implements engine.Model.
func (m *Model) Init() State {
	c := m.config
	return State{Worker: 1, Leaves: uint8(c.Leaves), Outages: uint8(c.Outages), WorkerDeaths: uint8(c.WorkerDeaths)}
}

// Check implements engine.Model.
func (m *Model) Check(s *State) engine.Code { return engine.Code(s.Broken) }

// Done implements engine.Model.
func (m *Model) Done(s *State) bool { return s.Ended > 0 }

// CodeName implements engine.Model.
func (m *Model) CodeName(code engine.Code) string { return codeNames[code] }

// Label implements engine.Model.
func (m *Model) Label(act engine.Act, _, _ *State) string {
	switch act.Kind {
	case asked:
		return fmt.Sprintf("part %d asks, and waits for call %d", act.A, act.B)
	case sampled:
		return fmt.Sprintf("call %d has its sample", act.A)
	case delivered:
		return fmt.Sprintf("part %d has the sample of call %d", act.A, act.B)
	case left:
		return fmt.Sprintf("the client of part %d LEAVES", act.A)
	case refused:
		return fmt.Sprintf("part %d is asked to COME BACK", act.A)
	case gaveUp:
		return fmt.Sprintf("part %d gives up, and the agent ends", act.A)
	case workerDies:
		return "worker DIES"
	case replayed:
		return "another worker plays the member from its beginning"
	case finished:
		return "the episode is finished"
	}
	return "?"
}
