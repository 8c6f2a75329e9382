// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manager

// Why an attempt is written.
const (
	firstAttempt uint8 = iota
	jobMissing
	attemptEnded
	sameNumber
	moreSteps
)

// reconcile makes the manager's next step, by the state of its caches.
func (m *Model) reconcile(x *successors) {
	s := x.From
	if s.Creating != 0 {
		t := x.Copy()
		t.Creating = 0
		m.create(t, s.Creating)
		if m.config.JobFirst {
			t.Attempt = s.Creating
		}
		x.Step(jobCreated, s.Creating)
		return
	}
	if s.CachedComplete == 1 && (!m.config.Continue || s.CachedWanted <= s.Given[s.CachedAttempt]) {
		return
	}
	if s.CachedAttempt == 0 {
		m.startNext(x, firstAttempt)
		return
	}
	switch s.CachedJob[s.CachedAttempt] {
	case jobNone, jobDeleted:
		m.observeMissing(x)
	case jobFailed:
		m.startNext(x, attemptEnded)
	case jobSuspended:
		m.observeSuspended(x)
	case jobActive:
		if s.CachedEnded == s.CachedAttempt {
			m.startNext(x, attemptEnded)
		}
	case jobComplete:
		m.observeComplete(x)
	}
}

// startNext writes the next attempt to the status, and notes that its Job is to be created. With JobFirst it only notes
// the Job.
func (m *Model) startNext(x *successors, why uint8) {
	s, n := x.From, x.From.CachedAttempt+1
	if n > maxAttempts {
		return
	}
	if m.config.Lock && (s.CachedAttempt != s.Attempt || s.CachedWanted != s.Wanted || s.CachedComplete != s.Complete) {
		return // The write conflicts, and nothing is written until the cache is newer.
	}
	t := x.Copy()
	if n < t.Attempt {
		t.violate(lowerAttempt)
	}
	if s.Job[s.CachedAttempt] == jobSuspended {
		t.violate(suspensionUndone)
	}
	if t.Given[n] = s.CachedWanted; t.Given[n] < s.Given[s.CachedAttempt] {
		t.violate(fewerSteps)
	}
	t.Complete, t.CachedComplete = 0, 0
	if !m.config.JobFirst {
		t.Attempt = n
		t.CachedAttempt = n // The writer sees its own write.
	}
	t.Creating = n
	x.Step(attemptWritten, n, why)
}

// observeMissing decides about an attempt whose Job is missing from the cache.
func (m *Model) observeMissing(x *successors) {
	s := x.From
	if job := s.Job[s.CachedAttempt]; m.config.LiveGet && job != jobNone && job != jobDeleted {
		return
	}
	if m.config.Recreate {
		x.Copy().Creating = s.CachedAttempt
		x.Step(attemptWritten, s.CachedAttempt, sameNumber)
		return
	}
	m.startNext(x, jobMissing)
}

// observeComplete ends the run, or starts the next attempt if the verdict is missing.
func (m *Model) observeComplete(x *successors) {
	s := x.From
	if m.config.Verdict && s.Verdict[s.CachedAttempt] == 0 {
		m.startNext(x, attemptEnded)
		return
	}
	if m.config.Continue && s.CachedWanted > s.Given[s.CachedAttempt] {
		m.startNext(x, moreSteps)
		return
	}
	if m.config.Lock && s.CachedWanted != s.Wanted {
		return
	}
	t := x.Copy()
	t.Complete = 1
	if s.Final <= s.Wanted {
		t.violate(falseComplete)
	}
	x.Step(completeWritten, s.CachedAttempt)
}

// observeSuspended writes that the attempt has ended, and waits.
func (m *Model) observeSuspended(x *successors) {
	s := x.From
	if !m.config.Hold {
		m.startNext(x, attemptEnded)
		return
	}
	if s.CachedEnded == s.CachedAttempt || m.config.Lock && s.CachedAttempt != s.Attempt {
		return
	}
	t := x.Copy()
	t.Ended, t.CachedEnded = s.CachedAttempt, s.CachedAttempt
	x.Step(endWritten, s.CachedAttempt)
}
