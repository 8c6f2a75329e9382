// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import "github.com/tinker-operator/tinker-operator/test/model/engine"

const maxAttempts = 6

// Config is one configuration of the model: the rules of the manager, and how many faults of each kind there are.
type Config struct {
	// LiveGet asks the API server for a Job that is missing from the cache before the Job counts as lost.
	LiveGet bool
	// Lock means that the status write carries the resource version.
	Lock bool
	// JobFirst creates the Job before the attempt is in the status.
	JobFirst bool
	// Recreate creates a missing Job of a recorded attempt again.
	Recreate bool
	// Verdict means that Complete needs the learner's verdict, not the Job's condition alone.
	Verdict bool

	// Hold waits for a Job that another controller has suspended, and starts the next attempt once it is resumed.
	Hold bool

	// Continue compares the steps that an attempt was started with and the steps that the spec has now, and starts another
	// attempt if the spec has more, even after the run is complete.
	Continue bool

	// Raises are changes of the spec that give the run more steps.
	Raises int

	// Restarts of the manager, deleted Jobs, and crashes of learners.
	Restarts, DeletedJobs, Crashes int
	// LateCreates are creates that a dead manager left in flight, and LateWrites its status writes.
	LateCreates, LateWrites int
	// LostNodes are lost nodes: the Job of the pod on the node fails while the pod's process continues.
	LostNodes int
	// Suspends are suspensions of a learner's Job by another controller. A suspension ends the Job's pod; the controller
	// resumes the Job later.
	Suspends int
}

// The states of a Job.
const (
	jobNone uint8 = iota
	jobActive
	jobFailed
	jobComplete
	jobDeleted
	jobSuspended
)

var jobNames = []string{"none", "active", "failed", "complete", "deleted", "suspended"}

// The states of a pod.
const (
	podNone uint8 = iota
	podRuns
	podEnded
)

// State is a state of the model. Attempts are numbered from 1.
type State struct {
	// Attempt and Complete are the status in etcd.
	Attempt, Complete uint8
	Job               [maxAttempts + 1]uint8
	Pod               [maxAttempts + 1]uint8
	// Ended is the attempt whose end is in the status although its Job has not ended.
	Ended uint8
	// Second is 1 if the running pod is the second pod of its Job. The claim of the first pod ends the second one.
	Second [maxAttempts + 1]uint8
	// Verdict is 1 while the Job's pod shows the learner's verdict that the run is complete.
	Verdict [maxAttempts + 1]uint8
	// Wanted counts the times that the spec was given more steps. Given is the value of Wanted with which each attempt was
	// written; it decides the steps of the attempt's learner.
	Wanted uint8
	Given  [maxAttempts + 1]uint8
	// Final is one more than the Given of the last learner whose final state exists on the server, and 0 before that.
	Final uint8
	// The state of the manager's caches.
	CachedAttempt, CachedComplete, CachedEnded, CachedWanted uint8
	CachedJob                                                [maxAttempts + 1]uint8
	// Creating is the Job that the manager is about to create, and LateJob the Job whose create a dead manager left in
	// flight.
	Creating, LateJob uint8
	// LateAttempt is a dead manager's status write in flight, and LateBase the attempt that it was decided on.
	LateAttempt, LateBase uint8
	// Created counts the Jobs that were made for an attempt.
	Created [maxAttempts + 1]uint8
	// The faults that are left.
	Restarts, DeletedJobs, Crashes, LateCreates, LostNodes, LateWrites, Suspends, Raises uint8
	Broken                                                                               uint8
}

// The invariants.
const (
	twoLearners engine.Code = iota + 1
	reusedAttempt
	lowerAttempt
	falseComplete
	suspensionUndone
	fewerSteps
)

var codeNames = map[engine.Code]string{
	twoLearners:   "I7 a second learner starts though nothing was lost",
	reusedAttempt: "I7 an attempt number is used by two Jobs",
	lowerAttempt:  "I7 the recorded attempt goes back",
	falseComplete: "I7 Complete without a committed final step",

	fewerSteps:       "an attempt makes fewer steps than one before it",
	suspensionUndone: "a Job that another controller suspended is replaced",
}

// Model is the model.
type Model struct{ config Config }

// New returns the model of a configuration.
func New(config Config) *Model { return &Model{config} }

// Init implements engine.Model.
func (m *Model) Init() State {
	c := m.config
	return State{
		Restarts: uint8(c.Restarts), DeletedJobs: uint8(c.DeletedJobs), Crashes: uint8(c.Crashes),
		LateCreates: uint8(c.LateCreates), LostNodes: uint8(c.LostNodes), LateWrites: uint8(c.LateWrites),
		Suspends: uint8(c.Suspends), Raises: uint8(c.Raises),
	}
}

// Check implements engine.Model.
func (m *Model) Check(s *State) engine.Code { return engine.Code(s.Broken) }

// Done implements engine.Model.
func (m *Model) Done(s *State) bool { return s.Complete == 1 && s.Final == s.Wanted+1 }

// CodeName implements engine.Model.
func (m *Model) CodeName(code engine.Code) string { return codeNames[code] }

// violate notes a broken invariant.
func (s *State) violate(code engine.Code) { s.Broken = uint8(code) }
