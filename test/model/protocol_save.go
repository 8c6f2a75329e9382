// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

func (p *Proto) advance(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[n]
	un := uint8(n)
	*t = *s
	q := &t.L[n]
	q.Step++
	for j := maxL; j > 0; j-- {
		q.Lin[j] = q.Lin[j-1]
	}
	q.Lin[0], q.W, q.Cur = q.NLin, q.NW, q.NCur
	for i := 0; i < int(q.Cur) && i < maxS; i++ {
		q.Acc[i] = 0
	}
	q.Last = q.Pend
	if !p.c.Ack {
		q.Cov = q.Cur
		if p.c.CovSpare {
			q.Cov = l.Cur
		}
	}
	q.Com = 1
	q.NCur, q.NLin, q.NW, q.Out, q.Pend, q.Sv, q.Ann = 0, 0, 0, 0, 0, 0, 0
	q.PC = pServe
	if s.Cur == un && !p.c.Ack {
		t.CovLin = q.Lin[0]
	}
	out(Act{aAdvance, un, 0, 0}, false)
}

func (p *Proto) rowAfterSave(t *PS, n int) {
	if p.c.Row == rowAfter {
		l := &t.L[n]
		t.Rows.add(p.rows.id(rowKey{l.NLin, uint8(n), l.Inc}))
	}
}

func (p *Proto) submit(t *PS, n int) {
	q := &t.L[n]
	q.Pend = p.cks.id(ckpt{Att: uint8(n), Inc: q.Inc, Step: q.Step + 1, Cur: q.NCur, Lin: q.NLin, W: q.NW, Z: uint8(n) < t.Opened})
	q.Sv = 1
	if q.Model != 1 {
		q.Sv = 3
	}
}

func (p *Proto) saveReply(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[n]
	un := uint8(n)
	switch l.Sv {
	case 2:
		*t = *s
		t.L[n].PC = pSaved
		out(Act{aSaved, un, 0, 0}, false)
		if s.Fail > 0 {
			*t = *s
			t.Fail--
			p.reopen(t, n, true)
			out(Act{aSaved, un, 1, 0}, true)
		}
	case 3:
		*t = *s
		p.reopen(t, n, true)
		out(Act{aGone, un, 0, 0}, false)
	}
}

func (p *Proto) publish(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[n]
	un := uint8(n)
	*t = *s
	if l.Ann == 1 {
		p.advance(s, n, t, out)
		return
	}
	if l.Model != 1 {
		p.reopen(t, n, true)
		out(Act{aGone, un, 0, 0}, false)
		return
	}
	t.Smp.add(p.smps.id(sampler{l.NLin, l.NW}))
	t.L[n].PC = pPublished
	out(Act{aPublish, un, 0, 0}, false)
}

// trained collects the replies of the step.
func (p *Proto) trained(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[n]
	un := uint8(n)
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
}

// clean announces the sampler and writes the row, in the order of the configuration.
func (p *Proto) clean(s *PS, n int, t *PS, out func(a Act, fault bool)) bool {
	l := &s.L[n]
	un := uint8(n)
	if p.c.Save == savePiped {
		p.saveReply(s, n, t, out)
		return false
	}
	*t = *s
	if p.c.Early && l.Ann == 0 {
		if l.Model != 1 {
			p.reopen(t, n, true)
			out(Act{aGone, un, 0, 0}, false)
			return false
		}
		t.Smp.add(p.smps.id(sampler{l.NLin, l.NW}))
		t.L[n].Ann = 1
		out(Act{aPublish, un, 0, 0}, false)
		return false
	}
	if p.c.Row == rowAhead {
		t.Rows.add(p.rows.id(rowKey{l.NLin, un, l.Inc}))
	}
	t.L[n].PC = pReady // row durable (or not wanted yet): the save may be submitted
	out(Act{aRow, un, 0, 0}, false)
	return true
}

// ready submits the save of the state.
func (p *Proto) ready(s *PS, n int, t *PS, out func(a Act, fault bool)) bool {
	l := &s.L[n]
	un := uint8(n)
	if p.c.Save == saveClean && l.Sv == 0 {
		*t = *s
		p.submit(t, n)
		t.L[n].PC = pSaving
		out(Act{aSubmit, un, 0, 0}, false)
		return false
	}
	p.publish(s, n, t, out)
	return true
}

// saved looks for a higher claim after the save.
func (p *Proto) saved(s *PS, n int, t *PS, out func(a Act, fault bool)) bool {
	l := &s.L[n]
	un := uint8(n)
	if p.c.CheckLast && p.c.Row == rowAfter && !s.Rows.has(p.rows.id(rowKey{l.NLin, un, l.Inc})) {
		*t = *s
		p.rowAfterSave(t, n)
		out(Act{aRow, un, 1, 0}, false)
		return true
	}
	if p.c.Fence == fenceClaim {
		*t = *s
		if higherClaim(s, n) {
			p.die(&t.L[n], pFenced)
			out(Act{aCheck, un, 1, 0}, false)
			return false
		}
		t.L[n].PC = pChecked
		out(Act{aCheck, un, 0, 0}, false)
		return true
	}
	*t = *s
	t.L[n].PC = pChecked
	p.rowAfterSave(t, n)
	out(Act{aRow, un, 1, 0}, false)
	return true
}

// checked writes the row after the look, where the configuration says so, and announces.
func (p *Proto) checked(s *PS, n int, t *PS, out func(a Act, fault bool)) bool {
	l := &s.L[n]
	un := uint8(n)
	if p.c.Fence == fenceClaim && p.c.Row == rowAfter {
		if !s.Rows.has(p.rows.id(rowKey{l.NLin, un, l.Inc})) {
			*t = *s
			p.rowAfterSave(t, n)
			out(Act{aRow, un, 1, 0}, false)
			return false
		}
	}
	p.publish(s, n, t, out)
	return true
}

// retire deletes states beside the loop, one at a time.
func (p *Proto) retire(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[n]
	un := uint8(n)
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
}
