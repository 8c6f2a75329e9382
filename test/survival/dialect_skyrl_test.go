// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/dialect"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/test/skyrl"
)

// newSkyRL prepares the small run at a server that behaves like SkyRL. The run knows none of the server's
// capabilities.
func newSkyRL(t testing.TB, change func(*contract.RunFile)) *fixture {
	t.Helper()
	return withoutCapabilities(newFixtureOn(t, tinkersim.Options{
		SessionTimeout: time.Minute, PollPatience: 50 * time.Millisecond, PollHold: 300 * time.Millisecond,
		Dialect: dialect.NameSkyRL,
	}, change))
}

// skyRL is the outcome of an undisturbed run at that server.
var skyRL struct {
	once   sync.Once
	found  *contract.Capabilities
	digest string
}

// skyRLBaseline runs the small run undisturbed, once for all tests.
func skyRLBaseline(t testing.TB) (found *contract.Capabilities, digest string) {
	t.Helper()
	skyRL.once.Do(func() {
		w := newSkyRL(t, nil)
		w.startWorker("w0", behavior{})
		verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
		w.checkMetrics()
		skyRL.found, skyRL.digest = verdict.Progress.Capabilities, w.weights(verdict)
	})
	if skyRL.digest == "" {
		t.Fatal("the undisturbed run failed")
	}
	return skyRL.found, skyRL.digest
}

// knowing sets the run's capabilities to those that the undisturbed run found.
func (w *fixture) knowing(found *contract.Capabilities) *fixture {
	known := *found
	known.BaseURL = w.url
	w.file.Capabilities = &known
	return w
}

// TestFindingsAtSkyRL checks the findings of the first attempt, which adapts to them. A run at SkyRL itself has the
// same findings, as the end-to-end test of SkyRL checks.
func TestFindingsAtSkyRL(t *testing.T) {
	t.Parallel()
	found, _ := skyRLBaseline(t)
	want := &contract.Capabilities{BaseURL: found.BaseURL, Model: tinkersim.ModelName, Supported: skyrl.Pinned.Supported,
		Ignored: skyrl.Pinned.Ignored, Unsupported: skyrl.Pinned.Unsupported}
	byWhom := cmpopts.IgnoreFields(contract.Capabilities{}, "CheckedAt", "ClientVersion", "Connection", "SharedFrom")
	if diff := cmp.Diff(want, found, byWhom); diff != "" {
		t.Errorf("capabilities (-want +found):\n%s", diff)
	}
}

// TestResumeAfterDeathAtSkyRL kills the learner at each fault point. Each step counts once in the weights.
func TestResumeAfterDeathAtSkyRL(t *testing.T) {
	t.Parallel()
	found, want := skyRLBaseline(t)
	for _, point := range learner.FaultPoints() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newSkyRL(t, nil).knowing(found)
			w.startWorker("w0", behavior{})
			step := int64(2)
			if point[:5] == "open." {
				step = -1
			}
			<-w.startLearner(1, w.dieAt(point, step)).done
			w.checkWeights(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
		})
	}
}

// checkWeights checks the final weights, how many optimizer steps are in them, and that each step has one row.
func (w *fixture) checkWeights(verdict contract.Verdict, want string) {
	w.t.Helper()
	if got := w.weights(verdict); got != want {
		w.t.Errorf("final adapter is %s, undisturbed %s", got, want)
	}
	w.checkServerSteps(verdict)
	w.checkMetrics()
}

// checkServerSteps checks the number of optimizer steps that the server has executed on the final weights.
func (w *fixture) checkServerSteps(verdict contract.Verdict) {
	w.t.Helper()
	path, err := tinker.ParsePath(verdict.Progress.Checkpoints[0].State)
	if err != nil {
		w.t.Fatal(err)
	}
	// The dialect replaces the colons in the simulator's ids by __, and the simulator replaces them by _ in the names of
	// its folders.
	folder := strings.ReplaceAll(path.Run, "__", "_")
	records, err := filepath.Glob(filepath.Join(w.checkpoints, "*", folder, string(path.Kind), path.Name+".json"))
	if err != nil || len(records) != 1 {
		w.t.Fatalf("the server's records of %s: %v, %v", path, records, err)
	}
	var record struct{ File string }
	text, err := os.ReadFile(records[0])
	if err == nil {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(filepath.Dir(records[0]), record.File))
	if err != nil {
		w.t.Fatal(err)
	}
	adapter, err := model.UnmarshalState(model.Base(), data, true)
	if err != nil {
		w.t.Fatal(err)
	}
	if got := int64(adapter.Steps()); got != w.file.Fixed.Algorithm.Steps {
		w.t.Errorf("the server has executed %d optimizer steps on the final weights, want %d", got,
			w.file.Fixed.Algorithm.Steps)
	}
}

// TestLostRepliesAtSkyRL loses either the request or the reply of each operation once. An operation whose reply is
// lost has been executed, and would be executed twice if its request were posted again.
func TestLostRepliesAtSkyRL(t *testing.T) {
	t.Parallel()
	found, want := skyRLBaseline(t)
	for _, op := range []string{
		"create_session", "create_model", "forward_backward", "optim_step", "save_weights", "save_weights_for_sampler",
		"load_weights",
		"create_sampling_session", "asample", "retrieve_future", "unload_model",
		"client_config", "get_server_capabilities", "list_training_runs", "session_heartbeat", "weights_info",
	} {
		for _, do := range []fault.Action{fault.DropAnswer, fault.DropRequest} {
			t.Run(fmt.Sprintf("%s %s", op, do), func(t *testing.T) {
				t.Parallel()
				w := newSkyRL(t, nil).knowing(found)
				w.addFaults(fault.Rule{Op: op, Occurrence: 1, Do: do})
				w.startWorker("w0", behavior{})
				first := w.startLearner(1, w.dieAt("retire.before", 2))
				<-first.done
				w.checkWeights(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
			})
		}
	}
}

// TestResumeWithoutListing resumes from the rows of the artifact store, and without artifacts from the checkpoints that
// the manager knows.
func TestResumeWithoutListing(t *testing.T) {
	t.Parallel()
	found, want := skyRLBaseline(t)
	t.Run("from rows", func(t *testing.T) {
		w := newSkyRL(t, nil).knowing(found)
		w.startWorker("w0", behavior{})
		<-w.startLearner(1, w.dieAt("covered.sent", 2)).done
		verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
		w.checkWeights(verdict, want)
		if verdict.Progress.FromStep != 2 {
			t.Errorf("resumed from step %d, want 2", verdict.Progress.FromStep)
		}
		if n := w.sim.Stats().Calls["unload_model"]; n < 2 {
			t.Errorf("%d models were unloaded, want also the model of the first attempt: it holds memory of the server", n)
		}
	})
	t.Run("from the status", func(t *testing.T) {
		w := newSkyRL(t, func(file *contract.RunFile) { file.ArtifactsDir = "" }).knowing(found)
		w.startWorker("w0", behavior{})
		first := w.startLearner(1, w.dieAt("step.sampled", 3))
		<-first.done
		for _, c := range first.verdict.Progress.Checkpoints {
			w.file.KnownCheckpoints = append(w.file.KnownCheckpoints, c.State)
		}
		verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
		if got := w.weights(verdict); got != want {
			t.Errorf("final adapter is %s, undisturbed %s", got, want)
		}
		w.checkServerSteps(verdict)
		if verdict.Progress.FromStep != 2 {
			t.Errorf("resumed from step %d, want 2", verdict.Progress.FromStep)
		}
	})
}
