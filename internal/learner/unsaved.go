// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// unsavedError says that a learner that stopped has not saved all that it has trained.
type unsavedError struct {
	// saved is the step of the newest saved state. The steps after it, up to trained, are made again.
	saved, trained int64
	// why is the reason for which the newest version could not be saved; nil if only an incomplete step is lost.
	why error
}

func (e *unsavedError) Error() string {
	lost := fmt.Sprintf("step %d is not saved and is", e.trained)
	if first := e.saved + 1; first < e.trained {
		lost = fmt.Sprintf("steps %d to %d are not saved and are", first, e.trained)
	}
	message := fmt.Sprintf("the newest saved state is that of step %d; %s made again", e.saved, lost)
	if e.why != nil {
		message += ": " + e.why.Error()
	}
	return message
}

// unsaved returns the trained steps that a draining learner has not saved; nil if there are none. why is the reason for
// which the last version could not be saved, if any.
func (s *loopState) unsaved(why error) *unsavedError {
	u := &unsavedError{saved: max(s.saved.Step, s.stored), trained: max(s.at.Step, s.submitted), why: why}
	if u.trained <= u.saved {
		return nil
	}
	return u
}

// withUnsaved adds the unsaved steps to the reason for which a learner stopped.
func withUnsaved(reason error, unsaved *unsavedError) error {
	if unsaved == nil {
		return reason
	}
	return fmt.Errorf("%w: %w", reason, unsaved)
}

// verdictOfDrain returns the verdict of a learner that stopped because it was asked to, or because of its budget.
func verdictOfDrain(err error) contract.Verdict {
	verdict := contract.Verdict{Cause: contract.CauseDrained, Message: "Stopped at a saved state, as asked"}
	unsaved, isUnsaved := errors.AsType[*unsavedError](err)
	if errors.Is(err, errBudget) {
		verdict.Reason, verdict.Message = problem.BudgetReached, "Stopped at a saved state: "+err.Error()
		if isUnsaved {
			verdict.Message = "Stopped: " + err.Error()
		}
		return verdict
	}
	if isUnsaved {
		verdict.Message = "Stopped, as asked: " + unsaved.Error()
	}
	return verdict
}
