// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/test/model/engine"
)

// The kinds of transitions.
const (
	submitted uint8 = iota
	submittedAgain
	executed
	replied
	abandoned
	serverRestart
	reported
	repliesClean
)

// Why the client abandons its model.
const (
	modelMissing uint8 = iota
	chunkRefused
	replyLost
	failureSeen
	otherReply
)

// These are added to the chunk in the label of a transition.
const (
	neverArrives   = 0x40
	losesAnswer    = 0x80
	operationFails = 0x80
)

// Label implements engine.Model.
func (m *Model) Label(act engine.Act, from, to *State) string {
	switch act.Kind {
	case submitted:
		return fmt.Sprintf("client posts seq %d %s%s", from.Number, operation(act), submitFault(act))
	case submittedAgain:
		if act.C == 1 {
			return "client gives the chunk up and keeps its sequence number"
		}
		return fmt.Sprintf("client posts %s again, seq %d", operationNames[act.A], to.Number-1)
	case executed:
		if act.C&operationFails != 0 {
			return "server: " + operation(act) + " FAILS"
		}
		return "server does " + operation(act)
	case replied:
		return "client gets the reply of " + operation(act)
	case abandoned:
		return []string{"client finds its model missing, loads the newest state into a new one",
			"server REFUSES the chunk (4xx)", "a REPLY IS LOST (410): client throws the model away",
			"client sees the failure",
			"client asks for its reply and gets ANOTHER client's, whose request has the same id"}[act.A]
	case serverRestart:
		return "server RESTARTS"
	case reported:
		return "client reports the run complete"
	case repliesClean:
		return "all replies of the step are clean"
	}
	return "?"
}

// operation names the operation of a transition.
func operation(act engine.Act) string {
	if act.A == forwardBackward {
		return fmt.Sprintf("forward_backward(step %d, chunk %d)", act.B, act.C&0x3f)
	}
	return fmt.Sprintf("%s(step %d)", operationNames[act.A], act.B)
}

// submitFault names the fault of a submit.
func submitFault(act engine.Act) string {
	switch {
	case act.C&losesAnswer != 0:
		return "; it arrives, the ANSWER IS LOST"
	case act.C&neverArrives != 0:
		return "; it NEVER ARRIVES"
	}
	return ""
}
