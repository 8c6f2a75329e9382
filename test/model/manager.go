// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// The manager model: one reconciler with stale caches that may be restarted at any point, the API
// server's objects, and the attempts' processes. Training is not modelled.

const mAtt = 6

// MCfg is one configuration of the manager model.
type MCfg struct {
	LiveGet   bool // a Job missing from the cache is looked up at the API server before it counts as lost
	Lock      bool // the status write carries the resource version
	JobFirst  bool // the Job is created before the attempt is in status
	Recreate  bool // a missing Job of a recorded attempt is created again
	Verdict   bool // Complete needs the learner's verdict, not the Job's condition alone
	Restarts  int
	JobGone   int // Jobs deleted by someone, or garbage collected
	Crash     int // learner crashes
	Delayed   int // creates that a dead manager left in flight
	NodeLost  int // the pod object is missing, its process continues
	LateWrite int // status writes that a dead manager left in flight
}

// MS is a state of the manager model. Job: 0 none 1 active 2 failed 3 complete 4 deleted. Pod: 0 none 1 runs 2 ended.
type MS struct {
	Att, Phase                              uint8 // status in etcd
	Job                                     [mAtt + 1]uint8
	Pod                                     [mAtt + 1]uint8
	Ver                                     [mAtt + 1]uint8 // verdict in the Job's pod: 1 complete
	Done                                    uint8           // the final state exists on the server
	CAtt, CPhase                            uint8           // caches
	CJob                                    [mAtt + 1]uint8
	Creating, Flight                        uint8 // create in hand; create left in flight
	Restarts, JobGone, Crash, Delayed, Lost uint8
	Viol                                    uint8
	LateW, FW, FWBase                       uint8           // a dead manager's status write
	Runs                                    [mAtt + 1]uint8 // how many Jobs were made for an attempt
}

const (
	mTwo Code = iota + 1
	mReuse
	mRegress
	mFalse
)

var mCodes = map[Code]string{
	mTwo:     "I7 a second learner starts though nothing was lost",
	mReuse:   "I7 an attempt number is used by two Jobs",
	mRegress: "I7 the recorded attempt goes back",
	mFalse:   "I7 Complete without a committed final step",
}

// Mgr is the model.
type Mgr struct{ c MCfg }

// Init implements Model.
func (m *Mgr) Init() MS {
	return MS{Restarts: uint8(m.c.Restarts), JobGone: uint8(m.c.JobGone), Crash: uint8(m.c.Crash),
		Delayed: uint8(m.c.Delayed), Lost: uint8(m.c.NodeLost), LateW: uint8(m.c.LateWrite)}
}

// Check implements Model.
func (m *Mgr) Check(s *MS) Code { return Code(s.Viol) }

// Done implements Model.
func (m *Mgr) Done(s *MS) bool { return s.Phase == 1 }

// CodeName implements Model.
func (m *Mgr) CodeName(c Code) string { return mCodes[c] }

const (
	nSync uint8 = iota
	nSyncJob
	nNext
	nCreate
	nLand
	nMgrCrash
	nLearnerCrash
	nFinish
	nComplete
	nJobGone
	nNodeLost
	nFence
	nLateWrite
)

func (m *Mgr) land(t *MS, n uint8) {
	if t.Job[n] == 1 || t.Job[n] == 2 || t.Job[n] == 3 {
		return // AlreadyExists
	}
	if t.Runs[n] > 0 {
		t.Viol = uint8(mReuse)
	}
	t.Runs[n]++
	t.Job[n], t.Pod[n] = 1, 1
	for k := uint8(1); k <= mAtt; k++ {
		if k != n && t.Pod[k] == 1 && t.Job[k] == 1 && m.c.Delayed == 0 {
			t.Viol = uint8(mTwo)
		}
	}
}

// Next implements Model.
func (m *Mgr) Next(s *MS, emit func(a Act, fault bool, t *MS)) {
	if s.Phase == 1 {
		return
	}
	var t MS
	out := func(a Act, fault bool) { emit(a, fault, &t) }
	if s.CAtt != s.Att || s.CPhase != s.Phase {
		t = *s
		t.CAtt, t.CPhase = s.Att, s.Phase
		out(Act{nSync, 0, 0, 0}, false)
	}
	for n := uint8(1); n <= mAtt; n++ {
		if s.CJob[n] != s.Job[n] {
			t = *s
			t.CJob[n] = s.Job[n]
			out(Act{nSyncJob, n, 0, 0}, false)
		}
	}
	m.reconcile(s, &t, out)
	if s.Flight != 0 {
		t = *s
		t.Flight = 0
		m.land(&t, s.Flight)
		out(Act{nLand, s.Flight, 0, 0}, false)
	}
	if s.Restarts > 0 {
		t = *s
		t.Restarts--
		if t.Creating != 0 && t.Delayed > 0 && t.Flight == 0 {
			t.Delayed--
			t.Flight = t.Creating
		}
		t.Creating = 0
		t.CAtt, t.CPhase, t.CJob = t.Att, t.Phase, t.Job
		out(Act{nMgrCrash, 0, 0, 0}, true)
		if s.Creating != 0 && m.c.Delayed > 0 { // the create was never sent
			t = *s
			t.Restarts--
			t.Creating = 0
			t.CAtt, t.CPhase, t.CJob = t.Att, t.Phase, t.Job
			out(Act{nMgrCrash, 1, 0, 0}, true)
		}
	}
	if s.FW != 0 {
		t = *s
		t.FW, t.FWBase = 0, 0
		if !m.c.Lock || s.Att == s.FWBase {
			if s.FW < s.Att {
				t.Viol = uint8(mRegress)
			}
			t.Att = s.FW
		}
		out(Act{nLateWrite, s.FW, 0, 0}, false)
	}
	if s.Restarts > 0 && s.LateW > 0 && s.FW == 0 && s.Creating == 0 && s.CAtt < mAtt &&
		(s.CAtt == 0 || s.CJob[s.CAtt] == 2) {
		t = *s
		t.Restarts--
		t.LateW--
		t.FW, t.FWBase = s.CAtt+1, s.CAtt
		t.CAtt, t.CPhase, t.CJob = t.Att, t.Phase, t.Job
		out(Act{nMgrCrash, 2, 0, 0}, true)
	}
	for n := uint8(1); n <= mAtt; n++ {
		if s.Pod[n] != 1 {
			if s.JobGone > 0 && (s.Job[n] == 2 || s.Job[n] == 3) {
				t = *s
				t.JobGone--
				t.Job[n], t.Ver[n] = 4, 0
				out(Act{nJobGone, n, 0, 0}, true)
			}
			continue
		}
		highest := true
		for k := n + 1; k <= mAtt; k++ {
			if s.Pod[k] != 0 {
				highest = false
			}
		}
		if highest {
			t = *s
			t.Done = 1
			t.Pod[n] = 2
			if t.Job[n] == 1 {
				t.Job[n], t.Ver[n] = 3, 1
			}
			out(Act{nFinish, n, 0, 0}, false)
		} else {
			t = *s
			t.Pod[n] = 2
			if t.Job[n] == 1 {
				t.Job[n] = 2
			}
			out(Act{nFence, n, 0, 0}, false)
		}
		if s.Crash > 0 {
			t = *s
			t.Crash--
			t.Pod[n] = 2
			if t.Job[n] == 1 {
				t.Job[n] = 2
			}
			out(Act{nLearnerCrash, n, 0, 0}, true)
		}
		if s.Lost > 0 && s.Job[n] == 1 {
			t = *s
			t.Lost--
			t.Job[n] = 2
			out(Act{nNodeLost, n, 0, 0}, true)
		}
	}
}

func (m *Mgr) reconcile(s, t *MS, out func(a Act, fault bool)) {
	if s.Creating != 0 {
		*t = *s
		t.Creating = 0
		m.land(t, s.Creating)
		if m.c.JobFirst {
			t.Att = s.Creating
		}
		out(Act{nCreate, s.Creating, 0, 0}, false)
		return
	}
	if s.CPhase == 1 {
		return
	}
	next := func(why uint8) {
		n := s.CAtt + 1
		if n > mAtt {
			return
		}
		if m.c.Lock && s.CAtt != s.Att {
			return // conflict: nothing is written, the cache will catch up
		}
		*t = *s
		if n < t.Att {
			t.Viol = uint8(mRegress)
		}
		if !m.c.JobFirst {
			t.Att = n
			t.CAtt = n // the writer sees its own write
		}
		t.Creating = n
		out(Act{nNext, n, why, 0}, false)
	}
	if s.CAtt == 0 {
		next(0)
		return
	}
	switch s.CJob[s.CAtt] {
	case 0, 4:
		if m.c.LiveGet {
			j := s.Job[s.CAtt]
			if j != 0 && j != 4 {
				return
			}
		}
		if m.c.Recreate {
			*t = *s
			t.Creating = s.CAtt
			out(Act{nNext, s.CAtt, 3, 0}, false)
			return
		}
		next(1)
	case 2:
		next(2)
	case 3:
		ver := s.Ver[s.CAtt]
		if m.c.Verdict && ver == 0 {
			next(2)
			return
		}
		*t = *s
		t.Phase = 1
		if s.Done == 0 {
			t.Viol = uint8(mFalse)
		}
		out(Act{nComplete, s.CAtt, 0, 0}, false)
	}
}

// Label implements Model.
func (m *Mgr) Label(a Act, from, to *MS) string {
	switch a.Kind {
	case nSync:
		return fmt.Sprintf("manager's cache sees status: attempt %d", from.Att)
	case nSyncJob:
		return fmt.Sprintf("manager's cache sees Job %d: %s", a.A, []string{"none", "active", "failed", "complete", "deleted"}[from.Job[a.A]])
	case nNext:
		return fmt.Sprintf("manager writes attempt %d (%s)", a.A, []string{"first", "Job missing", "attempt ended", "same number again"}[a.B])
	case nCreate:
		return fmt.Sprintf("manager creates Job %d", a.A)
	case nLand:
		return fmt.Sprintf("a dead manager's create of Job %d lands", a.A)
	case nMgrCrash:
		return "manager RESTARTS" + []string{"", " before it sent its create", " with its status write in flight"}[a.B]
	case nLateWrite:
		return fmt.Sprintf("a dead manager's status write (attempt %d) lands", a.A)
	case nLearnerCrash:
		return fmt.Sprintf("learner %d CRASHES", a.A)
	case nFinish:
		return fmt.Sprintf("learner %d commits the final step, exits 0 with its verdict", a.A)
	case nComplete:
		return "manager writes Complete"
	case nJobGone:
		return fmt.Sprintf("Job %d is DELETED by someone", a.A)
	case nNodeLost:
		return fmt.Sprintf("node of learner %d is LOST: Job failed, its process continues", a.A)
	case nFence:
		return fmt.Sprintf("learner %d is fenced", a.A)
	}
	return "?"
}
