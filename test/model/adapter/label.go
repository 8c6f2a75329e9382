// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/test/model/engine"
)

// Label implements engine.Model.
func (m *Model) Label(act engine.Act, from, to *State) string {
	switch act.Kind {
	case leased, posted, sampled, refused, submitted, gaveUp, workerLost, workerReturned:
		return fmt.Sprintf("worker %d %s", act.A, labelWorker(act))
	case orphanSampled:
		return fmt.Sprintf("server draws a sample of version %d in model %d for which nobody waits", act.B, act.A)
	case modelReplaced:
		return fmt.Sprintf("learner loads version %d into model %d, as the one before may still be sampled", to.Saved, act.A)
	case passDone:
		return fmt.Sprintf("server executes forward_backward of step %d", from.Version+1)
	case stepDone:
		return fmt.Sprintf("server executes optim_step of step %d", from.Version+1)
	case versionAnnounced:
		return fmt.Sprintf("server saves the sampler weights of version %d, learner announces it", act.A)
	case stateSaved:
		return fmt.Sprintf("server saves the state of version %d", act.A)
	}
	return fmt.Sprintf("learner CRASHES, the next one loads version %d into model %d", to.Version, to.Model)
}

func labelWorker(act engine.Act) string {
	switch act.Kind {
	case leased:
		return fmt.Sprintf("is leased the group of version %d in model %d", act.C, act.B)
	case posted:
		return "posts a sample"
	case sampled:
		return fmt.Sprintf("has a sample of version %d drawn in model %d", act.C, act.B)
	case refused:
		return "is refused: the model is not loaded"
	case submitted:
		return fmt.Sprintf("submits its group of version %d", act.B)
	case gaveUp:
		return "GIVES UP a sample that is not drawn yet"
	case workerLost:
		return "is LOST to the learner, and continues"
	}
	return "returns without its group"
}
