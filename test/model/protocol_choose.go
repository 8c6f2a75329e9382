// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// better tells whether checkpoint a is newer than b, and whether they tie.
func (p *Proto) better(a, b ckpt) (bool, bool) {
	var ka, kb [4]uint8
	switch p.c.Order {
	case orderName:
		ka, kb = [4]uint8{a.Step, a.Cur, a.Att}, [4]uint8{b.Step, b.Cur, b.Att}
	case orderStep:
		ka, kb = [4]uint8{a.Step, a.Att, a.Inc}, [4]uint8{b.Step, b.Att, b.Inc}
	default:
		ka, kb = [4]uint8{a.Att, a.Inc, a.Step}, [4]uint8{b.Att, b.Inc, b.Step}
	}
	for i := range ka {
		if ka[i] != kb[i] {
			return ka[i] > kb[i], false
		}
	}
	return false, true
}

// counts tells whether checkpoint c may be a base for attempt n.
func (p *Proto) counts(s *PS, n int, id uint8) bool {
	c := p.cks.all[id]
	if c.Foreign {
		return !p.c.RunFilter
	}
	if n <= maxA && id == s.L[n].Bad && id != 0 {
		return false
	}
	switch p.c.Need {
	case needByLin:
		ok := c.Step == 0
		for r := 1; r < len(p.rows.all); r++ {
			if s.Rows.has(uint8(r)) && p.rows.all[r].Lin == c.Lin {
				ok = true
			}
		}
		if !ok {
			return false
		}
	case needByCkpt:
		ok := c.Step == 0
		for r := 1; r < len(p.rows.all); r++ {
			k := p.rows.all[r]
			if s.Rows.has(uint8(r)) && k.Lin == c.Lin && k.Att == c.Att && k.Inc == c.Inc {
				ok = true
			}
		}
		if !ok {
			return false
		}
	}
	if p.c.Fence == fenceClaim && p.c.Base {
		// The newest recorded base rules: of the attempts before it only that base counts, or what is older.
		for m := maxA; m > int(c.Att); m-- {
			b := s.CBase[m]
			if b == 0 {
				continue
			}
			if b == 255 || (id != b && c.Step >= p.cks.all[b].Step) {
				return false
			}
			break
		}
	}
	return true
}

// choose is the resume rule for attempt n. 0 means from scratch.
func (p *Proto) choose(s *PS, n int) (best uint8, tie bool) {
	if p.c.ByManager {
		if s.Ledger != 0 && s.Ck.has(s.Ledger) {
			return s.Ledger, false
		}
	}
	for id := 1; id < len(p.cks.all); id++ {
		if !s.Ck.has(uint8(id)) || !p.counts(s, n, uint8(id)) {
			continue
		}
		if best == 0 {
			best = uint8(id)
			continue
		}
		gt, eq := p.better(p.cks.all[id], p.cks.all[best])
		if gt {
			best, tie = uint8(id), false
		} else if eq {
			a, b := p.cks.all[id], p.cks.all[best]
			if a.Lin != b.Lin || a.W != b.W {
				tie = true
			}
		}
	}
	return best, tie
}

func (p *Proto) chain(lin uint8) []uint8 {
	var out []uint8
	for {
		out = append(out, lin)
		if lin == 0 || lin >= 250 {
			break
		}
		lin = p.lins.all[lin].Parent
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// finish checks what the run reports.
func (p *Proto) finish(s *PS, l *Learner) {
	lin := l.Lin[0]
	ch := p.chain(lin)
	if p.finals != nil {
		var b []string
		for _, x := range ch[1:] {
			b = append(b, p.linName(x))
		}
		p.finals[fmt.Sprintf("cursor %d: %s", l.Cur, strings.Join(b, " "))]++
	}
	if len(ch) != p.c.K+1 {
		p.viol(s, cChain)
		return
	}
	if l.W != lin {
		p.viol(s, cFinalWeights)
		return
	}
	next := 0
	for k := 0; k < p.c.K; k++ {
		v := k - p.c.L
		if v < 0 {
			v = 0
		}
		if p.c.Refill == refillPerStep {
			next = k * p.spSlots()
		}
		li := p.lins.all[ch[k+1]]
		if len(li.Members) != p.c.G || li.Poison {
			p.viol(s, cChain)
			return
		}
		for _, m := range []byte(li.Members) {
			g := p.groups.all[m]
			if int(g.Slot) < next {
				p.viol(s, cChain)
				return
			}
			if g.Actual != ch[v] {
				p.viol(s, cNondet)
				return
			}
			next = int(g.Slot) + 1
		}
	}
	if p.c.Refill != refillPerStep && next != int(l.Cur) {
		p.viol(s, cChain) // the cursor is not the one that the lineage says
		return
	}
	if p.c.Flake == 0 && lin != p.expected {
		p.viol(s, cNondet)
		return
	}
	for k := 1; k <= p.c.K; k++ {
		ok := false
		for r := 1; r < len(p.rows.all); r++ {
			if s.Rows.has(uint8(r)) && p.rows.all[r].Lin == ch[k] {
				ok = true
			}
		}
		if !ok {
			p.viol(s, cRowMissing)
			return
		}
	}
}
