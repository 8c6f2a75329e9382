// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package conversations

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/test/model/engine"
)

// The program makes two requests in each of two conversations. The first conversation asks the same prompt twice, as a
// program that chooses among replies does, and the second begins with the same prompt. So neither the prompt nor its
// place in the conversation tells requests apart.
const (
	conversations = 2
	turns         = 2
	// seeds is greater than any seed that a request has under any rule, and ids greater than any number.
	seeds = 16
	ids   = 2 * seeds
)

// prompts has the prompt of each request.
var prompts = [conversations][turns]uint8{{0, 0}, {0, 1}}

// Config is one configuration of the model: the rules, and how many faults of each kind there are.
type Config struct {
	// ByArrival numbers requests in the order in which the episode made them. Otherwise a number is a hash.
	ByArrival bool
	// Conversation, Prompt and Repeat select the hashed values: the key of the conversation, the prompt, and how often the
	// conversation has asked the same before. Without Conversation, Repeat counts equal requests of the whole episode.
	Conversation, Prompt, Repeat bool
	// ByWorker numbers the requests of each worker apart, with the same seeds.
	ByWorker bool
	// TwoOpen permits a conversation to have two open requests. Otherwise a second one is a fault.
	TwoOpen bool
	// Requests limits the requests of an episode; 0 means no limit.
	Requests uint8
	// KeepLimited trains on the replies that an episode of several conversations has when the limit ends it. Otherwise the
	// member is left out.
	KeepLimited bool
	// StopOfLast takes the member's stop reason from the reply that came last, instead of the conversation with the last
	// key.
	StopOfLast bool

	WorkerDeaths, LearnerDeaths, LostFutures int
}

// State is a state of the model.
type State struct {
	// Arrived counts the requests that were made.
	Arrived uint8
	// Open has 1 plus the number of each request that was made.
	Open [conversations][turns]uint8
	// Got has 1 plus the seed of the sample of each request that was answered.
	Got [conversations][turns]uint8
	// Last is the conversation whose reply came last.
	Last uint8
	// Known has 1 plus the prompt for which the session knows a number, and Lost has 1 for a number whose future was lost.
	Known, Lost [ids]uint8
	// Paid counts samples in the session.
	Paid uint8
	// Worker and Learner are 1 while they live.
	Worker, Learner uint8
	// Ended is 1 for a complete episode, and 2 for an episode that the limit ended.
	Ended uint8
	// The faults that are left.
	WorkerDeaths, LearnerDeaths, LostFutures uint8
	Broken                                   uint8
}

// The invariants.
const (
	notReproducible engine.Code = 1 + iota
	reused
	shared
	boughtTwice
)

var codeNames = map[engine.Code]string{
	notReproducible: "I2 what is trained on depends on the order of requests",
	reused:          "I2 a number is used for another request",
	shared:          "I2 two requests of a member have one number",
	boughtTwice:     "I8 a member that is played again buys what was paid for",
}

// Model is the model.
type Model struct{ config Config }

// New returns the model of a configuration.
func New(config Config) *Model { return &Model{config} }

// Init implements engine.Model.
func (m *Model) Init() State {
	c := m.config
	return State{
		Worker: 1, Learner: 1, WorkerDeaths: uint8(c.WorkerDeaths), LearnerDeaths: uint8(c.LearnerDeaths),
		LostFutures: uint8(c.LostFutures),
	}
}

// Check implements engine.Model.
func (m *Model) Check(s *State) engine.Code { return engine.Code(s.Broken) }

// Done implements engine.Model.
func (m *Model) Done(s *State) bool { return s.Ended > 0 }

// CodeName implements engine.Model.
func (m *Model) CodeName(code engine.Code) string { return codeNames[code] }

// Label implements engine.Model.
func (m *Model) Label(act engine.Act, _, to *State) string {
	switch act.Kind {
	case asked:
		return fmt.Sprintf("conversation %d asks prompt %d under number %d", act.A, act.B, act.C)
	case answered:
		return fmt.Sprintf("conversation %d has the sample of number %d", act.A, act.B)
	case futureLost:
		return fmt.Sprintf("the future of number %d is LOST for good", act.A)
	case workerDies:
		return "worker DIES"
	case learnerDies:
		return "learner DIES"
	case replayed:
		return "another worker plays the member from its beginning"
	case learnerStarts:
		return "the next learner adopts the session"
	case limited:
		return fmt.Sprintf("the limit ends the episode after %d requests", to.Arrived)
	case finished:
		return "the episode is finished"
	}
	return "?"
}
