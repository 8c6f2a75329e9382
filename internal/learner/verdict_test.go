// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

func TestVerdictOf(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("doing something: %w", err) }
	cases := map[string]struct {
		err    error
		cause  contract.Cause
		reason problem.Code
	}{
		"a diverged run ends with a remedy": {failure.New(problem.Diverged, errors.New("loss:sum of step 3 is NaN"),
			"training"),
			contract.CauseDataRejected, "Diverged"},
		"a complete run is Completed":                       {nil, contract.CauseCompleted, ""},
		"a drained learner may be resumed":                  {wrap(errDrained), contract.CauseDrained, ""},
		"a superseded learner is Fenced":                    {wrap(artifacts.ErrFenced), contract.CauseFenced, "Superseded"},
		"an attempt that another process claimed is Fenced": {wrap(artifacts.ErrClaimed), contract.CauseFenced, "Superseded"},
		"lost states are rejected data": {wrap(failure.New(problem.NoUsableCheckpoint, errors.New("x"),
			"loading")), contract.CauseDataRejected, "NoUsableCheckpoint"},
		"states without the optimizer are waited for": {failure.New(problem.NoUsableCheckpoint, trainee.ErrColdOptimizer,
			"loading"), contract.CauseUpstream, "OptimizerNotRestored"},
		"a refused key ends the attempt, not the run": {wrap(&client.Error{Category: tinker.CategoryUnauthorized}),
			contract.CauseUpstream, "KeyRefused"},
		"refused settings are waited for": {wrap(failure.New(problem.SettingsRefused, errors.New("x"),
			"stepping")), contract.CauseUpstream, "SettingsRefused"},
		"data that are refused whole are waited for": {wrap(failure.New(problem.DataRefused, errors.New("x"),
			"training")), contract.CauseUpstream, "DataRefused"},
		"a refused check requires intervention": {wrap(failure.New(problem.UnsupportedByEndpoint, errors.New("x"),
			"checking")), contract.CauseConfigRejected, "UnsupportedByEndpoint"},
		"first weights that are missing are waited for": {wrap(failure.New(problem.CheckpointMissing, errors.New("x"),
			"loading")), contract.CauseUpstream, "CheckpointMissing"},
		"a learner without progress ends, whatever failed": {fmt.Errorf("%w: %w", errNoProgress,
			failure.New(problem.SettingsRefused, errors.New("x"), "stepping")), contract.CauseCrashed, ""},
		"a spec that no endpoint accepts ends the run": {preflight.Reject(problem.EnvironmentsRejected, "x"),
			contract.CauseConfigRejected, problem.EnvironmentsRejected},
		"an unknown model ends the attempt, not the run": {failure.New(problem.ModelUnknown,
			preflight.Reject(problem.ModelUnknown, "x"), "checking"),
			contract.CauseUpstream, "ModelUnknown"},
		"a short context ends the attempt, not the run": {failure.New(problem.ContextTooShort,
			preflight.Reject(problem.ContextTooShort, "x"), "checking"),
			contract.CauseUpstream, "ContextTooShort"},
		"a broken model does not end the run": {wrap(client.ErrModelBroken), contract.CauseCrashed, ""},
		"a lost future does not end the run": {wrap(&client.Error{Category: tinker.CategoryFutureLost}),
			contract.CauseCrashed, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := verdictOf(tc.err)
			if got.Cause != tc.cause || got.Reason != tc.reason {
				t.Errorf("verdict is %s (%s), want %s (%s)", got.Cause, got.Reason, tc.cause, tc.reason)
			}
			if ends := isFinal(tc.err, false); ends != (tc.cause != contract.CauseCrashed) {
				t.Errorf("isFinal is %v for %s", ends, tc.cause)
			}
		})
	}
	for _, kind := range []problem.Code{problem.SettingsRefused, problem.DataRefused} {
		if isFinal(failure.New(kind, errors.New("x"), "training"), true) {
			t.Errorf("code %q ends a run that has trained", kind)
		}
	}
	if !isFinal(ErrKilled, true) {
		t.Error("a killed learner opens another model")
	}
}

// TestVerdictOfDrain checks that a learner that stopped says which steps are saved, and which are not.
func TestVerdictOfDrain(t *testing.T) {
	at := func(step int64) checkpoints.Position { return checkpoints.Position{Version: rl.Version{Step: step}} }
	why := errors.New("no space left on device")
	cases := map[string]struct {
		reason error
		state  *loopState
		why    error
		want   string
	}{
		"all is saved": {errDrained, &loopState{at: at(4), saved: at(4), submitted: 4, stored: 4}, nil,
			"Stopped at a saved state, as asked"},
		"the state is saved, and nobody knows whether a higher attempt has begun": {
			errDrained, &loopState{at: at(4), saved: at(3), submitted: 4, stored: 4}, why, "Stopped at a saved state, as asked",
		},
		"a step is not saved": {
			errDrained, &loopState{at: at(4), saved: at(3), submitted: 4, stored: 3}, why,
			"Stopped, as asked: the newest saved state is that of step 3; step 4 is not saved and is made again: no space " +
				"left on device",
		},
		"a step was submitted beside the save": {
			errDrained, &loopState{at: at(3), saved: at(2), submitted: 4, stored: 3}, why,
			"Stopped, as asked: the newest saved state is that of step 3; step 4 is not saved and is made again: no space " +
				"left on device",
		},
		"several steps are not saved": {
			errDrained, &loopState{at: at(4), saved: at(1), submitted: 5, stored: 1}, why,
			"Stopped, as asked: the newest saved state is that of step 1; steps 2 to 5 are not saved and are made again: no " +
				"space left on device",
		},
		"the budget is reached": {errBudget, &loopState{at: at(4), saved: at(4)}, nil,
			"Stopped at a saved state: drained because of the budget"},
		"the budget is reached, and a step is not saved": {
			errBudget, &loopState{at: at(4), saved: at(3)}, why,
			"Stopped: drained because of the budget: the newest saved state is that of step 3; step 4 is not saved and is " +
				"made again: no space left on device",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := verdictOf(withUnsaved(tc.reason, tc.state.unsaved(tc.why)))
			if got.Cause != contract.CauseDrained || got.Message != tc.want {
				t.Errorf("verdict is %s %q, want %s %q", got.Cause, got.Message, contract.CauseDrained, tc.want)
			}
		})
	}
}

// TestVerdictOfUntrainableGroups blames the data, and names the repair for prompts that the model cannot read.
func TestVerdictOfUntrainableGroups(t *testing.T) {
	got := verdictOf(failure.New(problem.Untrainable,
		errors.New("its 6032 tokens are more than the context of 4096"), "sampling"))
	for _, want := range []string{"more than the context of 4096", "limits.promptTokens", "raise spec.retryGeneration"} {
		if got.Cause != contract.CauseDataRejected || !strings.Contains(got.Message, want) {
			t.Errorf("the verdict is %+v, want it to have %q", got, want)
		}
	}
}
