// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/tinker-operator/tinker-operator/test/model/engine"

const (
	steps  = 2
	chunks = 2
	// optimAt is the position of optim_step after the chunks of its step, and saveAt the position of the save.
	optimAt = chunks
	saveAt  = chunks + 1
)

// Config is one configuration of the model: the rules of server and client, and how many faults of each kind there are.
type Config struct {
	// Dedupe: the server recognises a repeated (model, sequence number) as the same request.
	Dedupe bool
	// ByArrival: the server executes by arrival, not by sequence number.
	ByArrival bool
	// Resurrect: after a restart the server has the model as last saved, without gradient and sequence numbers.
	Resurrect bool
	// ReuseRequestIDs: a restarted server counts request ids from the start.
	ReuseRequestIDs bool

	// Piped: the client submits the save after optim_step without waiting.
	Piped bool
	// Await: the client submits optim_step only after every reply of forward_backward is clean.
	Await bool
	// NewNumber: the client repeats a submit under a new sequence number after its answer is lost.
	NewNumber bool
	// ReuseNumber: the client gives the sequence number of a refused submit to the next operation.
	ReuseNumber bool
	// Continue: the client continues with the model after an unclean forward_backward.
	Continue bool
	// Ahead: the client submits the next step right after the save, before its reply.
	Ahead bool

	// LostAnswers are lost answers to submits that arrived, and LostSubmits are submits that never arrive.
	LostAnswers, LostSubmits int
	// Refusals are chunks refused with 4xx, and Failures are operations that fail on the server.
	Refusals, Failures int
	// LostReplies are replies that are permanently lost (410).
	LostReplies int
	Restarts    int
}

// The types of operations.
const (
	forwardBackward uint8 = iota + 1
	optimStep
	saveState
)

var operationNames = map[uint8]string{
	forwardBackward: "forward_backward", optimStep: "optim_step", saveState: "save_state",
}

// The states of a submitted operation.
const (
	queued uint8 = iota + 1
	succeeded
	failed
)

// Operation is an operation that the client submitted.
type Operation struct{ Type, Step, Chunk, Status, Number uint8 }

// same reports whether two operations do the same.
func (o Operation) same(other Operation) bool {
	return o.Type == other.Type && o.Step == other.Step && o.Chunk == other.Chunk
}

// The phases of the client.
const (
	submitting uint8 = iota
	_
	saving
	awaitingSave
)

// The states of a submit without an answer.
const (
	answerLost uint8 = iota + 1
	submitLost
)

// Positions in Index that no operation has.
const (
	noAnswer uint8 = 255 - iota // The method arrive returns it if the queue is full.
	refused
	forgotten
)

// The content of an update that is not exactly one step.
const (
	mixed uint8 = iota + 9
	doubled
	empty
)

// exact is the content of an update that has each chunk of a step once.
func exact(step uint8) uint8 { return 1 + step }

// State is a state of the model.
type State struct {
	// Alive is 1 while the server has the model, whose number is Model.
	Model, Alive uint8
	// Update is the content of each update that was applied, and Updates their number.
	Update  [steps]uint8
	Updates uint8
	// Gradient counts how often each chunk of each step was accumulated.
	Gradient [steps * chunks]uint8
	// Queue has the server's operations of this model in the order of their arrival.
	Queue  [9]Operation
	Queued uint8
	// Seen is 1 plus the position in the queue of each sequence number.
	Seen [14]uint8
	// Saved is the newest saved state: the content of its updates.
	Saved      [steps]uint8
	SavedSteps uint8
	HasSave    uint8

	// The client: Position counts the operations of this step that were submitted.
	Step, Position, Number, Phase uint8
	// Got has a bit for each reply of this step that was collected.
	Got uint8
	// Unanswered is set while the current submit has no answer.
	Unanswered uint8
	// Index has the position in the queue of each operation of this step.
	Index [4]uint8
	// The faults that are left.
	LostAnswers, LostSubmits, Refusals, Failures, LostReplies, Restarts uint8
	// EarlierSave is 1 while the save of the previous step has no reply.
	EarlierSave  uint8
	Broken, Done uint8
}

// The invariants.
const (
	appliedTwice engine.Code = iota + 1
	partialSaved
	skipped
	wrongReply
)

var codeNames = map[engine.Code]string{
	appliedTwice: "I1 an update or a gradient is applied twice",
	partialSaved: "I1 a state is saved that holds a partial gradient",
	skipped:      "I1 a step is reported whose update was not applied",
	wrongReply:   "I1 a reply of another op is taken for this one's",
}

// Model is the model.
type Model struct{ config Config }

// New returns the model of a configuration.
func New(config Config) *Model { return &Model{config} }

// Init implements engine.Model.
func (m *Model) Init() State {
	c := m.config
	return State{
		Alive: 1, Number: 1, LostAnswers: uint8(c.LostAnswers), LostSubmits: uint8(c.LostSubmits),
		Refusals: uint8(c.Refusals),
		Failures: uint8(c.Failures), LostReplies: uint8(c.LostReplies), Restarts: uint8(c.Restarts),
	}
}

// Check implements engine.Model.
func (m *Model) Check(s *State) engine.Code { return engine.Code(s.Broken) }

// Done implements engine.Model.
func (m *Model) Done(s *State) bool { return s.Done == 1 }

// CodeName implements engine.Model.
func (m *Model) CodeName(code engine.Code) string { return codeNames[code] }

// violate notes a broken invariant.
func (s *State) violate(code engine.Code) { s.Broken = uint8(code) }

type successors = engine.Successors[State]

// Next implements engine.Model.
func (m *Model) Next(s *State, emit func(act engine.Act, fault bool, to *State)) {
	if s.Done == 1 {
		return
	}
	x := engine.NewSuccessors(s, emit)
	m.server(x)
	if s.Step == steps && s.EarlierSave == 0 {
		t := x.Copy()
		t.Done = 1
		if t.SavedSteps < steps {
			t.violate(skipped)
		}
		x.Step(reported)
		return
	}
	m.client(x)
}
