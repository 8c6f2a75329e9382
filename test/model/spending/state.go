// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package spending

import "github.com/tinker-operator/tinker-operator/test/model/engine"

const (
	attempts = 3
	// requests is the number of requests of an attempt that is not replaced. Each request costs 1.
	requests = 2
)

// Config is one configuration of the model.
type Config struct {
	// Grant means that a learner records a request before it sends the request.
	Grant bool
	// Look means that a learner looks for a higher claim between the record and the request, LookFirst before the record.
	Look, LookFirst bool
	// ClaimFirst means that a learner writes its claim before it reads the records of earlier attempts.
	ClaimFirst bool
}

// The phases of a learner.
const (
	absent uint8 = iota
	started
	// half is between the claim and the reading of records, in either order.
	half
	ready
	looked
	granted
	allowed
	sent
	answered
	// complete, fenced and dead learners do nothing more.
	complete
	fenced
	dead
)

// record is an attempt's record of spending in the artifact store.
type record struct {
	Written, Earlier, Unconfirmed, Own, Granted uint8
}

// learner is the learner of an attempt.
type learner struct {
	Phase, Claimed uint8
	// Earlier and Unconfirmed are the answered and the unconfirmed requests of the record that it read.
	Earlier, Unconfirmed uint8
	// Own is the number of answered requests, and Left the number of requests to come.
	Own, Left uint8
}

// State is one state of the model.
type State struct {
	Learners [attempts]learner
	Records  [attempts]record
	// Executed is the number of requests that the endpoint has executed.
	Executed uint8
}

const (
	unknown engine.Code = 1 + iota
	invented
)

var codeNames = map[engine.Code]string{
	unknown:  "I8 executed requests are neither in the usage nor unconfirmed",
	invented: "I8 the usage has requests that were not executed",
}

// Model is the model.
type Model struct{ config Config }

// New returns the model of a configuration.
func New(config Config) *Model { return &Model{config} }

// Init implements engine.Model.
func (*Model) Init() State {
	return State{Learners: [attempts]learner{{Phase: started, Left: requests}}}
}

// Check implements engine.Model: the usage of the newest attempt that has read the records is right.
func (*Model) Check(s *State) engine.Code {
	n := newest(s)
	l := s.Learners[n]
	if l.Phase < ready || l.Phase == dead || l.Phase == fenced {
		return 0
	}
	usage, open := l.Earlier+l.Own, l.Unconfirmed
	if l.Phase >= granted && l.Phase <= sent {
		open++
	}
	switch {
	case s.Executed > usage+open:
		return unknown
	case s.Executed < usage:
		return invented
	}
	return 0
}

// Done implements engine.Model: the run is complete, and no learner is left.
func (*Model) Done(s *State) bool {
	finished := false
	for _, l := range s.Learners {
		if l.Phase != absent && l.Phase < complete {
			return false
		}
		finished = finished || l.Phase == complete
	}
	return finished
}

// CodeName implements engine.Model.
func (*Model) CodeName(code engine.Code) string { return codeNames[code] }

// newest returns the newest attempt.
func newest(s *State) (n int) {
	for i, l := range s.Learners {
		if l.Phase != absent {
			n = i
		}
	}
	return n
}
