// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

// plan says for each slot which lineage it must be sampled at, and whether it may be leased (req != 255).
func (p *Proto) plan(l *Learner) (req [maxS]uint8) {
	for i := range req {
		req[i] = 255
	}
	k, cnt := 0, 0
	unknown := false
	i := int(l.Cur)
	if p.c.Refill == refillPerStep {
		i = int(l.Step) * p.spSlots()
	}
	for ; i < p.c.S; i++ {
		if k > p.c.L || int(l.Step)+k >= p.c.K {
			break
		}
		idx := p.c.L - k
		if idx > int(l.Step) {
			idx = int(l.Step)
		}
		req[i] = l.Lin[idx]
		g := l.Acc[i]
		if g != 0 && p.fits(l, g, req[i]) {
			if p.groups.all[g].Tomb {
				continue
			}
		} else {
			unknown = true
		}
		cnt++
		if cnt == p.c.G {
			cnt = 0
			k++
			if p.c.Refill == refillPerStep {
				i = (int(l.Step)+k)*p.spSlots() - 1
			} else if p.c.Refill == refillCertain && unknown {
				break
			}
		}
	}
	return req
}

func (p *Proto) fits(l *Learner, g, req uint8) bool {
	c := p.groups.all[g].Claimed
	if p.c.Refill == refillAny {
		for j := 0; j <= p.c.L; j++ {
			if l.Lin[j] == c {
				return true
			}
		}
		return false
	}
	return c == req
}

// batch returns the members of the next step if they are all there.
func (p *Proto) batch(l *Learner) (mem []byte, cur uint8, ok bool) {
	req := p.plan(l)
	i := int(l.Cur)
	if p.c.Refill == refillPerStep {
		i = int(l.Step) * p.spSlots()
	}
	for ; i < p.c.S; i++ {
		g := l.Acc[i]
		if req[i] == 255 || g == 0 || !p.fits(l, g, req[i]) {
			return nil, 0, false
		}
		if p.groups.all[g].Tomb {
			continue
		}
		mem = append(mem, g)
		if len(mem) == p.c.G {
			cur = uint8(i + 1)
			if p.c.Refill == refillPerStep {
				cur = uint8((int(l.Step) + 1) * p.spSlots())
			}
			return mem, cur, true
		}
	}
	return nil, 0, false
}

// absorb lets the learners take what attached workers hold.
func (p *Proto) absorb(s *PS) {
	for n := 1; n <= int(s.Cur); n++ {
		l := &s.L[n]
		if !serving(l.PC) || l.PC == pFinal {
			continue
		}
		for again := true; again; {
			again = false
			v := p.view(l)
			req := p.plan(&v)
			for i := 0; i < p.c.S; i++ {
				if req[i] == 255 {
					continue
				}
				if l.Acc[i] != 0 {
					if p.fits(&v, l.Acc[i], req[i]) {
						continue
					}
					l.Acc[i] = 0
					if p.c.Cost {
						s.Disc++
						p.viol(s, cDiscard)
					}
					again = true
				}
				for w := 0; w < p.c.W; w++ {
					if s.Wk[w].Epoch == uint8(n) && s.Wk[w].Stored[i] != 0 && p.fits(&v, s.Wk[w].Stored[i], req[i]) {
						l.Acc[i] = s.Wk[w].Stored[i]
						again = true
						break
					}
				}
			}
		}
	}
}

// canon sorts the workers, which are alike.
func (p *Proto) canon(s *PS) {
	if p.c.W == 2 {
		a, b := &s.Wk[0], &s.Wk[1]
		less := a.Epoch > b.Epoch
		if a.Epoch == b.Epoch {
			for i := range a.Stored {
				if a.Stored[i] != b.Stored[i] {
					less = a.Stored[i] > b.Stored[i]
					break
				}
			}
		}
		if less {
			*a, *b = *b, *a
		}
	}
}
