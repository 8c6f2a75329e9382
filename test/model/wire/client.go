// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wire

// client submits the next operation, or collects a reply.
func (m *Model) client(x *successors) {
	s := x.From
	switch {
	case s.Unanswered != 0:
		m.submitAgain(x)
		return
	case m.maySubmit(s):
		m.submit(x, operationAt(s, s.Position))
	}
	if s.Phase == saving {
		m.submit(x, Operation{Type: saveState, Step: s.Step})
	}
	for position := range s.Position {
		if s.Got&(1<<position) == 0 {
			m.collect(x, position)
		}
	}
	if s.Phase == awaitingSave || s.EarlierSave == 1 {
		m.collect(x, saveAt)
	}
	last := m.last()
	all := uint8(1)<<(last+1) - 1
	if s.EarlierSave == 0 && s.Phase == submitting && s.Position == last+1 && s.Got == all {
		t := x.Copy()
		if m.config.Piped {
			t.beginStep()
		} else {
			t.Phase = saving
		}
		x.Step(repliesClean)
	}
}

// last is the position of the last operation that is submitted without waiting.
func (m *Model) last() uint8 {
	if m.config.Piped {
		return saveAt
	}
	return optimAt
}

// maySubmit reports whether the client may submit the next operation of its step.
func (m *Model) maySubmit(s *State) bool {
	const all = 1<<chunks - 1
	if m.config.Await && s.Position == optimAt && s.Got&all != all {
		return false
	}
	return s.Phase == submitting && s.Position <= m.last() && s.Step < steps
}

// operationAt is an operation of the client's step: chunks, then optim_step, then the save.
func operationAt(s *State, position uint8) Operation {
	switch {
	case position < chunks:
		return Operation{Type: forwardBackward, Step: s.Step, Chunk: position}
	case position == optimAt:
		return Operation{Type: optimStep, Step: s.Step}
	}
	return Operation{Type: saveState, Step: s.Step}
}

// beginStep begins the next step.
func (s *State) beginStep() {
	s.Step++
	s.Position, s.Got, s.Phase, s.Index = 0, 0, submitting, [4]uint8{}
}

// abandon throws the model away, and loads the newest state into a new one.
func (s *State) abandon() {
	s.Model++
	s.Alive = 1
	s.forget()
	s.Update, s.Updates = [steps]uint8{}, 0
	if s.HasSave == 1 {
		s.Update, s.Updates = s.Saved, s.SavedSteps
	}
	s.Step = s.SavedSteps
	s.Position, s.Number, s.Phase, s.Got, s.Unanswered, s.EarlierSave, s.Index = 0, 1, submitting, 0, 0, 0, [4]uint8{}
}

// abandonModel emits that the client abandons its model.
func abandonModel(x *successors, why uint8) {
	x.Copy().abandon()
	x.Step(abandoned, why)
}

// submit submits an operation, whose answer may be lost.
func (m *Model) submit(x *successors, op Operation) {
	s := x.From
	if s.Alive == 0 {
		abandonModel(x, modelMissing)
		return
	}
	t := x.Copy()
	index := m.arrive(t, op, t.Number)
	if index == noAnswer {
		return
	}
	m.answer(t, op, index)
	x.Step(submitted, op.Type, op.Step, op.Chunk)
	if s.LostAnswers > 0 {
		t = x.Copy()
		t.LostAnswers--
		m.arrive(t, op, t.Number)
		t.Unanswered = answerLost
		x.Fault(submitted, op.Type, op.Step, op.Chunk|losesAnswer)
	}
	if s.LostSubmits > 0 {
		t = x.Copy()
		t.LostSubmits--
		t.Unanswered = submitLost
		x.Fault(submitted, op.Type, op.Step, op.Chunk|neverArrives)
	}
	if s.Refusals > 0 && op.Type == forwardBackward {
		m.refuse(x)
	}
}

// answer lets the client continue after an operation whose submit was answered.
func (m *Model) answer(t *State, op Operation, index uint8) {
	if !t.Queue[index].same(op) {
		t.violate(wrongReply)
	}
	t.Unanswered = 0
	t.Index[t.position()] = index
	t.Number++
	switch {
	case t.Phase != saving:
		t.Position++
	case m.config.Ahead:
		t.Step++
		t.Position, t.Got, t.Phase, t.EarlierSave = 0, 0, submitting, 1
	default:
		t.Phase = awaitingSave
	}
}

// position returns the position of the current operation.
func (s *State) position() uint8 {
	if s.Phase == saving {
		return saveAt
	}
	return s.Position
}

// refuse lets the server refuse a chunk.
func (m *Model) refuse(x *successors) {
	t := x.Copy()
	t.Refusals--
	if m.config.ReuseNumber {
		// The client takes the refusal for a lost datum and continues with the next operation under the same number.
		t.Index[t.position()] = refused
		t.Got |= 1 << t.position()
		t.Position++
	} else {
		t.abandon()
	}
	x.Fault(abandoned, chunkRefused)
}

// submitAgain repeats the submit of an operation whose answer is missing.
func (m *Model) submitAgain(x *successors) {
	s := x.From
	op := operationAt(s, s.position())
	if s.Alive == 0 {
		abandonModel(x, modelMissing)
		return
	}
	t := x.Copy()
	if m.config.NewNumber {
		t.Number++
	}
	if m.config.ReuseNumber && op.Type == forwardBackward && s.Unanswered == answerLost {
		// The client gives the operation up as refused, and keeps its number for the next.
		t.Unanswered = 0
		t.Got |= 1 << s.Position
		t.Position++
		x.Step(submittedAgain, op.Type, op.Step, 1)
		return
	}
	index := m.arrive(t, op, t.Number)
	if index == noAnswer {
		return
	}
	m.answer(t, op, index)
	x.Step(submittedAgain, op.Type, op.Step)
}

// collect asks for the reply of an operation.
func (m *Model) collect(x *successors, position uint8) {
	s := x.From
	if s.Alive == 0 && m.config.ReuseRequestIDs { // Another client's request has this id now.
		x.Copy().collected(position)
		x.Step(abandoned, otherReply)
	}
	if s.Alive == 0 || s.Index[position] >= s.Queued { // The request is not known: the model is missing.
		abandonModel(x, modelMissing)
		return
	}
	op := s.Queue[s.Index[position]]
	if op.Status >= succeeded && s.LostReplies > 0 {
		t := x.Copy()
		t.LostReplies--
		t.abandon()
		x.Fault(abandoned, replyLost)
	}
	switch op.Status {
	case succeeded:
		x.Copy().collected(position)
		x.Step(replied, op.Type, op.Step, op.Chunk)
	case failed:
		t := x.Copy()
		if m.config.Continue && op.Type == forwardBackward && position < chunks {
			t.Got |= 1 << position // The client continues without it.
		} else {
			t.abandon()
		}
		x.Step(abandoned, failureSeen)
	}
}

// collected notes a clean reply.
func (s *State) collected(position uint8) {
	switch {
	case s.EarlierSave == 1 && position == saveAt:
		s.EarlierSave = 0
	case s.Phase == awaitingSave && position == saveAt:
		s.beginStep()
	default:
		s.Got |= 1 << position
	}
}
