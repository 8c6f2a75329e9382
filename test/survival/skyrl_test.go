// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build skyrl

package survival

import (
	"path/filepath"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/test/skyrl"
)

// TestSkyRLNext trains the small run at the next version of SkyRL itself, with a learner that dies where it knows
// least: once while the state of a step is saved, and once while it loads a state. The server's own database tells how
// many steps are in the final weights. The learner is given the findings of a check, which TestSkyRLNext of
// test/endpoint makes.
func TestSkyRLNext(t *testing.T) {
	root := filepath.Join("..", "..")
	server := skyrl.Start(t, root, skyrl.Next, "127.0.0.1:18303")
	w := newFixture(t, nil)
	w.front, w.file.Fixed.BaseURL = server.URL, server.URL
	var err error
	if w.client, err = client.New(client.Config{BaseURL: server.URL, APIKey: apiKey}); err != nil {
		t.Fatal(err)
	}
	w.file.Capabilities = &contract.Capabilities{BaseURL: server.URL, Model: skyrl.Model, Supported: skyrl.Next.Supported,
		Ignored: skyrl.Next.Ignored, Unsupported: skyrl.Next.Unsupported}
	w.startWorker("w0", behavior{})
	<-w.startLearner(1, w.dieAt("save.answered", 2)).done
	<-w.startLearner(2, w.dieAt("open.loaded", -1)).done
	verdict := w.waitFor(w.startLearner(3, nil), contract.CauseCompleted)
	steps := w.file.Fixed.Algorithm.Steps
	if rows := w.rows(); int64(len(rows)) != steps {
		t.Errorf("the run has %d rows of steps, want %d", len(rows), steps)
	}
	server.WantSteps(t, root, verdict.Progress.Checkpoints[0].State, steps)
}
