// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import "github.com/tinker-operator/tinker-operator/test/model/engine"

// The kinds of transitions.
const (
	attemptStarted uint8 = iota
	learnerCrashed
	learnerDone
	heartbeatSent
	helloAnswered
	attemptReported
	signatureStolen
	reportForged
	heartbeatForged
	learnerImitated
	strangerSaidHello
)

// signature is a symbol: the run whose key made it, and the run and the attempt that the message names.
type signature struct{ key, run, attempt uint8 }

// The keys of the model. A signature with noKey is missing.
const (
	noKey uint8 = iota
	ownRun
	otherRun
)

type successors = engine.Successors[State]

// sign returns the signature of an attempt's learner. Fields that the message does not name are 0.
func (m *Model) sign(run, attempt uint8) signature {
	made := signature{key: ownRun}
	if m.config.KeyPerRun {
		made.key = run
	}
	if m.config.SignRun {
		made.run = run
	}
	if m.config.SignAttempt {
		made.attempt = attempt
	}
	return made
}

// proves reports whether a learner of this run accepts a signature as the signature of an attempt's learner.
func (m *Model) proves(attempt uint8, shown signature) bool {
	return !m.config.CheckSignature || shown == m.sign(ownRun, attempt)
}

// fence fences a learner, which is right only if a later attempt has begun.
func (s *State) fence(n uint8) {
	s.Learner[n] = fenced
	if s.Attempt <= n {
		s.Broken = uint8(fencedFalsely)
	}
}

// Next implements engine.Model.
func (m *Model) Next(s *State, emit func(act engine.Act, fault bool, to *State)) {
	x := engine.NewSuccessors(s, emit)
	m.start(x)
	for n := uint8(1); n <= s.Attempt; n++ {
		if s.Learner[n] != runs {
			continue
		}
		m.learner(x, n)
		m.worker(x, n)
		m.attack(x, n)
	}
	m.imitate(x)
}

// start lets the manager start the next attempt if the last attempt has ended or seems to have ended.
func (m *Model) start(x *successors) {
	s := x.From
	if s.Attempt == maxAttempts {
		return
	}
	last := s.Learner[s.Attempt]
	if s.Attempt > 0 && last == runs && s.SecondLearners == 0 || last == done {
		return
	}
	t := x.Copy()
	t.Attempt++
	t.Learner[t.Attempt] = runs
	if last == runs {
		t.SecondLearners--
		x.Fault(attemptStarted, t.Attempt, 1)
		return
	}
	x.Step(attemptStarted, t.Attempt)
}

// learner lets a learner crash, end the run, or learn of a later attempt from the manager.
func (m *Model) learner(x *successors, n uint8) {
	s := x.From
	if s.Crashes > 0 && n < maxAttempts { // The last attempt must be able to complete.
		t := x.Copy()
		t.Crashes--
		t.Learner[n] = dead
		x.Fault(learnerCrashed, n)
	}
	if n < s.Attempt && !m.config.Unreachable {
		x.Copy().fence(n)
		x.Step(heartbeatSent, n, s.Attempt)
	}
	if n == s.Attempt && s.Known == n {
		x.Copy().Learner[n] = done
		x.Step(learnerDone, n)
	}
}

// worker lets the honest worker say Hello to a learner. The worker reports the highest attempt that it knows; the
// learner of a lower attempt is fenced, or refuses the worker.
func (m *Model) worker(x *successors, n uint8) {
	s := x.From
	if s.Known <= n {
		t := x.Copy()
		t.Known, t.Signed = n, 1
		x.Step(helloAnswered, n)
		return
	}
	shown := signature{}
	if s.Signed == 1 && m.config.PassOn {
		shown = m.sign(ownRun, s.Known)
	}
	if m.proves(s.Known, shown) {
		x.Copy().fence(n)
		x.Step(attemptReported, n, s.Known)
	}
}

// attack lets the attacker steal the signature of a learner, and send the learner any message that the stolen secrets
// permit.
func (m *Model) attack(x *successors, n uint8) {
	s := x.From
	if s.Stolen&(1<<n) == 0 {
		x.Copy().Stolen |= 1 << n
		x.Fault(signatureStolen, n)
	}
	if !m.config.CheckToken {
		x.Copy().Broken = uint8(strangerAdmitted)
		x.Fault(strangerSaidHello, n)
	}
	for attempt := n + 1; attempt <= unstarted; attempt++ {
		if !m.config.ManagerToken {
			x.Copy().fence(n)
			x.Fault(heartbeatForged, n, attempt)
		}
		for _, shown := range m.forgeable(s, attempt) {
			if m.proves(attempt, shown) {
				x.Copy().fence(n)
				x.Fault(reportForged, n, attempt)
				break
			}
		}
	}
}

// forgeable lists the signatures that the attacker can show for an attempt: none, the stolen ones, and the signatures
// of another run, which may have had any number of attempts.
func (m *Model) forgeable(s *State, attempt uint8) []signature {
	all := []signature{{}, m.sign(otherRun, attempt)}
	for n := uint8(1); n <= maxAttempts; n++ {
		if s.Stolen&(1<<n) != 0 {
			all = append(all, m.sign(ownRun, n))
		}
	}
	if !m.config.KeyAtLearnersOnly {
		all = append(all, m.sign(ownRun, attempt))
	}
	return all
}

// imitate lets the attacker answer the honest worker instead of a learner.
func (m *Model) imitate(x *successors) {
	if !m.config.CheckCertificate && x.From.Known < unstarted {
		t := x.Copy()
		t.Known, t.Signed = unstarted, 0
		x.Fault(learnerImitated, unstarted)
	}
}
