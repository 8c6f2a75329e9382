// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

func (p *Proto) worker(s *PS, w int, t *PS, out func(a Act, fault bool)) {
	k := &s.Wk[w]
	uw := uint8(w)
	if w > 0 && *k == s.Wk[0] {
		return // alike
	}
	if s.WCr > 0 && *k != (Worker{}) {
		*t = *s
		t.Wk[w] = Worker{}
		t.WCr--
		out(Act{aWCrash, uw, 0, 0}, true)
	}
	for n := int(k.Epoch) + 1; n <= int(s.Cur); n++ {
		if serving(s.L[n].PC) {
			*t = *s
			t.Wk[w].Epoch = uint8(n)
			out(Act{aAttach, uw, uint8(n), 0}, false)
		}
	}
	n := int(k.Epoch)
	if n == 0 || !serving(s.L[n].PC) {
		return
	}
	l := &s.L[n]
	for i := 0; i < int(l.Cov) && i < maxS; i++ {
		if k.Stored[i] != 0 {
			*t = *s
			for j := 0; j < int(l.Cov); j++ {
				if p.watch(cRebuyCovered) && k.Stored[j] != 0 {
					t.Drop.add(k.Stored[j])
				}
				t.Wk[w].Stored[j] = 0
			}
			out(Act{aCover, uw, uint8(n), l.Cov}, false)
			break
		}
	}
	if p.c.WaitHello {
		for x := 0; x < p.c.W; x++ {
			if s.Wk[x].Epoch != k.Epoch {
				return
			}
		}
	}
	stored := 0
	for _, g := range k.Stored {
		if g != 0 && !p.groups.all[g].Tomb {
			stored++
		}
	}
	if p.c.MakeRoom && stored >= p.c.Cap {
		p.makeRoom(s, w, t, out)
	}
	v := p.view(l)
	req := p.plan(&v)
	for i := 0; i < p.c.S; i++ {
		if req[i] >= 250 || l.Acc[i] != 0 {
			continue
		}
		if p.c.Cap > 0 && stored >= p.c.Cap && k.Stored[i] == 0 {
			continue
		}
		p.play(s, w, n, i, req[i], t, out)
	}
}

// makeRoom lets a full worker give up a group for a lower slot that is missing.
func (p *Proto) makeRoom(s *PS, w int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[s.Wk[w].Epoch]
	v := p.view(l)
	req := p.plan(&v)
	missing := -1
	for i := 0; i < p.c.S && missing < 0; i++ {
		if req[i] < 250 && l.Acc[i] == 0 {
			missing = i
		}
	}
	if missing < 0 {
		return
	}
	give := -1
	for i := 0; i < p.c.S; i++ {
		g := s.Wk[w].Stored[i]
		if g != 0 && !p.groups.all[g].Tomb && (i > missing || l.Acc[i] == g) {
			give = i // the highest that the learner has in memory or that can wait
		}
	}
	if give >= 0 {
		*t = *s
		t.Wk[w].Stored[give] = 0
		out(Act{aDrop, uint8(w), s.Wk[w].Stored[give], 0}, false)
	}
}

func (p *Proto) watch(c Code) bool { return p.c.Only == nil || p.c.Only[c] }

func (p *Proto) play(s *PS, w, n, i int, lin uint8, t *PS, out func(a Act, fault bool)) {
	use := func(smp uint8, bind bool) {
		g := group{Slot: uint8(i), Claimed: lin, Actual: p.smps.all[smp].W}
		if p.c.DetTomb&(1<<i) != 0 {
			g.Tomb = true
		}
		take := func(g group, fault bool) {
			*t = *s
			if fault {
				t.Flake--
			}
			if bind {
				t.SS[p.lins.all[lin].Step] = smp
			}
			id := p.groups.id(g)
			if t.Wk[w].Stored[i] != 0 && t.Wk[w].Stored[i] != id && p.c.Cost && !p.groups.all[t.Wk[w].Stored[i]].Tomb {
				t.Disc++
				p.viol(t, cDiscard)
			}
			t.Wk[w].Stored[i] = id
			if p.watch(cRebuyCovered) && s.Drop.has(id) && n == int(s.Cur) {
				p.viol(t, cRebuyCovered)
			}
			if p.c.Cost && uint8(n) < s.Opened {
				t.ZBuy++
				p.viol(t, cZombieBuys)
			}
			if p.c.Cost {
				if s.Bought.has(id) {
					t.Rebuy++
					p.viol(t, cRebuy)
				}
				t.Bought.add(id)
			}
			out(Act{aPlay, uint8(w), uint8(n), id}, fault)
		}
		take(g, false)
		if s.Flake > 0 && !g.Tomb {
			g.Tomb = true
			take(g, true)
		}
	}
	if p.c.SSVersion {
		v := p.lins.all[lin].Step
		if b := s.SS[v]; b != 0 {
			if s.Smp.has(b) {
				use(b, false)
			}
			return
		}
	}
	for id := 1; id < len(p.smps.all); id++ {
		if s.Smp.has(uint8(id)) && p.smps.all[id].Lin == lin {
			use(uint8(id), p.c.SSVersion)
		}
	}
}

func (p *Proto) environment(s *PS, t *PS, out func(a Act, fault bool)) {
	if s.Exp > 0 {
		for id := 1; id < len(p.cks.all); id++ {
			if s.Ck.has(uint8(id)) {
				*t = *s
				t.Exp--
				t.Ck.del(uint8(id))
				out(Act{aExpire, uint8(id), 0, 0}, true)
			}
		}
		if p.c.InitFrom && s.InitGone == 0 && s.Opened > 0 {
			*t = *s
			t.Exp--
			t.InitGone = 1
			out(Act{aInitGone, 0, 0, 0}, true)
		}
	}
	if s.SExp > 0 {
		for id := 1; id < len(p.smps.all); id++ {
			if s.Smp.has(uint8(id)) {
				*t = *s
				t.SExp--
				t.Smp.del(uint8(id))
				out(Act{aSmpExpire, p.smps.all[id].Lin, 0, 0}, true)
			}
		}
	}
	if s.Su > 0 && s.Cur > 0 && int(s.Cur) < p.c.A {
		if pc := s.L[s.Cur].PC; pc >= pStart && pc <= pServe {
			*t = *s
			t.Su--
			p.die(&t.L[s.Cur], pDead)
			for w := range t.Wk {
				t.Wk[w] = Worker{}
			}
			out(Act{aSuspend, s.Cur, 0, 0}, true)
		}
	}
	if s.Rst > 0 {
		*t = *s
		t.Rst--
		for n := 1; n <= int(s.Cur); n++ {
			q := &t.L[n]
			q.Model, q.Old = 0, 0
			if q.Sv == 1 {
				q.Sv = 3
			}
			if !running(q.PC) {
				*q = Learner{PC: q.PC}
			}
		}
		out(Act{aRestart, 0, 0, 0}, true)
	}
}
