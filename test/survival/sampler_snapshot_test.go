// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// roundTripper is a function that sends a request.
type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestStepWaitsForEvaluation trains at a server whose samplers always use the newest weights, and evaluates each
// version. The evaluation of the initial weights is delayed until the first batch is sampled, and replies to saves are
// late: a step is submitted when all versions before it have the results of their evaluations.
func TestStepWaitsForEvaluation(t *testing.T) {
	t.Parallel()
	found, want := skyRLBaseline(t)
	w := newSkyRL(t, func(f *contract.RunFile) { f.Evaluation.EverySteps = 1 }).knowing(found)
	w.addFaults(fault.Rule{Op: "save_weights", Do: fault.Pause, Seconds: 0.2, Stage: fault.Reply, Count: -1})
	sampled := make(chan struct{})
	var passes atomic.Int64
	w.http = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/forward_backward") && isClosed(sampled) {
			results, err := filepath.Glob(filepath.Join(w.artifacts, w.file.Run.UID, "evaluations", "*.json"))
			if step := passes.Add(1); err != nil || int64(len(results)) != step {
				t.Errorf("step %d was submitted when %d versions were evaluated (%v), want all %d before it", step, len(results),
					err, step)
			}
		}
		return http.DefaultTransport.RoundTrip(r)
	})}
	w.startWorker("w0", behavior{delayEvaluation: sampled})
	verdict := w.waitFor(w.startLearner(1, w.at("step.sampled", 1, then(func() { close(sampled) }))),
		contract.CauseCompleted)
	w.checkWeights(verdict, want)
	if got := passes.Load(); got != w.file.Fixed.Algorithm.Steps {
		t.Errorf("%d passes were submitted, want one for each of %d steps", got, w.file.Fixed.Algorithm.Steps)
	}
}

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
