// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// curious has the first attempt find out about the endpoint by itself.
func curious(w *world) *world {
	w.file.Capabilities = nil
	return w
}

// handOn gives the next attempt what a learner found, as the manager does.
func (w *world) handOn(found *contract.Capabilities) {
	w.t.Helper()
	if found == nil {
		w.t.Fatal("the learner says nothing of the endpoint")
	}
	known := *found
	w.file.Capabilities = &known
}

// models counts those that were made so far.
func (w *world) models() int64 { return w.sim.Stats().Operations["create_model"] }

// until waits for something that is bound to happen.
func (w *world) until(what string, happened func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("it did not happen that %s", what)
		}
	}
}

// TestTheProbeLeavesTheRunAsItIs, and is made once.
func TestTheProbeLeavesTheRunAsItIs(t *testing.T) {
	w := curious(newWorld(t, nil))
	w.play("w0", ways{})
	first := w.learn(1, w.dieAt("covered.sent", 2))
	<-first.done
	probed := w.models()
	if probed < 4 {
		t.Fatalf("%d models were made: nothing was probed", probed)
	}
	w.handOn(first.verdict.Progress.Capabilities)
	verdict := w.end(w.learn(2, nil), contract.CauseCompleted)
	w.checkSame(verdict)
	// The run's own, and two shadows that look for the optimizer.
	if further := w.models() - probed; further != 3 {
		t.Errorf("the second attempt made %d models, want 3: it probed what was known", further)
	}
	if c := verdict.Progress.Capabilities; len(c.Ignored)+len(c.Unsupported) > 0 || !slices.Contains(c.Supported, "adam.beta1") {
		t.Errorf("the simulator is said to be %+v", c)
	}
}

// TestDeathWhileProbing leaves nothing that disturbs the next attempt.
func TestDeathWhileProbing(t *testing.T) {
	w := curious(newWorld(t, nil))
	w.play("w0", ways{})
	w.script(fault.Rule{ID: "held", Op: "load_weights", Do: fault.Hold, Count: -1})
	first := w.learn(1, nil)
	w.until("the probe loads its state", func() bool { return w.sim.Faults().List()[0].Holding > 0 })
	first.cancel()
	<-first.done
	w.sim.Faults().Clear()
	<-w.learn(2, w.dieAt("open.probed", -1)).done
	w.checkSame(w.end(w.learn(3, nil), contract.CauseCompleted))
}

// TestAnEndpointThatForgetsTheOptimizer is found out before anything is bought, and used if that is allowed.
func TestAnEndpointThatForgetsTheOptimizer(t *testing.T) {
	forgetful := fault.Rule{Op: "load_weights", Do: fault.ColdAdam, Count: -1}
	t.Run("which is required", func(t *testing.T) {
		t.Parallel()
		w := curious(newWorld(t, nil))
		w.script(forgetful)
		w.play("w0", ways{})
		verdict := w.end(w.learn(1, nil), contract.CauseConfigRejected)
		if verdict.Reason != "OptimizerNotRestored" || !strings.Contains(verdict.Message, "failurePolicy.requireOptimizer") {
			t.Errorf("verdict is %s: %s", verdict.Reason, verdict.Message)
		}
		if !slices.Contains(verdict.Progress.Capabilities.Ignored, "optimizer_restore") {
			t.Errorf("capabilities are %+v", verdict.Progress.Capabilities)
		}
		if saved := w.sim.Stats().Operations["save_weights_for_sampler"]; saved != 1 {
			t.Errorf("%d samplers were saved, want the probe's alone: something was bought", saved)
		}
	})
	t.Run("which is not required", func(t *testing.T) {
		t.Parallel()
		w := curious(newWorld(t, func(f *contract.RunFile) { f.RequireOptimizer = false }))
		w.script(forgetful)
		w.play("w0", ways{})
		first := w.learn(1, w.dieAt("covered.sent", 2))
		<-first.done
		if first.verdict.Progress.ColdOptimizer {
			t.Error("the first attempt is said to have lost its optimizer")
		}
		w.handOn(first.verdict.Progress.Capabilities)
		verdict := w.end(w.learn(2, nil), contract.CauseCompleted)
		if !verdict.Progress.ColdOptimizer {
			t.Error("the resumed attempt does not say that Adam began anew")
		}
		if w.weights(verdict) == baseline(t) {
			t.Error("the weights are those of a run with its optimizer: nothing was forgotten")
		}
		w.checkMetrics()
	})
}

// TestAStateThatLoadsCold although the endpoint restores optimizers: the resume finds it out.
func TestAStateThatLoadsCold(t *testing.T) {
	want := baseline(t)
	cases := map[string]struct {
		rule     fault.Rule
		required bool
		cause    contract.Cause
		cold     bool
	}{
		"once, and it is loaded again":               {fault.Rule{Op: "load_weights", Do: fault.ColdAdam}, true, contract.CauseCompleted, false},
		"once, where that is not required":           {fault.Rule{Op: "load_weights", Do: fault.ColdAdam}, false, contract.CauseCompleted, false},
		"at the shadow alone, and it is loaded anew": {fault.Rule{Op: "load_weights", Occurrence: 2, Do: fault.ColdAdam, Count: 2}, true, contract.CauseCompleted, false},
		"the newest always, and the one before does": {fault.Rule{Op: "load_weights", Name: "s000002", Do: fault.ColdAdam, Count: -1}, true, contract.CauseCompleted, false},
		"all of them, and the run is given up":       {fault.Rule{Op: "load_weights", Do: fault.ColdAdam, Count: -1}, true, contract.CauseDataRejected, false},
		"all of them, and the run goes on and says":  {fault.Rule{Op: "load_weights", Do: fault.ColdAdam, Count: -1}, false, contract.CauseCompleted, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(f *contract.RunFile) { f.RequireOptimizer = tc.required })
			w.play("w0", ways{})
			<-w.learn(1, w.dieAt("retire.before", 2)).done
			w.script(tc.rule)
			verdict := w.end(w.learn(2, nil), tc.cause)
			if verdict.Progress.ColdOptimizer != tc.cold {
				t.Errorf("the optimizer is said to be cold: %v, want %v", verdict.Progress.ColdOptimizer, tc.cold)
			}
			if tc.cause != contract.CauseCompleted {
				if verdict.Reason != "OptimizerNotRestored" {
					t.Errorf("reason is %s: %s", verdict.Reason, verdict.Message)
				}
				return
			}
			if got := w.weights(verdict); (got == want) == tc.cold {
				t.Errorf("final adapter is %s, undisturbed %s, cold %v", got, want, tc.cold)
			}
			w.checkMetrics()
		})
	}
}

// rewrite changes the optimizer's settings on their way, as a server that ignores them would.
type rewrite func(adam map[string]any)

func (f rewrite) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/optim_step") {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		var parsed map[string]any
		if err := json.Unmarshal(body, &parsed); err != nil {
			return nil, err
		}
		f(parsed["adam_params"].(map[string]any))
		if body, err = json.Marshal(parsed); err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body, r.ContentLength, r.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestASettingThatIsIgnored ends the run before anything is bought; at a value that changes nothing it may be.
func TestASettingThatIsIgnored(t *testing.T) {
	cases := map[string]struct {
		clip float64
		want contract.Cause
	}{
		"a gradient that is to be clipped":  {1, contract.CauseConfigRejected},
		"a gradient that may be what it is": {0, contract.CauseCompleted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := curious(newWorld(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Optimizer.GradClipNorm = tc.clip }))
			w.http = &http.Client{Transport: rewrite(func(adam map[string]any) { adam["grad_clip_norm"] = 0 })}
			w.play("w0", ways{})
			verdict := w.end(w.learn(1, nil), tc.want)
			if tc.want == contract.CauseCompleted {
				w.checkSame(verdict)
				return
			}
			if verdict.Reason != "UnsupportedByEndpoint" || !strings.Contains(verdict.Message, "algorithm.optimizer.gradClipNorm") || !strings.Contains(verdict.Message, "set it to 0") {
				t.Errorf("verdict is %s: %s", verdict.Reason, verdict.Message)
			}
			if diff := cmp.Diff([]string{"adam.grad_clip_norm"}, verdict.Progress.Capabilities.Ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSeedsThatAreIgnored make a run that cannot be repeated, and says so.
func TestSeedsThatAreIgnored(t *testing.T) {
	w := curious(newWorld(t, nil))
	w.script(fault.Rule{Op: "asample", Do: fault.IgnoreSeed, Count: -1})
	w.play("w0", ways{})
	verdict := w.end(w.learn(1, nil), contract.CauseCompleted)
	if diff := cmp.Diff([]string{"seed"}, verdict.Progress.Capabilities.Ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	w.checkMetrics()
}
