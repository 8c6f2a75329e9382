// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

func (p *Proto) list(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	*t = *s
	b, tie := p.choose(s, n)
	if tie {
		p.viol(t, cTie)
	}
	t.L[n].Base = b
	t.L[n].PC = pChosen
	out(Act{aList, uint8(n), b, 0}, false)
}

func (p *Proto) load(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[n]
	un := uint8(n)
	*t = *s
	q := &t.L[n]
	if l.Base != 0 && !s.Ck.has(l.Base) {
		q.PC = pStart
		out(Act{aLoad, un, 1, 0}, false)
		return
	}
	if p.c.Fence == fenceUnload && l.Model != 1 {
		q.PC = pStart
		out(Act{aLoad, un, 2, 0}, false)
		return
	}
	if l.Base == 0 && s.InitGone == 1 {
		return // there is nothing to start from
	}
	c := ckpt{}
	if l.Base != 0 {
		c = p.cks.all[l.Base]
	}
	q.Model = 1
	q.Step, q.Cur, q.W, q.Cov, q.Last = c.Step, c.Cur, c.W, c.Cur, l.Base
	if p.c.CovSpare {
		q.Cov = 0
	}
	if p.c.Ack {
		q.Cov = 0
		if s.Ledger == l.Base && l.Base != 0 {
			q.Cov = c.Cur
		}
	}
	q.Lin = [maxL + 1]uint8{}
	q.Lin[0] = c.Lin
	if !c.Foreign {
		x := c.Lin
		for j := 1; j <= p.c.L && j <= int(c.Step); j++ {
			if p.c.KnowPar {
				x = p.lins.all[x].Parent
				q.Lin[j] = x
			} else {
				q.Lin[j] = p.guessParent(s, n, int(c.Step)-j)
			}
		}
	}
	for i := range q.Acc { // groups in memory that no longer fit are left
		if i < int(q.Cur) {
			q.Acc[i] = 0
		}
	}
	req := p.plan(q)
	for i := range q.Acc {
		if q.Acc[i] != 0 && (req[i] == 255 || !p.fits(q, q.Acc[i], req[i])) {
			q.Acc[i] = 0
		}
	}
	if p.c.PreferRow {
		p.takeRow(s, q)
	}
	if c.W != c.Lin {
		p.viol(t, cPoisonLoaded)
	}
	if c.Foreign {
		p.viol(t, cForeign)
	}
	if c.Z {
		p.viol(t, cZombieUsed)
	}
	if un == s.Cur && !c.Foreign && !p.extends(c.Lin, s.CovLin) {
		p.viol(t, cRegress)
	}
	if p.c.Fence == fenceClaim && p.c.Base && t.CBase[n] == 0 {
		t.CBase[n] = l.Base
		if l.Base == 0 {
			t.CBase[n] = 255
		}
	}
	q.PC = pServe
	if (p.c.Opening && l.Base != 0 && p.cks.all[l.Base].Att != un) || ((p.c.Opening || p.c.S0) && l.Base == 0) {
		q.Pend = p.cks.id(ckpt{Att: un, Inc: q.Inc, Step: q.Step, Cur: q.Cur, Lin: q.Lin[0], W: q.W, Z: un < t.Opened})
		q.Sv, q.PC = 1, pOpening
	} else if t.Opened < un {
		t.Opened = un
	}
	out(Act{aLoad, un, 0, l.Base}, false)
}

// takeRow takes over the tombstones of the newest row written for the step that q is about to do.
func (p *Proto) takeRow(s *PS, q *Learner) {
	best := 0
	for r := 1; r < len(p.rows.all); r++ {
		k := p.rows.all[r]
		if !s.Rows.has(uint8(r)) || k.Lin == 0 || p.lins.all[k.Lin].Parent != q.Lin[0] {
			continue
		}
		if b := p.rows.all[best]; best == 0 || k.Att > b.Att || (k.Att == b.Att && k.Inc > b.Inc) {
			best = r
		}
	}
	if best == 0 {
		return
	}
	member := map[uint8]bool{}
	last := uint8(0)
	for _, g := range []byte(p.lins.all[p.rows.all[best].Lin].Members) {
		last = p.groups.all[g].Slot
		member[last] = true
	}
	idx := min(p.c.L, int(q.Step))
	for i := q.Cur; i < last; i++ {
		if !member[i] {
			q.Acc[i] = p.groups.id(group{Slot: i, Claimed: q.Lin[idx], Actual: q.Lin[idx], Tomb: true})
		}
	}
}

// extends tells whether lineage a is b or descends from it.
func (p *Proto) extends(a, b uint8) bool {
	for {
		if a == b {
			return true
		}
		if a == 0 {
			return false
		}
		a = p.lins.all[a].Parent
	}
}

// spared tells whether retention must leave checkpoint c for an evaluation that has no row yet.
func (p *Proto) spared(s *PS, c ckpt) bool {
	return p.c.Eval > 0 && p.c.EvalKeep && int(c.Step) == p.c.Eval && !s.EvRows.has(c.Lin)
}

// guessParent is what a learner without parent digests can do: take the newest state of that step.
func (p *Proto) guessParent(s *PS, n, step int) uint8 {
	if step == 0 {
		return 0
	}
	best := uint8(0)
	for id := 1; id < len(p.cks.all); id++ {
		c := p.cks.all[id]
		if !s.Ck.has(uint8(id)) || c.Foreign || int(c.Step) != step {
			continue
		}
		if best == 0 {
			best = uint8(id)
		} else if gt, _ := p.better(c, p.cks.all[best]); gt {
			best = uint8(id)
		}
	}
	if best == 0 {
		return 254
	}
	return p.cks.all[best].Lin
}

// claim writes the claim of an attempt, or creates its model where unloading models is the fence.
func (p *Proto) claim(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	un := uint8(n)
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
}

// claimed unloads the models of lower attempts where that is the fence, and lists.
func (p *Proto) claimed(s *PS, n int, t *PS, out func(a Act, fault bool)) bool {
	un := uint8(n)
	if higherClaim(s, n) {
		*t = *s
		p.die(&t.L[n], pFenced)
		out(Act{aCheck, un, 1, 0}, false)
		return false
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
		return false
	}
	p.list(s, n, t, out)
	return true
}

// opened waits for the save of the opening state.
func (p *Proto) opened(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[n]
	un := uint8(n)
	switch l.Sv {
	case 2:
		*t = *s
		q := &t.L[n]
		q.Last = q.Pend
		q.Pend, q.Sv, q.PC = 0, 0, pServe
		if t.Opened < un {
			t.Opened = un
		}
		out(Act{aOpened, un, 0, 0}, false)
	case 3:
		*t = *s
		p.reopen(t, n, true)
		out(Act{aGone, un, 0, 0}, false)
	}
}
