// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"cmp"
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/opening"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// verdictOf returns why the loop ended: the cause, and the repair if the run requires intervention.
func verdictOf(err error) contract.Verdict {
	var unsupported *preflight.RejectedError
	var settings *opening.SettingsError
	code := failure.CodeOf(err)
	switch {
	case err == nil:
		return contract.Verdict{Cause: contract.CauseCompleted}
	case errors.Is(err, errDrained):
		return verdictOfDrain(err)
	case errors.Is(err, errNoProgress):
		return contract.Verdict{Cause: contract.CauseCrashed, Message: err.Error()}
	case isFenced(err):
		return contract.Verdict{Cause: contract.CauseFenced, Reason: problem.Superseded, Message: err.Error()}
	case errors.As(err, &unsupported):
		return contract.Verdict{Cause: causeOfRejection(code), Reason: unsupported.Code, Message: unsupported.Message}
	case errors.As(err, &settings):
		return contract.Verdict{Cause: contract.CauseConfigRejected, Reason: problem.SettingsDiffer,
			Message: settings.Error()}
	case isResumeRefused(err):
		return contract.Verdict{Cause: contract.CauseConfigRejected, Reason: problem.ResumeRefused,
			Message: err.Error()}
	case errors.Is(err, trainee.ErrColdOptimizer):
		return contract.Verdict{Cause: contract.CauseUpstream, Reason: problem.OptimizerNotRestored,
			Message: err.Error() + ": repair the endpoint, or set failurePolicy.requireOptimizerState to false"}
	case code == problem.Diverged:
		return contract.Verdict{Cause: contract.CauseDataRejected, Reason: problem.Diverged,
			Message: "Training has diverged: " + err.Error() +
				": begin a new run from an earlier checkpoint, with a lower learning rate"}
	case code == problem.Untrainable:
		return contract.Verdict{Cause: contract.CauseDataRejected, Reason: code,
			Message: err.Error() + ": correct what the groups are refused for, and raise spec.retryGeneration; prompts " +
				"that are longer than the model's context have to be shortened, or left out by limits.promptTokens"}
	case code == problem.NoUsableCheckpoint:
		return contract.Verdict{Cause: contract.CauseDataRejected, Reason: problem.NoUsableCheckpoint,
			Message: err.Error() + ": begin a new run, from a checkpoint that still exists if there is one"}
	default:
		return verdictOfRefusal(code, err)
	}
}

// verdictOfRefusal returns the verdict of a loop that ended because the endpoint refuses or cannot read something. The
// manager adds the repair from the row of the code.
func verdictOfRefusal(code problem.Code, err error) contract.Verdict {
	switch {
	case code == problem.UnsupportedByEndpoint:
		return contract.Verdict{Cause: contract.CauseConfigRejected, Reason: code,
			Message: err.Error() + ": change the setting, or use an endpoint that supports it"}
	case failure.Awaited(code):
		return contract.Verdict{Cause: contract.CauseUpstream, Reason: code,
			Message: cmp.Or(client.EvidenceOf(err), err.Error())}
	default:
		return contract.Verdict{Cause: contract.CauseCrashed, Message: err.Error()}
	}
}

// causeOfRejection returns the cause of an attempt that ends because the endpoint lacks a feature. The run waits if the
// feature can be added at the server or replaced in the spec.
func causeOfRejection(code problem.Code) contract.Cause {
	if failure.Awaited(code) {
		return contract.CauseUpstream
	}
	return contract.CauseConfigRejected
}

// isResumeRefused reports whether the run that resumeFrom names cannot be continued.
func isResumeRefused(err error) bool {
	_, ok := errors.AsType[*opening.ResumeError](err)
	return ok
}

// isFenced reports whether a higher attempt, or another process of this one, has taken over.
func isFenced(err error) bool {
	return errors.Is(err, artifacts.ErrFenced) || errors.Is(err, artifacts.ErrClaimed)
}

// isFinal reports whether opening another model does not help. Settings and data that a run has trained with before
// cannot be at fault, whatever the endpoint says.
func isFinal(err error, trained bool) bool {
	if errors.Is(err, ErrKilled) {
		return true
	}
	if code := failure.CodeOf(err); trained && (code == problem.SettingsRefused || code == problem.DataRefused) {
		return false
	}
	return verdictOf(err).Cause != contract.CauseCrashed
}
