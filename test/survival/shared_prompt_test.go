// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// withSharedPrompts buys the prompt of each group once.
func withSharedPrompts(f *contract.RunFile) { f.Fixed.Environments[0].Sampling.SharedPrompt = true }

// sharedBaseline is an undisturbed run that shares prompts.
func sharedBaseline(t *testing.T) (want outcome, file contract.RunFile) {
	t.Helper()
	w := newFixture(t, withSharedPrompts)
	w.startRolloutWorker("w0")
	return w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)), w.file
}

// TestSharedPromptsBuyFewerTokens compares a run with one that shares nothing: it has other samples, and buys a prompt for each group in
// place of one for each of its 4 members. The evaluations, of one sample a task, are the same.
func TestSharedPromptsBuyFewerTokens(t *testing.T) {
	t.Parallel()
	shared, file := sharedBaseline(t)
	w := newFixture(t, nil)
	w.startRolloutWorker("w0")
	own := w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	if shared.weights == own.weights || file.SpecDigest == w.file.SpecDigest {
		t.Error("the weights or the digest of the spec do not depend on sharedPrompt")
	}
	const groupSize = 4
	evaluated := own.usage.PromptTokens - w.trainingPrompts()
	_ = evaluated
	if got, want := shared.usage.PromptTokens*groupSize, own.usage.PromptTokens; got >= 2*want || got < want/2 {
		t.Errorf("%d tokens of prompts were bought, and %d without sharing", shared.usage.PromptTokens, own.usage.PromptTokens)
	}
}
