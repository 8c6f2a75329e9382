// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// The reasons of a verdict, as conditions quote them.
const (
	reasonNoUsableCheckpoint = "NoUsableCheckpoint"
	reasonKeyRefused         = "KeyRefused"
	reasonModelUnknown       = "ModelUnknown"
	reasonUnsupported        = "UnsupportedByEndpoint"
	reasonOptimizerLost      = "OptimizerNotRestored"
	reasonTokenizer          = "TokenizerRejected"
	reasonSuperseded         = "Superseded"
)

// verdictOf says why the loop ended: the cause, and the mend where a person is needed.
func verdictOf(err error) contract.Verdict {
	var unsupported *unsupportedError
	var settings *trainee.SettingsError
	var rejected *trainee.RejectedError
	switch {
	case err == nil:
		return contract.Verdict{Cause: contract.CauseCompleted}
	case errors.Is(err, errDrained):
		return contract.Verdict{Cause: contract.CauseDrained, Message: "Stopped at a saved state, as asked"}
	case errors.Is(err, errFenced), errors.Is(err, store.ErrClaimed):
		return contract.Verdict{Cause: contract.CauseFenced, Reason: reasonSuperseded, Message: err.Error()}
	case errors.As(err, &unsupported):
		return contract.Verdict{Cause: contract.CauseConfigRejected, Reason: unsupported.reason, Message: unsupported.message}
	case errors.As(err, &settings):
		return contract.Verdict{Cause: contract.CauseConfigRejected, Reason: reasonUnsupported,
			Message: err.Error() + ": change the setting, or use an endpoint that supports it"}
	case errors.As(err, &rejected):
		return contract.Verdict{Cause: contract.CauseConfigRejected, Reason: reasonUnsupported,
			Message: err.Error() + ": the endpoint takes none of the groups; check the loss and the model"}
	case errors.Is(err, trainee.ErrColdOptimizer):
		return contract.Verdict{Cause: contract.CauseDataRejected, Reason: reasonOptimizerLost,
			Message: err.Error() + ": begin a new run from a checkpoint with initFrom.optimizer Reset, or with failurePolicy.requireOptimizer false"}
	case errors.Is(err, trainee.ErrNoUsableState):
		return contract.Verdict{Cause: contract.CauseDataRejected, Reason: reasonNoUsableCheckpoint,
			Message: err.Error() + ": begin a new run, from a checkpoint that still exists if there is one"}
	case client.CategoryFrom(err) == tinker.CategoryUnauthorized:
		return contract.Verdict{Cause: contract.CauseConfigRejected, Reason: reasonKeyRefused,
			Message: "The endpoint refuses the API key: put a valid one into the Secret and resume the run"}
	default:
		return contract.Verdict{Cause: contract.CauseCrashed, Message: err.Error()}
	}
}

// isTerminal says whether an error is not mended by opening another model.
func isTerminal(err error) bool {
	if errors.Is(err, ErrKilled) {
		return true
	}
	return verdictOf(err).Cause != contract.CauseCrashed
}
