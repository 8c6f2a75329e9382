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
	// The server works on its queue whether or not the learner runs.
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
	if !running(l.PC) {
		return
	}
	if n < p.c.A {
		*t = *s
		p.die(&t.L[n], pDead)
		out(Act{aCrash, un, 0, 0}, true)
	}
	higher := s.Claim>>(un+1) != 0
	switch l.PC {
	case pStart:
		switch p.c.Fence {
		case fenceNone:
			p.list(s, n, t, out)
		default:
			*t = *s
			t.Claim |= 1 << un
			if p.c.Fence == fenceUnload {
				t.L[n].Model = 1
			}
			t.L[n].PC = pClaimed
			out(Act{aClaim, un, 0, 0}, false)
		}
	case pClaimed:
		if higher {
			*t = *s
			p.die(&t.L[n], pFenced)
			out(Act{aCheck, un, 1, 0}, false)
			return
		}
		if p.c.Fence == fenceUnload {
			*t = *s
			for m := 1; m < n; m++ {
				q := &t.L[m]
				q.Old = 0
				if q.Model == 1 {
					q.Model = 2
					if q.Sv == 1 {
						q.Sv = 3
					}
					if !running(q.PC) {
						*q = Learner{PC: q.PC}
					}
				}
			}
			t.L[n].PC = pCleared
			out(Act{aUnload, un, 0, 0}, false)
			return
		}
		p.list(s, n, t, out)
	case pCleared:
		p.list(s, n, t, out)
	case pChosen:
		p.load(s, n, t, out)
	case pOpening:
		if l.Sv == 2 {
			*t = *s
			q := &t.L[n]
			q.Last = q.Pend
			q.Pend, q.Sv, q.PC = 0, 0, pServe
			if t.Opened < un {
				t.Opened = un
			}
			out(Act{aOpened, un, 0, 0}, false)
		} else if l.Sv == 3 {
			*t = *s
			p.reopen(t, n, true)
			out(Act{aGone, un, 0, 0}, false)
		}
	case pServe:
		p.serve(s, n, t, out)
	case pTrained:
		*t = *s
		if l.Out == 2 {
			if p.c.Save == savePiped {
				t.L[n].Bad = l.Pend
			}
			p.reopen(t, n, true)
			out(Act{aReply, un, 2, 0}, false)
		} else {
			t.L[n].PC = pClean
			out(Act{aReply, un, 1, 0}, false)
		}
	case pClean:
		if p.c.Save == savePiped {
			p.saveReply(s, n, t, out)
			return
		}
		*t = *s
		if p.c.Early && l.Ann == 0 {
			if l.Model != 1 {
				p.reopen(t, n, true)
				out(Act{aGone, un, 0, 0}, false)
				return
			}
			t.Smp.add(p.smps.id(sampler{l.NLin, l.NW}))
			t.L[n].Ann = 1
			out(Act{aPublish, un, 0, 0}, false)
			return
		}
		if p.c.Row == rowAhead {
			t.Rows.add(p.rows.id(rowKey{l.NLin, un, l.Inc}))
		}
		t.L[n].PC = pReady // row durable (or not wanted yet): the save may be submitted
		out(Act{aRow, un, 0, 0}, false)
	case pReady:
		if p.c.Save == saveClean && l.Sv == 0 {
			*t = *s
			p.submit(t, n)
			t.L[n].PC = pSaving
			out(Act{aSubmit, un, 0, 0}, false)
			return
		}
		p.publish(s, n, t, out)
	case pSaving:
		p.saveReply(s, n, t, out)
	case pSaved:
		if p.c.CheckLast && p.c.Row == rowAfter && !s.Rows.has(p.rows.id(rowKey{l.NLin, un, l.Inc})) {
			*t = *s
			p.rowAfterSave(t, n)
			out(Act{aRow, un, 1, 0}, false)
			break
		}
		if p.c.Fence == fenceClaim {
			*t = *s
			if higher {
				p.die(&t.L[n], pFenced)
				out(Act{aCheck, un, 1, 0}, false)
				return
			}
			t.L[n].PC = pChecked
			out(Act{aCheck, un, 0, 0}, false)
			break
		}
		*t = *s
		t.L[n].PC = pChecked
		p.rowAfterSave(t, n)
		out(Act{aRow, un, 1, 0}, false)
	case pChecked:
		if p.c.Fence == fenceClaim && p.c.Row == rowAfter {
			if !s.Rows.has(p.rows.id(rowKey{l.NLin, un, l.Inc})) {
				*t = *s
				p.rowAfterSave(t, n)
				out(Act{aRow, un, 1, 0}, false)
				return
			}
		}
		p.publish(s, n, t, out)
	case pPublished:
		p.advance(s, n, t, out)
	}
	// Retention runs beside the loop.
	if serving(l.PC) && l.Com == 1 && p.c.Ret != retNone {
		keep := int(l.Step)
		if p.c.Ret == retWindow {
			keep -= p.c.L + p.c.Spare
		}
		for id := 1; id < len(p.cks.all); id++ {
			c := p.cks.all[id]
			if !s.Ck.has(uint8(id)) || c.Foreign || int(c.Att) > n || int(c.Step) >= keep || p.spared(s, c) {
				continue
			}
			*t = *s
			b0, _ := p.choose(s, maxA+1)
			t.Ck.del(uint8(id))
			b1, _ := p.choose(t, maxA+1)
			if b0 == uint8(id) && (b1 == 0 || p.cks.all[b1].Step < p.cks.all[b0].Step) {
				p.viol(t, cDeletedNeeded)
			}
			out(Act{aDelete, un, uint8(id), 0}, false)
		}
	}
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
