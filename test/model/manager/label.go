// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/test/model/engine"
)

// Label implements engine.Model.
func (m *Model) Label(act engine.Act, from, _ *State) string {
	switch act.Kind {
	case statusCached:
		return fmt.Sprintf("manager's cache sees status: attempt %d", from.Attempt)
	case jobCached:
		return fmt.Sprintf("manager's cache sees Job %d: %s", act.A, jobNames[from.Job[act.A]])
	case attemptWritten:
		why := []string{"first", "Job missing", "attempt ended", "same number again", "more steps"}[act.B]
		return fmt.Sprintf("manager writes attempt %d (%s)", act.A, why)
	case jobCreated:
		return fmt.Sprintf("manager creates Job %d", act.A)
	case lateCreate:
		return fmt.Sprintf("a dead manager's create of Job %d arrives", act.A)
	case managerRestart, endWritten, suspendedByOther, resumedByOther, stepsRaised:
		return otherLabel(act)
	case lateWrite:
		return fmt.Sprintf("a dead manager's status write (attempt %d) arrives", act.A)
	case learnerCrash:
		return fmt.Sprintf("learner %d CRASHES", act.A)
	case learnerFinished:
		return fmt.Sprintf("learner %d commits the final step, exits 0 with its verdict", act.A)
	case completeWritten:
		return "manager writes Complete"
	case jobRemoved:
		return fmt.Sprintf("Job %d is DELETED by someone", act.A)
	case nodeLost:
		return fmt.Sprintf("node of learner %d is LOST: Job failed, its process continues", act.A)
	case learnerFenced:
		return fmt.Sprintf("learner %d is fenced", act.A)
	}
	return "?"
}

// otherLabel labels restarts of the manager and actions of another controller.
func otherLabel(act engine.Act) string {
	switch act.Kind {
	case managerRestart:
		return "manager RESTARTS" + []string{"", " before it sent its create", " with its status write in flight"}[act.B]
	case stepsRaised:
		return "the spec is given MORE STEPS"
	case endWritten:
		return fmt.Sprintf("manager writes that attempt %d has ended", act.A)
	case suspendedByOther:
		return fmt.Sprintf("Job %d is SUSPENDED by another controller", act.A)
	case resumedByOther:
		return fmt.Sprintf("Job %d is resumed by the other controller, and makes a second pod", act.A)
	}
	return "?"
}
