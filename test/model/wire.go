// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

// The wire model opens up one learner's training: chunks, sequence numbers, submits whose answer is
// lost, replies that are lost, chunks that fail, a server that restarts. Content is kept as counts:
// how often each step's chunks entered each optimizer update.

const (
	wireSteps  = 2
	wireChunks = 2
)

// WCfg is one configuration of the wire model.
type WCfg struct {
	Dedupe    bool // server: the same (model, seq) again is the same request
	ByArrival bool // server executes by arrival, not by sequence number
	Resurrect bool // server: after a restart the model is back as last saved, gradient and seq table empty
	RidReuse  bool // server: request ids start over after a restart
	Piped     bool // client: save submitted behind optim_step without waiting
	Await     bool // client: optim_step submitted only after every forward_backward reply is clean
	NewSeq    bool // client: a submit whose answer is lost is sent again under a new sequence number
	ReuseSeq  bool // client: the sequence number of a refused submit is given to the next op
	Go        bool // client: continues with the model after an unclean forward_backward (sends the chunk again)
	Ahead     bool // client: the next step is submitted right behind the save, before its reply
	Lost      int  // submit answers lost
	Never     int  // submits that never arrive
	Reject    int  // chunk submits refused with 4xx
	Fail      int  // ops that fail on the server
	Gone      int  // replies lost for good (410)
	Restart   int
}

// Op types.
const (
	oFB uint8 = iota + 1
	oOptim
	oSave
)

// WOp is a submitted op at the server. Status: 0 none, 1 queued, 2 done, 3 failed.
type WOp struct{ Type, Step, Chunk, Status, Seq uint8 }

// WS is a state of the wire model.
type WS struct {
	Model   uint8    // incarnation
	Alive   uint8    // server has the model
	W       [2]uint8 // update u (0..): content code of that update; 0 = not applied
	NW      uint8    // updates applied
	G       [4]uint8 // accumulated: count of (step, chunk)
	Q       [9]WOp   // server's ops of this model in arrival order
	NQ      uint8
	Seen    [14]uint8 // seq -> 1+index in Q, when deduplicating
	Saved   [2]uint8  // newest saved state: content of its updates
	NSaved  uint8
	HasSave uint8
	// client
	Step, Pos, Seq, Phase uint8 // Pos: ops of this step submitted; Phase 0 submit 1 collect 2 save 3 collect save
	Got                   uint8 // replies of this step collected, bitmask by op
	Unk                   uint8 // the submit in hand is unanswered: 1 lost after arrival, 2 never arrived
	Idx                   [4]uint8
	Lost, Never, Reject   uint8
	Fail, Gone, Restart   uint8
	Prev                  uint8 // the save of the step before has no reply yet
	Viol, DoneF           uint8
}

const (
	wDouble Code = iota + 1
	wPoisonSaved
	wSkipped
	wWrongReply
)

var wireCodes = map[Code]string{
	wDouble:      "I1 an update or a gradient is applied twice",
	wPoisonSaved: "I1 a state is saved that holds a partial gradient",
	wSkipped:     "I1 a step is reported whose update was not applied",
	wWrongReply:  "I1 a reply of another op is taken for this one's",
}

// Wire is the model.
type Wire struct{ c WCfg }

// Init implements Model.
func (m *Wire) Init() WS {
	return WS{Alive: 1, Seq: 1, Lost: uint8(m.c.Lost), Never: uint8(m.c.Never), Reject: uint8(m.c.Reject),
		Fail: uint8(m.c.Fail), Gone: uint8(m.c.Gone), Restart: uint8(m.c.Restart)}
}

// Check implements Model.
func (m *Wire) Check(s *WS) Code { return Code(s.Viol) }

// Done implements Model.
func (m *Wire) Done(s *WS) bool { return s.DoneF == 1 }

// CodeName implements Model.
func (m *Wire) CodeName(c Code) string { return wireCodes[c] }

// content codes: 1+step = clean update of that step; 9 partial or mixed; 10 doubled; 11 empty.
func clean(step uint8) uint8 { return 1 + step }

func (m *Wire) checkSave(s *WS, n uint8) {
	for u := uint8(0); u < n; u++ {
		switch {
		case u >= s.NW || s.W[u] == 11:
			s.Viol = uint8(wSkipped)
		case s.W[u] == 10:
			s.Viol = uint8(wDouble)
		case s.W[u] != clean(u):
			s.Viol = uint8(wPoisonSaved)
		}
	}
	if s.NW > n {
		s.Viol = uint8(wDouble)
	}
}

const (
	kPost uint8 = iota
	kRepost
	kExec
	kReply
	kAbandon
	kRestart
	kDone
	kPhase
)

func (m *Wire) abandon(s *WS) {
	s.Model++
	s.Alive = 1
	s.Q, s.NQ, s.Seen, s.G = [9]WOp{}, 0, [14]uint8{}, [4]uint8{}
	s.W, s.NW = [2]uint8{}, 0
	if s.HasSave == 1 {
		s.W, s.NW = s.Saved, s.NSaved
	}
	s.Step = s.NSaved
	s.Pos, s.Seq, s.Phase, s.Got, s.Unk, s.Prev, s.Idx = 0, 1, 0, 0, 0, 0, [4]uint8{}
}

// ops of a step: chunks, then optim, then (piped) save.
func (m *Wire) opAt(s *WS, pos uint8) WOp {
	switch {
	case pos < wireChunks:
		return WOp{Type: oFB, Step: s.Step, Chunk: pos}
	case pos == wireChunks:
		return WOp{Type: oOptim, Step: s.Step}
	}
	return WOp{Type: oSave, Step: s.Step}
}

func (m *Wire) arrive(s *WS, op WOp, seq uint8) (idx uint8) {
	op.Seq, op.Status = seq, 1
	if m.c.Dedupe && s.Seen[seq] != 0 {
		return s.Seen[seq] - 1
	}
	if int(s.NQ) == len(s.Q) {
		return 255
	}
	s.Q[s.NQ] = op
	s.Seen[seq] = s.NQ + 1
	s.NQ++
	return s.NQ - 1
}

// Next implements Model.
func (m *Wire) Next(s *WS, emit func(a Act, fault bool, t *WS)) {
	if s.DoneF == 1 {
		return
	}
	var t WS
	m.server(s, &t, emit)
	if s.Step == wireSteps && s.Prev == 0 {
		t = *s
		t.DoneF = 1
		if t.NSaved < wireSteps {
			t.Viol = uint8(wSkipped)
		}
		emit(Act{kDone, 0, 0, 0}, false, &t)
		return
	}
	m.client(s, &t, emit)
}
