// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// The sampling model: one slot, one member, two turns. Which samples enter the group, which are paid
// twice, and whether the group can always be finished, when futures, workers and sessions are lost.

const sTurns = 2

// SCfg is one configuration of the sampling model.
type SCfg struct {
	TryOnLoss   bool // a lost future (410) raises the try, and so the seed
	TryOnCrash  bool // a lease given to another worker raises the try
	PostInID    bool // the sequence id carries a re-post counter that the seed does not
	LearnerBeat bool // the learner keeps the session alive too, or makes a new one
	Lost        int  // replies lost
	Gone        int  // promises lost (410)
	Crash       int  // worker crashes
	Flake       int  // environment faults that are retried
}

// SS is a state of the sampling model. A key is (turn, try, post); its status 0 new 1 paid 2 lost.
type SS struct {
	Turn, Try, Post              uint8
	Worker                       uint8 // 1 alive
	Session                      uint8 // 1 alive 0 dead
	Key                          [sTurns][3][3]uint8
	Got                          [sTurns]uint8 // 1+try whose sample entered
	Paid                         uint8
	Finished                     uint8
	Lost, Gone, Crash, Flake, Vi uint8
}

const (
	sNondet Code = iota + 1
	sPaidTwice
)

var sCodes = map[Code]string{
	sNondet:    "I2 the group's samples depend on what was lost",
	sPaidTwice: "cost: a sample is paid twice",
}

// Sampling is the model.
type Sampling struct {
	c SCfg
}

// Init implements Model.
func (m *Sampling) Init() SS {
	return SS{Worker: 1, Session: 1, Lost: uint8(m.c.Lost), Gone: uint8(m.c.Gone), Crash: uint8(m.c.Crash), Flake: uint8(m.c.Flake)}
}

// Check implements Model.
func (m *Sampling) Check(s *SS) Code { return Code(s.Vi) }

// Done implements Model.
func (m *Sampling) Done(s *SS) bool { return s.Finished == 1 }

// CodeName implements Model.
func (m *Sampling) CodeName(c Code) string { return sCodes[c] }

const (
	xSample uint8 = iota
	xLost
	xGone
	xCrash
	xNew
	xFlake
	xFinish
	xExpire
	xSession
)

func (m *Sampling) restart(t *SS) {
	t.Turn, t.Post = 0, 0
	t.Got = [sTurns]uint8{}
}

// Next implements Model.
func (m *Sampling) Next(s *SS, emit func(a Act, fault bool, t *SS)) {
	if s.Finished == 1 {
		return
	}
	var t SS
	out := func(a Act, fault bool) { emit(a, fault, &t) }
	if s.Session == 0 && m.c.LearnerBeat {
		t = *s
		t.Session = 1
		t.Key = [sTurns][3][3]uint8{} // a new session knows no paid samples
		out(Act{xSession, 0, 0, 0}, false)
	}
	if s.Worker == 0 {
		t = *s
		t.Worker = 1
		if m.c.TryOnCrash && t.Try < 2 {
			t.Try++
		}
		m.restart(&t)
		out(Act{xNew, 0, 0, 0}, false)
		if s.Session == 1 && !m.c.LearnerBeat {
			t = *s
			t.Session = 0
			out(Act{xExpire, 0, 0, 0}, true)
		}
		return
	}
	if s.Crash > 0 {
		t = *s
		t.Crash--
		t.Worker = 0
		out(Act{xCrash, 0, 0, 0}, true)
	}
	if s.Turn == sTurns {
		t = *s
		t.Finished = 1
		for _, g := range t.Got {
			if m.c.Flake == 0 && g != 1 {
				t.Vi = uint8(sNondet)
			}
		}
		out(Act{xFinish, 0, 0, 0}, false)
		if s.Flake > 0 && s.Try < 2 {
			t = *s
			t.Flake--
			t.Try++
			m.restart(&t)
			out(Act{xFlake, 0, 0, 0}, true)
		}
		return
	}
	if s.Session == 0 {
		return
	}
	k := s.Key[s.Turn][s.Try][s.Post]
	if k == 2 { // 410: this future is lost for good
		t = *s
		switch {
		case m.c.PostInID && s.Post < 2:
			t.Post++
		case m.c.TryOnLoss && s.Try < 2:
			t.Try++
			m.restart(&t)
		default:
			return
		}
		out(Act{xGone, 1, 0, 0}, false)
		return
	}
	get := func() {
		t = *s
		if k == 0 {
			t.Key[s.Turn][s.Try][s.Post] = 1
			t.Paid++
		}
	}
	get()
	t.Got[s.Turn] = 1 + s.Try
	t.Turn++
	t.Post = 0
	out(Act{xSample, s.Turn, s.Try, s.Post}, false)
	if s.Lost > 0 {
		get()
		t.Lost--
		out(Act{xLost, s.Turn, s.Try, s.Post}, true)
	}
	if s.Gone > 0 {
		get()
		t.Gone--
		t.Key[s.Turn][s.Try][s.Post] = 2
		out(Act{xGone, 0, 0, 0}, true)
	}
}

// Label implements Model.
func (m *Sampling) Label(a Act, from, to *SS) string {
	switch a.Kind {
	case xSample:
		return fmt.Sprintf("worker gets the sample of turn %d, try %d, post %d", a.A, a.B, a.C)
	case xLost:
		return fmt.Sprintf("sample of turn %d is made, its reply is LOST", a.A)
	case xGone:
		if a.A == 1 {
			return fmt.Sprintf("worker asks anew: try %d, post %d", to.Try, to.Post)
		}
		return "the future is LOST for good (410)"
	case xCrash:
		return "worker CRASHES"
	case xNew:
		return fmt.Sprintf("another worker takes the lease, try %d", to.Try)
	case xFlake:
		return fmt.Sprintf("the environment FLAKES, try %d", to.Try)
	case xFinish:
		return "the group is finished"
	case xExpire:
		return "no worker sends heartbeats: the session EXPIRES"
	case xSession:
		return "the learner makes a new session"
	}
	return "?"
}
