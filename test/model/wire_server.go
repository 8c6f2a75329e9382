// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

func (m *Wire) server(s, t *WS, emit func(a Act, fault bool, t *WS)) {
	if s.Restart > 0 {
		*t = *s
		t.Restart--
		t.G, t.Q, t.NQ, t.Seen = [4]uint8{}, [9]WOp{}, 0, [14]uint8{}
		t.Alive = 0
		if m.c.Resurrect {
			t.Alive = 1
			t.W, t.NW = t.Saved, t.NSaved
		}
		if !m.c.RidReuse {
			t.Idx = [4]uint8{253, 253, 253, 253}
		}
		emit(Act{kRestart, 0, 0, 0}, true, t)
	}
	if s.Alive == 0 {
		return
	}
	// Next op to execute.
	best := -1
	for i := 0; i < int(s.NQ); i++ {
		if s.Q[i].Status != 1 {
			continue
		}
		if best < 0 || (!m.c.ByArrival && s.Q[i].Seq < s.Q[best].Seq) {
			best = i
		}
		if m.c.ByArrival {
			break
		}
	}
	if best < 0 {
		return
	}
	op := s.Q[best]
	if !m.c.ByArrival && op.Type == oFB {
		// A chunk waits for its predecessors until another kind of op shows that none is missing.
		later := false
		for i := 0; i < int(s.NQ); i++ {
			if s.Q[i].Type != oFB && s.Q[i].Seq > op.Seq {
				later = true
			}
		}
		_ = later // order among chunks does not matter to a sum; the wait is only a delay
	}
	*t = *s
	m.exec(t, best)
	emit(Act{kExec, op.Type, op.Step, op.Chunk}, false, t)
	if s.Fail > 0 && op.Type != oSave {
		*t = *s
		t.Fail--
		t.Q[best].Status = 3
		emit(Act{kExec, op.Type, op.Step, op.Chunk | 0x80}, true, t)
	}
}

func (m *Wire) exec(t *WS, i int) {
	op := &t.Q[i]
	op.Status = 2
	switch op.Type {
	case oFB:
		t.G[op.Step*wireChunks+op.Chunk]++
	case oOptim:
		code := uint8(11)
		n, dbl := 0, false
		for k, g := range t.G {
			if g > 0 {
				n++
				if uint8(k)/wireChunks != op.Step {
					n = 99
				}
			}
			if g > 1 {
				dbl = true
			}
		}
		switch {
		case n == 0:
		case dbl:
			code = 10
		case n == wireChunks:
			code = clean(op.Step)
		default:
			code = 9
		}
		if int(t.NW) < len(t.W) {
			t.W[t.NW] = code
		} else {
			t.Viol = uint8(wDouble)
		}
		t.NW++
		t.G = [4]uint8{}
	case oSave:
		t.Saved, t.NSaved, t.HasSave = t.W, op.Step+1, 1
		m.checkSave(t, op.Step+1)
	}
}
