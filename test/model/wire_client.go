// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

func (m *Wire) client(s, t *WS, emit func(a Act, fault bool, t *WS)) {
	last := uint8(wireChunks) // index of optim
	if m.c.Piped {
		last++
	}
	// Submit the next op.
	canSubmit := s.Phase == 0 && s.Pos <= last && s.Step < wireSteps
	if m.c.Await && s.Pos == wireChunks && s.Got&((1<<wireChunks)-1) != (1<<wireChunks)-1 {
		canSubmit = false
	}
	if s.Unk != 0 {
		m.repost(s, t, emit)
		canSubmit = false
	}
	if canSubmit {
		m.post(s, t, m.opAt(s, s.Pos), emit)
	}
	if s.Phase == 2 && s.Unk == 0 {
		m.post(s, t, WOp{Type: oSave, Step: s.Step}, emit)
	}
	if s.Unk != 0 {
		return
	}
	// Collect replies.
	for p := uint8(0); p < s.Pos; p++ {
		if s.Got&(1<<p) != 0 {
			continue
		}
		m.collect(s, t, p, emit)
	}
	if s.Phase == 3 || s.Prev == 1 {
		m.collect(s, t, 3, emit)
	}
	all := uint8(1)<<(last+1) - 1
	if s.Prev == 0 && s.Phase == 0 && s.Pos == last+1 && s.Got == all {
		*t = *s
		if m.c.Piped {
			t.Step++
			t.Pos, t.Got, t.Idx = 0, 0, [4]uint8{}
		} else {
			t.Phase = 2
		}
		emit(Act{kPhase, 0, 0, 0}, false, t)
	}
}

func (m *Wire) post(s, t *WS, op WOp, emit func(a Act, fault bool, t *WS)) {
	pos := s.Pos
	if s.Phase == 2 {
		pos = 3
	}
	advance := func(t *WS, idx uint8) {
		t.Idx[pos] = idx
		t.Seq++
		m.posted(t)
	}
	if s.Alive == 0 {
		*t = *s
		m.abandon(t)
		emit(Act{kAbandon, 0, 0, 0}, false, t)
		return
	}
	*t = *s
	idx := m.arrive(t, op, t.Seq)
	if idx == 255 {
		return
	}
	if t.Q[idx].Type != op.Type || t.Q[idx].Chunk != op.Chunk || t.Q[idx].Step != op.Step {
		t.Viol = uint8(wWrongReply)
	}
	advance(t, idx)
	emit(Act{kPost, op.Type, op.Step, op.Chunk}, false, t)
	if s.Lost > 0 {
		*t = *s
		t.Lost--
		m.arrive(t, op, t.Seq)
		t.Unk = 1
		emit(Act{kPost, op.Type, op.Step, op.Chunk | 0x80}, true, t)
	}
	if s.Never > 0 {
		*t = *s
		t.Never--
		t.Unk = 2
		emit(Act{kPost, op.Type, op.Step, op.Chunk | 0x40}, true, t)
	}
	if s.Reject > 0 && op.Type == oFB {
		*t = *s
		t.Reject--
		if m.c.ReuseSeq {
			// takes the refusal for a lost datum and continues with the next op under the same number
			t.Idx[pos] = 254
			t.Got |= 1 << pos
			t.Pos++
		} else {
			m.abandon(t)
		}
		emit(Act{kAbandon, 1, 0, 0}, true, t)
	}
}

func (m *Wire) posted(t *WS) {
	switch {
	case t.Phase != 2:
		t.Pos++
	case m.c.Ahead:
		t.Step++
		t.Pos, t.Got, t.Phase, t.Prev = 0, 0, 0, 1
	default:
		t.Phase = 3
	}
}

func (m *Wire) repost(s, t *WS, emit func(a Act, fault bool, t *WS)) {
	pos := s.Pos
	op := m.opAt(s, s.Pos)
	if s.Phase == 2 {
		pos, op = 3, WOp{Type: oSave, Step: s.Step}
	}
	if s.Alive == 0 {
		*t = *s
		m.abandon(t)
		emit(Act{kAbandon, 0, 0, 0}, false, t)
		return
	}
	*t = *s
	if m.c.NewSeq {
		t.Seq++
	}
	if m.c.ReuseSeq && op.Type == oFB && s.Unk == 1 {
		// gives the op up as refused, keeps its number for the next
		t.Unk = 0
		t.Got |= 1 << pos
		t.Pos++
		emit(Act{kRepost, op.Type, op.Step, 1}, false, t)
		return
	}
	idx := m.arrive(t, op, t.Seq)
	if idx == 255 {
		return
	}
	if t.Q[idx].Type != op.Type || t.Q[idx].Chunk != op.Chunk || t.Q[idx].Step != op.Step {
		t.Viol = uint8(wWrongReply)
	}
	t.Unk = 0
	t.Idx[pos] = idx
	t.Seq++
	m.posted(t)
	emit(Act{kRepost, op.Type, op.Step, 0}, false, t)
}

func (m *Wire) collect(s, t *WS, p uint8, emit func(a Act, fault bool, t *WS)) {
	if s.Alive == 0 && m.c.RidReuse { // another client's request has this id now
		*t = *s
		switch {
		case s.Prev == 1 && p == 3:
			t.Prev = 0
		case s.Phase == 3 && p == 3:
			t.Step++
			t.Pos, t.Got, t.Phase, t.Idx = 0, 0, 0, [4]uint8{}
		default:
			t.Got |= 1 << p
		}
		emit(Act{kAbandon, 4, 0, 0}, false, t)
	}
	if s.Alive == 0 || s.Idx[p] >= s.NQ { // unknown request: the model is missing
		*t = *s
		m.abandon(t)
		emit(Act{kAbandon, 0, 0, 0}, false, t)
		return
	}
	op := s.Q[s.Idx[p]]
	if op.Status >= 2 && s.Gone > 0 {
		*t = *s
		t.Gone--
		m.abandon(t)
		emit(Act{kAbandon, 2, 0, 0}, true, t)
	}
	switch op.Status {
	case 2:
		*t = *s
		if s.Prev == 1 && p == 3 {
			t.Prev = 0
		} else if s.Phase == 3 && p == 3 {
			t.Step++
			t.Pos, t.Got, t.Phase, t.Idx = 0, 0, 0, [4]uint8{}
		} else {
			t.Got |= 1 << p
		}
		emit(Act{kReply, op.Type, op.Step, op.Chunk}, false, t)
	case 3:
		*t = *s
		if m.c.Go && op.Type == oFB && p < wireChunks {
			t.Got |= 1 << p // continues without it
		} else {
			m.abandon(t)
		}
		emit(Act{kAbandon, 3, 0, 0}, false, t)
	}
}
