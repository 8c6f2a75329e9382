// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// checkCounter is a transport that counts the models of capability checks.
type checkCounter struct{ models atomic.Int64 }

func (c *checkCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/create_model") {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(body, []byte(`"probe"`)) {
			c.models.Add(1)
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// repairFixture is a run whose first attempt checks the endpoint, which has faults from then on.
type repairFixture struct {
	*fixture
	checks checkCounter
	// checked counts the models of the check, and opened the models that were opened for training.
	checked, opened atomic.Int64
}

func newRepairFixture(t *testing.T) *repairFixture {
	w := &repairFixture{fixture: withoutCapabilities(newFixture(t, nil))}
	w.http = &http.Client{Transport: &w.checks}
	w.startWorker("w0", behavior{})
	return w
}

// start starts the first attempt.
func (w *repairFixture) start(rules ...fault.Rule) *attempt {
	return w.startLearner(1, inOrder(w.at("open.probed", -1, func(context.Context, func() error, string, int64) error {
		w.checked.Store(w.checks.models.Load())
		w.addFaults(rules...)
		return nil
	}), w.countOpened))
}

// countOpened is a hook that counts models.
func (w *repairFixture) countOpened(_ context.Context, _ func() error, point string, _ int64) error {
	if point == "open.admitted" {
		w.opened.Add(1)
	}
	return nil
}

// wantNoFurtherCheck fails if the endpoint was checked again.
func (w *repairFixture) wantNoFurtherCheck() {
	w.t.Helper()
	if before, now := w.checked.Load(), w.checks.models.Load(); before == 0 || now != before {
		w.t.Errorf("the check of the endpoint made %d models, and waiting for the repair made that %d", before, now)
	}
}

// TestRefusedFirstStepIsWaitedFor refuses a run's first step until the endpoint is repaired. The learner waits, and
// tries with few sequences: the batch is trained once while it is refused, and once after the repair.
func TestRefusedFirstStepIsWaitedFor(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for name, tc := range map[string]struct {
		code   problem.Code
		ops    []string
		opened int64
	}{
		"for the optimizer's settings": {problem.SettingsRefused, []string{"optim_step"}, 2},
		"for the model's settings":     {problem.SettingsRefused, []string{"create_model"}, 1},
		"for all data":                 {problem.DataRefused, []string{"forward_backward", "forward"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepairFixture(t)
			var rules []fault.Rule
			for _, op := range tc.ops {
				rules = append(rules, fault.Rule{Op: op, Count: -1, Do: fault.Fail, Category: "user", Message: "not here"})
			}
			a := w.start(rules...)
			if found := w.awaitProblem(a, tc.code); !strings.Contains(found.Evidence, "not here") &&
				tc.code != problem.DataRefused {
				t.Errorf("the learner reports %q, want the words of the endpoint", found.Evidence)
			}
			tried := w.sim.Stats().Calls[tc.ops[0]]
			w.until("the learner tries again", func() bool { return w.sim.Stats().Calls[tc.ops[0]] >= tried+3 })
			w.sim.Faults().Clear()
			w.compare(w.waitFor(a, contract.CauseCompleted), want)
			if opened := w.opened.Load(); opened != tc.opened {
				t.Errorf("%d models were opened, want %d", opened, tc.opened)
			}
			w.checkSampledOnce()
			w.wantNoFurtherCheck()
		})
	}
}

// TestFurtherAttemptsDoNotCheckTheEndpointAgain refuses the key after the endpoint was checked. The attempts that wait
// for another key, and the one that continues, know the findings of the first.
func TestFurtherAttemptsDoNotCheckTheEndpointAgain(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	w := newRepairFixture(t)
	a := w.start(fault.Rule{Op: "forward_backward", Count: -1, Do: fault.Refuse, Status: 401})
	for number := int32(2); number <= 3; number++ {
		w.awaitProblem(a, problem.KeyRefused)
		w.exhaustPatience(a)
		w.passCapabilities(w.waitFor(a, contract.CauseUpstream).Progress.Capabilities)
		a = w.startLearner(number, nil)
	}
	w.awaitProblem(a, problem.KeyRefused)
	w.sim.Faults().Clear()
	w.compare(w.waitFor(a, contract.CauseCompleted), want)
	w.wantNoFurtherCheck()
}

// TestFirstWeightsThatCannotBeRead checks that a run waits for the checkpoint that it begins with.
func TestFirstWeightsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	source := newFixture(t, nil)
	source.startWorker("w0", behavior{})
	path := source.waitFor(source.startLearner(1, nil), contract.CauseCompleted).Progress.Checkpoints[0].State

	w := *source
	w.shared, w.workers = &shared{}, nil
	w.artifacts = t.TempDir()
	w.file.ArtifactsDir = w.artifacts
	w.identify("2b3a9c2b-0000-4000-8000-000000000004")
	w.file.Fixed.InitFrom = &contract.InitFrom{Checkpoint: path, RestoreOptimizer: true}
	var err error
	if w.file.SpecDigest, err = contract.SpecDigest(w.file.Fixed); err != nil {
		t.Fatal(err)
	}
	w.addFaults(fault.Rule{Op: "load_weights", Do: fault.Missing, Count: -1})
	w.startWorker("w1", behavior{})
	a := w.startLearner(1, nil)
	w.awaitProblem(a, problem.CheckpointMissing)
	tried := w.sim.Stats().Calls["load_weights"]
	w.until("the learner tries again", func() bool { return w.sim.Stats().Calls["load_weights"] >= tried+3 })
	w.sim.Faults().Clear()
	if verdict := w.waitFor(a, contract.CauseCompleted); verdict.Progress.Step != 3 {
		t.Errorf("the run ended at step %d, want 3", verdict.Progress.Step)
	}
}
