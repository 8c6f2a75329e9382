// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

// Transition kinds of the protocol model.
const (
	aStart uint8 = iota
	aCrash
	aClaim
	aUnload
	aList
	aLoad
	aOpened
	aAttach
	aPlay
	aTrain
	aReply
	aRow
	aSubmit
	aExec
	aSaved
	aCheck
	aPublish
	aAdvance
	aCover
	aDelete
	aExpire
	aSmpExpire
	aWCrash
	aHeartbeat
	aRepub
	aVerdict
	aSuspend
	aRestart
	aOldExec
	aGone
	aInitGone
	aEval
	aDrop
)

func (p *Proto) reopen(s *PS, n int, inc bool) {
	l := &s.L[n]
	if p.c.Fence == fenceUnload {
		l.Old, l.Model = 0, 0
	} else if l.Pend != 0 && l.Sv == 1 {
		l.Old = l.Pend
	}
	l.Pend, l.Sv, l.Out, l.NCur, l.NLin, l.NW, l.Ann = 0, 0, 0, 0, 0, 0, 0
	if inc {
		l.Inc++
	}
	l.PC = pStart
}

func (p *Proto) die(l *Learner, pc uint8) {
	d := Learner{PC: pc, Old: l.Old}
	if l.Sv == 1 {
		d.Pend, d.Sv = l.Pend, 1
	}
	if d.Pend != 0 || d.Old != 0 {
		d.Model = l.Model
	}
	*l = d
}

// Next implements Model.
func (p *Proto) Next(s *PS, emit func(a Act, fault bool, t *PS)) {
	if s.Phase == 1 {
		return
	}
	var t PS
	out := func(a Act, fault bool) {
		p.absorb(&t)
		p.canon(&t)
		emit(a, fault, &t)
	}
	// Manager.
	if int(s.Cur) < p.c.A {
		pc := s.L[s.Cur].PC
		if s.Cur == 0 || pc == pDead || pc == pFenced {
			t = *s
			t.Cur++
			t.L[t.Cur].PC = pStart
			out(Act{aStart, t.Cur, 0, 0}, false)
		} else if s.Zomb > 0 && running(pc) {
			t = *s
			t.Zomb--
			t.Cur++
			t.L[t.Cur].PC = pStart
			out(Act{aStart, t.Cur, 1, 0}, true)
		}
	}
	for n := 1; n <= int(s.Cur); n++ {
		p.learner(s, n, &t, out)
	}
	for w := 0; w < p.c.W; w++ {
		p.worker(s, w, &t, out)
	}
	p.environment(s, &t, out)
}

func (p *Proto) learner(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[n]
	un := uint8(n)
	p.queue(s, n, t, out)
	if !running(l.PC) {
		return
	}
	if n < p.c.A {
		*t = *s
		p.die(&t.L[n], pDead)
		out(Act{aCrash, un, 0, 0}, true)
	}
	if !p.advanceLearner(s, n, t, out) {
		return
	}
	p.retire(s, n, t, out)
	// The manager's heartbeat.
	if p.c.ByManager && un == s.Cur && l.Last != 0 && s.Ledger != l.Last {
		*t = *s
		t.Ledger = l.Last
		if p.c.Ack {
			t.L[n].Cov = p.cks.all[l.Last].Cur
			t.CovLin = p.cks.all[l.Last].Lin
		}
		out(Act{aHeartbeat, un, 0, 0}, false)
	}
}

// advanceLearner emits what a learner does next, by its program counter, and reports whether retention and the
// heartbeat may happen instead.
func (p *Proto) advanceLearner(s *PS, n int, t *PS, out func(a Act, fault bool)) bool {
	switch s.L[n].PC {
	case pStart:
		p.claim(s, n, t, out)
	case pClaimed:
		return p.claimed(s, n, t, out)
	case pCleared:
		p.list(s, n, t, out)
	case pChosen:
		p.load(s, n, t, out)
	case pOpening:
		p.opened(s, n, t, out)
	case pServe:
		p.serve(s, n, t, out)
	case pTrained:
		p.trained(s, n, t, out)
	case pClean:
		return p.clean(s, n, t, out)
	case pReady:
		return p.ready(s, n, t, out)
	case pSaving:
		p.saveReply(s, n, t, out)
	case pSaved:
		return p.saved(s, n, t, out)
	case pChecked:
		return p.checked(s, n, t, out)
	case pPublished:
		p.advance(s, n, t, out)
	}
	return true
}

// higherClaim reports whether a higher attempt than n has claimed the run.
func higherClaim(s *PS, n int) bool { return s.Claim>>(uint8(n)+1) != 0 }

// queue lets the server work on what the learner has submitted, whether or not the learner runs.
func (p *Proto) queue(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[n]
	un := uint8(n)
	if l.Sv == 1 && l.Model == 1 {
		*t = *s
		q := &t.L[n]
		t.Ck.add(q.Pend)
		if running(q.PC) {
			q.Sv = 2
		} else {
			q.Pend, q.Sv = 0, 0
			if q.Old == 0 {
				q.Model = 0
			}
		}
		out(Act{aExec, un, l.Pend, 0}, false)
	}
	if l.Old != 0 {
		*t = *s
		t.Ck.add(l.Old)
		t.L[n].Old = 0
		out(Act{aOldExec, un, l.Old, 0}, false)
	}
}
