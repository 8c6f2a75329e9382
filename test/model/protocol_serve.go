// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

func (p *Proto) hasSampler(s *PS, lin uint8) bool {
	for i := 1; i < len(p.smps.all); i++ {
		if s.Smp.has(uint8(i)) && p.smps.all[i].Lin == lin {
			return true
		}
	}
	return false
}

func (p *Proto) serve(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[n]
	un := uint8(n)
	if !p.evaluate(s, n, t, out) {
		return
	}
	if int(l.Step) == p.c.K {
		if s.Cur == un {
			*t = *s
			p.finish(t, &t.L[n])
			t.Phase = 1
			t.L[n].PC = pDone
			out(Act{aVerdict, un, 0, 0}, false)
		}
		return
	}
	if l.Model != 1 {
		*t = *s
		p.reopen(t, n, true)
		out(Act{aGone, un, 0, 0}, false)
		return
	}
	p.revive(s, n, t, out)
	p.train(s, n, t, out)
}

// evaluate emits the evaluation that is due, and reports whether the loop may continue before it is done.
func (p *Proto) evaluate(s *PS, n int, t *PS, out func(a Act, fault bool)) bool {
	l := &s.L[n]
	un := uint8(n)
	if p.c.Eval > 0 && int(l.Step) >= p.c.Eval {
		le := l.Lin[0]
		for p.lins.all[le].Step > uint8(p.c.Eval) {
			le = p.lins.all[le].Parent
		}
		if !s.EvRows.has(le) {
			can := p.hasSampler(s, le) || (int(l.Step) == p.c.Eval && l.Model == 1)
			for id := 1; id < len(p.cks.all); id++ {
				if s.Ck.has(uint8(id)) && p.cks.all[id].Lin == le {
					can = true
				}
			}
			if can {
				*t = *s
				t.EvRows.add(le)
				out(Act{aEval, un, le, 0}, false)
			}
			if int(l.Step) == p.c.K || (p.c.EvalBlock && int(l.Step) == p.c.Eval) {
				return false
			}
		}
	}
	return true
}

// revive makes versions again that must be sampled and cannot.
func (p *Proto) revive(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[n]
	un := uint8(n)
	req := p.plan(l)
	for j := 0; j <= p.c.L && j <= int(l.Step); j++ {
		need := false
		for i := range req {
			if req[i] == l.Lin[j] && l.Acc[i] == 0 {
				need = true
			}
		}
		if !need || p.hasSampler(s, l.Lin[j]) {
			continue
		}
		if j == 0 {
			*t = *s
			t.Smp.add(p.smps.id(sampler{l.Lin[0], l.W}))
			out(Act{aRepub, un, l.Lin[0], 0}, false)
			continue
		}
		p.reviveEarlier(s, n, j, t, out)
	}
}

// reviveEarlier makes an earlier version of the window again from a state, or replaces it.
func (p *Proto) reviveEarlier(s *PS, n, j int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[n]
	un := uint8(n)
	found := false
	for id := 1; id < len(p.cks.all); id++ {
		if s.Ck.has(uint8(id)) && !p.cks.all[id].Foreign && p.cks.all[id].Lin == l.Lin[j] {
			*t = *s
			t.Smp.add(p.smps.id(sampler{l.Lin[j], p.cks.all[id].W}))
			out(Act{aRepub, un, l.Lin[j], 0}, false)
			found = true
		}
	}
	if l.Lin[j] == 0 && s.InitGone == 0 { // version 0 can always be had from the initial weights
		*t = *s
		t.Smp.add(p.smps.id(sampler{0, 0}))
		out(Act{aRepub, un, 0, 0}, false)
		found = true
	}
	if !found && p.c.Fallback {
		*t = *s
		t.L[n].Lin[j] = l.Lin[j-1]
		out(Act{aGone, un, 2, 0}, false)
	}
	if !found && p.c.Reopen {
		if b, _ := p.choose(s, n); b != l.Last && b != 0 {
			*t = *s
			p.reopen(t, n, false)
			out(Act{aGone, un, 1, 0}, false)
		}
	}
}

// train submits the next step, whose chunks or replies may fail.
func (p *Proto) train(s *PS, n int, t *PS, out func(a Act, fault bool)) {
	l := &s.L[n]
	un := uint8(n)
	mem, cur, ok := p.batch(l)
	if !ok {
		return
	}
	clean := l.W == l.Lin[0]
	for _, g := range mem {
		if p.groups.all[g].Actual != p.groups.all[g].Claimed {
			clean = false
		}
	}
	nlin := p.lins.id(lineage{Parent: l.Lin[0], Step: l.Step + 1, Members: string(mem)})
	bad := p.lins.id(lineage{Parent: l.Lin[0], Step: l.Step + 1, Members: string(mem), Poison: true})
	try := func(nw, o uint8, fault bool) {
		*t = *s
		q := &t.L[n]
		q.NLin, q.NCur, q.NW, q.Out = nlin, cur, nw, o
		q.PC = pTrained
		if o == 2 {
			t.Fail--
		}
		if p.c.Save == savePiped {
			p.submit(t, n)
		}
		if p.c.PubPiped {
			t.Smp.add(p.smps.id(sampler{nlin, nw}))
		}
		k := o
		if o == 2 && nw == bad {
			k = 3
		}
		out(Act{aTrain, un, nlin, k}, fault)
	}
	good := nlin
	if !clean {
		good = bad
	}
	try(good, 1, false)
	if s.Fail > 0 {
		try(bad, 2, true)  // one chunk failed: a partial gradient was applied
		try(good, 2, true) // all applied, a reply was lost
	}
}
