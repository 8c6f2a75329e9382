// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

var opName = map[uint8]string{oFB: "forward_backward", oOptim: "optim_step", oSave: "save_state"}

// Label implements Model.
func (m *Wire) Label(a Act, from, to *WS) string {
	op := func() string {
		n := fmt.Sprintf("%s(step %d)", opName[a.A], a.B)
		if a.A == oFB {
			n = fmt.Sprintf("forward_backward(step %d, chunk %d)", a.B, a.C&0x3f)
		}
		return n
	}
	switch a.Kind {
	case kPost:
		x := ""
		if a.C&0x80 != 0 {
			x = "; it arrives, the ANSWER IS LOST"
		} else if a.C&0x40 != 0 {
			x = "; it NEVER ARRIVES"
		}
		return fmt.Sprintf("client posts seq %d %s%s", from.Seq, op(), x)
	case kRepost:
		if a.C == 1 {
			return "client gives the chunk up and keeps its sequence number"
		}
		return fmt.Sprintf("client posts %s again, seq %d", opName[a.A], to.Seq-1)
	case kExec:
		if a.C&0x80 != 0 {
			return "server: " + op() + " FAILS"
		}
		return "server does " + op()
	case kReply:
		return "client gets the reply of " + op()
	case kAbandon:
		return []string{"client finds its model missing, loads the newest state into a new one",
			"server REFUSES the chunk (4xx)", "a REPLY IS LOST (410): client throws the model away",
			"client sees the failure", "client asks for its reply and gets ANOTHER client's, whose request has the same id"}[a.A]
	case kRestart:
		return "server RESTARTS"
	case kDone:
		return "client reports the run complete"
	case kPhase:
		return "all replies of the step are clean"
	}
	return "?"
}
