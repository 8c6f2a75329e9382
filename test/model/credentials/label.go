// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/test/model/engine"
)

// Label implements engine.Model.
func (m *Model) Label(act engine.Act, _, _ *State) string {
	switch act.Kind {
	case attemptStarted:
		return fmt.Sprintf("manager starts attempt %d", act.A) + []string{"", " while the one before still runs"}[act.B]
	case learnerCrashed:
		return fmt.Sprintf("learner %d CRASHES", act.A)
	case learnerDone:
		return fmt.Sprintf("learner %d completes the run", act.A)
	case heartbeatSent:
		return fmt.Sprintf("manager's heartbeat names attempt %d: learner %d is fenced", act.B, act.A)
	case helloAnswered:
		return fmt.Sprintf("worker says Hello to learner %d, which answers with its signature", act.A)
	case attemptReported:
		return fmt.Sprintf("worker reports attempt %d: learner %d is fenced", act.B, act.A)
	case signatureStolen:
		return fmt.Sprintf("ATTACKER receives the signature of learner %d", act.A)
	case reportForged:
		return fmt.Sprintf("ATTACKER reports attempt %d: learner %d is fenced", act.B, act.A)
	case heartbeatForged:
		return fmt.Sprintf("ATTACKER sends a heartbeat of attempt %d: learner %d is fenced", act.B, act.A)
	case learnerImitated:
		return fmt.Sprintf("ATTACKER answers the worker as learner %d", act.A)
	case strangerSaidHello:
		return fmt.Sprintf("ATTACKER says Hello to learner %d with the token of another run", act.A)
	}
	return "?"
}
