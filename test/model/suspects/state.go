// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package suspects

import "github.com/tinker-operator/tinker-operator/test/model/engine"

const (
	workers = 2
	groups  = 2
	members = 2
	// The poison is in this member of this group.
	poisonGroup, poisonMember = 1, 1
	// most bounds how many deaths of a kind are counted.
	most = 2
)

// Config is one configuration of the model.
type Config struct {
	// Deaths is the number of workers that die for reasons of their own, and Silences the number of workers that are cut
	// off and taken for dead.
	Deaths, Silences uint8
	// SuspectAfter is the number of deaths that make a group a suspect, and FaultAfter the number of deaths with a member
	// alone in play that make the member a fault.
	SuspectAfter, FaultAfter uint8
	// Permits lets a worker begin a member of a suspect only once the learner knows that the previous member is done.
	// Otherwise the learner blames the member that the worker was known to play last.
	Permits bool
	// Beside lets a worker play other groups beside a suspect.
	Beside bool
	// Suspect lets the learner treat groups as suspects. Otherwise it leases each group as if nothing had happened.
	Suspect bool
}

// play is a group in play at a worker.
type play struct {
	// Leased is 1 for a leased group, 2 for a suspect, which is played alone, and 0 without a lease.
	Leased uint8
	// Begun and Done have one bit for each member that has begun or is done.
	Begun, Done uint8
	// Reported is the number of members that the learner knows to be done, and Permitted the last member that it permits.
	Reported, Permitted uint8
}

// worker is a worker's process.
type worker struct {
	Plays [groups]play
	// Silent is 1 while the worker is cut off and the learner takes it for dead.
	Silent uint8
}

// counts are the learner's counters of a group.
type counts struct {
	Deaths uint8
	Alone  [members]uint8
	// Marks has a bit for each worker whose silence was counted, and MarkedAlone the member that was counted: 1 + the
	// member, or 0.
	Marks       uint8
	MarkedAlone [workers]uint8
	Faulty      uint8
	Known       uint8
}

// State is a state of the model.
type State struct {
	Workers          [workers]worker
	Groups           [groups]counts
	Deaths, Silences uint8
	// Poisoned counts the deaths that the poison has caused.
	Poisoned uint8
	Broken   uint8
}

// The invariants.
const (
	wrongFault engine.Code = iota + 1
	tooManyDeaths
)

var codeNames = map[engine.Code]string{
	wrongFault:    "I2 a member is left out that ends no process",
	tooManyDeaths: "I6 the poison ends processes without end",
}

// Model is the model.
type Model struct{ config Config }

// New returns the model of a configuration.
func New(config Config) *Model { return &Model{config} }

// Init implements engine.Model.
func (m *Model) Init() State { return State{Deaths: m.config.Deaths, Silences: m.config.Silences} }

// Check implements engine.Model.
func (m *Model) Check(s *State) engine.Code { return engine.Code(s.Broken) }

// Done implements engine.Model: each group is known.
func (m *Model) Done(s *State) bool {
	for _, g := range s.Groups {
		if g.Known == 0 {
			return false
		}
	}
	return true
}

// CodeName implements engine.Model.
func (m *Model) CodeName(code engine.Code) string { return codeNames[code] }
