// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/heartbeat"
	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/learner/weights"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
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
func verdictOf(err error) heartbeat.Verdict {
	var unsupported *unsupportedError
	var settings *weights.SettingsError
	var rejected *weights.RejectedError
	switch {
	case err == nil:
		return heartbeat.Verdict{Cause: heartbeat.CauseCompleted}
	case errors.Is(err, errDrained):
		return heartbeat.Verdict{Cause: heartbeat.CauseDrained, Message: "Stopped at a saved state, as asked"}
	case errors.Is(err, errFenced), errors.Is(err, store.ErrClaimed):
		return heartbeat.Verdict{Cause: heartbeat.CauseFenced, Reason: reasonSuperseded, Message: err.Error()}
	case errors.As(err, &unsupported):
		return heartbeat.Verdict{Cause: heartbeat.CauseConfigRejected, Reason: unsupported.reason, Message: unsupported.message}
	case errors.As(err, &settings):
		return heartbeat.Verdict{Cause: heartbeat.CauseConfigRejected, Reason: reasonUnsupported,
			Message: err.Error() + ": change the setting, or use an endpoint that supports it"}
	case errors.As(err, &rejected):
		return heartbeat.Verdict{Cause: heartbeat.CauseConfigRejected, Reason: reasonUnsupported,
			Message: err.Error() + ": the endpoint takes none of the groups; check the loss and the model"}
	case errors.Is(err, weights.ErrColdOptimizer):
		return heartbeat.Verdict{Cause: heartbeat.CauseDataRejected, Reason: reasonOptimizerLost,
			Message: err.Error() + ": begin a new run from a checkpoint with initFrom.optimizer Reset, or with failurePolicy.requireOptimizer false"}
	case errors.Is(err, weights.ErrNoUsableState):
		return heartbeat.Verdict{Cause: heartbeat.CauseDataRejected, Reason: reasonNoUsableCheckpoint,
			Message: err.Error() + ": begin a new run, from a checkpoint that still exists if there is one"}
	case tinker.CategoryFrom(err) == tinker.CategoryUnauthorized:
		return heartbeat.Verdict{Cause: heartbeat.CauseConfigRejected, Reason: reasonKeyRefused,
			Message: "The endpoint refuses the API key: put a valid one into the Secret and resume the run"}
	default:
		return heartbeat.Verdict{Cause: heartbeat.CauseCrashed, Message: err.Error()}
	}
}

// isTerminal says whether an error is not mended by opening another model.
func isTerminal(err error) bool {
	if errors.Is(err, ErrKilled) {
		return true
	}
	return verdictOf(err).Cause != heartbeat.CauseCrashed
}
