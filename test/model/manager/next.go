// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import "github.com/tinker-operator/tinker-operator/test/model/engine"

// The kinds of transitions.
const (
	statusCached uint8 = iota
	jobCached
	attemptWritten
	jobCreated
	lateCreate
	managerRestart
	learnerCrash
	learnerFinished
	completeWritten
	jobRemoved
	nodeLost
	learnerFenced
	lateWrite
	endWritten
	suspendedByOther
	resumedByOther
	stepsRaised
)

type successors = engine.Successors[State]

// Next implements engine.Model.
func (m *Model) Next(s *State, emit func(act engine.Act, fault bool, to *State)) {
	x := engine.NewSuccessors(s, emit)
	if s.Raises > 0 {
		t := x.Copy()
		t.Raises--
		t.Wanted++
		x.Fault(stepsRaised)
	}
	if m.Done(s) {
		return
	}
	m.updateCaches(x)
	m.reconcile(x)
	if s.LateJob != 0 {
		t := x.Copy()
		t.LateJob = 0
		m.create(t, s.LateJob)
		x.Step(lateCreate, s.LateJob)
	}
	m.restart(x)
	m.writeLate(x)
	m.restartWithWriteInFlight(x)
	for n := uint8(1); n <= maxAttempts; n++ {
		m.attempt(x, n)
	}
}

// updateCaches lets the manager's caches show the state of etcd.
func (m *Model) updateCaches(x *successors) {
	s := x.From
	if s.CachedAttempt != s.Attempt || s.CachedComplete != s.Complete || s.CachedEnded != s.Ended ||
		s.CachedWanted != s.Wanted {
		t := x.Copy()
		t.CachedAttempt, t.CachedComplete, t.CachedEnded, t.CachedWanted = s.Attempt, s.Complete, s.Ended, s.Wanted
		x.Step(statusCached)
	}
	for n := uint8(1); n <= maxAttempts; n++ {
		if s.CachedJob[n] != s.Job[n] {
			x.Copy().CachedJob[n] = s.Job[n]
			x.Step(jobCached, n)
		}
	}
}

// create lets a create of a Job arrive at the API server.
func (m *Model) create(t *State, n uint8) {
	if t.Job[n] == jobActive || t.Job[n] == jobFailed || t.Job[n] == jobComplete {
		return // AlreadyExists
	}
	t.deleteEnded(n)
	if t.Created[n] > 0 {
		t.violate(reusedAttempt)
	}
	t.Created[n]++
	t.Job[n], t.Pod[n] = jobActive, podRuns
	for k := uint8(1); k <= maxAttempts; k++ {
		if k != n && t.Pod[k] == podRuns && t.Job[k] == jobActive && m.config.LateCreates == 0 {
			t.violate(twoLearners)
		}
	}
}

// refill fills the caches anew, as a manager that has just started does.
func (s *State) refill() {
	s.CachedAttempt, s.CachedComplete, s.CachedEnded, s.CachedJob = s.Attempt, s.Complete, s.Ended, s.Job
	s.CachedWanted = s.Wanted
}

// restart restarts the manager. Its create of a Job may be in flight, or may never have been sent.
func (m *Model) restart(x *successors) {
	s := x.From
	if s.Restarts == 0 {
		return
	}
	t := x.Copy()
	t.Restarts--
	if t.Creating != 0 && t.LateCreates > 0 && t.LateJob == 0 {
		t.LateCreates--
		t.LateJob = t.Creating
	}
	t.Creating = 0
	t.refill()
	x.Fault(managerRestart)
	if s.Creating != 0 && m.config.LateCreates > 0 {
		t = x.Copy()
		t.Restarts--
		t.Creating = 0
		t.refill()
		x.Fault(managerRestart, 1)
	}
}

// writeLate lets a dead manager's status write arrive.
func (m *Model) writeLate(x *successors) {
	s := x.From
	if s.LateAttempt == 0 {
		return
	}
	t := x.Copy()
	t.LateAttempt, t.LateBase = 0, 0
	if !m.config.Lock || s.Attempt == s.LateBase {
		if s.LateAttempt < s.Attempt {
			t.violate(lowerAttempt)
		}
		t.Attempt = s.LateAttempt
	}
	x.Step(lateWrite, s.LateAttempt)
}

// restartWithWriteInFlight restarts a manager that was about to write the next attempt.
func (m *Model) restartWithWriteInFlight(x *successors) {
	s := x.From
	writes := s.Restarts > 0 && s.LateWrites > 0 && s.LateAttempt == 0 && s.Creating == 0 && s.CachedAttempt < maxAttempts
	if !writes || (s.CachedAttempt != 0 && s.CachedJob[s.CachedAttempt] != jobFailed) {
		return
	}
	t := x.Copy()
	t.Restarts--
	t.LateWrites--
	t.LateAttempt, t.LateBase = s.CachedAttempt+1, s.CachedAttempt
	t.refill()
	x.Fault(managerRestart, 2)
}

// attempt lets the process of an attempt finish, be fenced or crash, and its objects disappear.
func (m *Model) attempt(x *successors, n uint8) {
	s := x.From
	m.otherController(x, n)
	if s.Pod[n] != podRuns {
		if s.DeletedJobs > 0 && (s.Job[n] == jobFailed || s.Job[n] == jobComplete) {
			t := x.Copy()
			t.DeletedJobs--
			t.Job[n], t.Verdict[n] = jobDeleted, 0
			x.Fault(jobRemoved, n)
		}
		return
	}
	if s.isHighest(n) && s.Second[n] == 0 {
		t := x.Copy()
		t.Final = s.Given[n] + 1
		t.end(n, jobComplete)
		if t.Job[n] == jobComplete {
			t.Verdict[n] = 1
		}
		x.Step(learnerFinished, n)
	} else {
		x.Copy().end(n, jobFailed)
		x.Step(learnerFenced, n)
	}
	if s.Crashes > 0 {
		t := x.Copy()
		t.Crashes--
		t.end(n, jobFailed)
		x.Fault(learnerCrash, n)
	}
	if s.LostNodes > 0 && s.Job[n] == jobActive {
		t := x.Copy()
		t.LostNodes--
		t.Job[n] = jobFailed
		x.Fault(nodeLost, n)
	}
}

// isHighest reports whether no later attempt has had a pod.
func (s *State) isHighest(n uint8) bool {
	for k := n + 1; k <= maxAttempts; k++ {
		if s.Pod[k] != podNone {
			return false
		}
	}
	return true
}

// end ends a process, and its Job if the Job is active.
func (s *State) end(n, job uint8) {
	s.Pod[n] = podEnded
	if s.Job[n] == jobActive {
		s.Job[n] = job
	}
}

// otherController suspends the Job of a running learner, which ends the pod, and resumes the Job, which makes a second
// pod.
func (m *Model) otherController(x *successors, n uint8) {
	s := x.From
	if s.Job[n] == jobSuspended {
		t := x.Copy()
		t.Job[n], t.Pod[n], t.Second[n] = jobActive, podRuns, 1
		x.Step(resumedByOther, n)
	}
	if s.Suspends > 0 && s.Job[n] == jobActive && s.Pod[n] == podRuns {
		t := x.Copy()
		t.Suspends--
		t.Job[n], t.Pod[n] = jobSuspended, podEnded
		x.Fault(suspendedByOther, n)
	}
}

// deleteEnded deletes the Jobs of attempts before n that were resumed after their attempts had ended.
func (s *State) deleteEnded(n uint8) {
	for k := uint8(1); k < n && k <= s.Ended; k++ {
		if s.Job[k] == jobActive {
			s.Job[k] = jobDeleted
		}
	}
}
