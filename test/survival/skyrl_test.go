// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build skyrl

package survival

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/test/skyrl"
)

// TestSkyRLNext trains the small run at the next version of SkyRL itself, with a learner that dies where it knows least:
// once while the state of a step is saved, and once while it loads a state. The server's own database tells how many
// steps are in the final weights.
func TestSkyRLNext(t *testing.T) {
	root := filepath.Join("..", "..")
	server := skyrl.Start(t, root, skyrl.Next, "127.0.0.1:18303")
	w := withoutCapabilities(newFixture(t, nil))
	w.front, w.file.Fixed.BaseURL = server.URL, server.URL
	w.startWorker("w0", behavior{})
	first := w.startLearner(1, w.dieAt("save.answered", 2))
	<-first.done
	found := first.verdict.Progress.Capabilities
	want := &contract.Capabilities{BaseURL: server.URL, Model: skyrl.Model, Supported: skyrl.Next.Supported,
		Ignored: skyrl.Next.Ignored, Unsupported: skyrl.Next.Unsupported}
	byWhom := cmpopts.IgnoreFields(contract.Capabilities{}, "CheckedAt", "ClientVersion", "Connection", "SharedFrom")
	if diff := cmp.Diff(want, found, byWhom); diff != "" {
		t.Errorf("capabilities (-want +found):\n%s", diff)
	}
	w.passCapabilities(found)
	<-w.startLearner(2, w.dieAt("open.loaded", -1)).done
	verdict := w.waitFor(w.startLearner(3, nil), contract.CauseCompleted)
	w.checkMetrics()
	server.WantSteps(t, root, verdict.Progress.Checkpoints[0].State, w.file.Fixed.Algorithm.Steps)
}
