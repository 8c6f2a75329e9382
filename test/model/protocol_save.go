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
