// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/status"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// withoutCapabilities makes the first attempt check the endpoint's capabilities itself.
func withoutCapabilities(w *fixture) *fixture {
	w.file.Capabilities = nil
	return w
}

// passCapabilities hands the capabilities that a learner found to the next attempt, as the manager does.
func (w *fixture) passCapabilities(found *contract.Capabilities) {
	w.t.Helper()
	if found == nil {
		w.t.Fatal("the learner reports no capabilities")
	}
	known := *found
	w.file.Capabilities = &known
}

// models counts the models that were made so far.
func (w *fixture) models() int64 { return w.sim.Stats().Operations["create_model"] }

// until waits until the condition holds, and fails the test if it does not within patience.
func (w *fixture) until(what string, condition func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("timed out before %s", what)
		}
	}
}

// TestCapabilityCheckDoesNotChangeWeights also requires that the check is made once.
func TestCapabilityCheckDoesNotChangeWeights(t *testing.T) {
	t.Parallel()
	w := withoutCapabilities(newFixture(t, nil))
	w.startWorker("w0", behavior{})
	first := w.startLearner(1, w.dieAt("covered.sent", 2))
	<-first.done
	probed := w.models()
	if probed < 4 {
		t.Fatalf("%d models were made: no capability was checked", probed)
	}
	w.passCapabilities(first.verdict.Progress.Capabilities)
	verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
	w.checkSame(verdict)
	// The run's own model, and two that check the optimizer.
	if further := w.models() - probed; further != 3 {
		t.Errorf("the second attempt made %d models, want 3: it checked known features", further)
	}
	if c := verdict.Progress.Capabilities; len(c.Ignored)+len(c.Unsupported) > 0 || !slices.Contains(c.Supported,
		"adam.beta1") {
		t.Errorf("the simulator's capabilities are %+v", c)
	}
}

// shareCapabilities hands the capabilities that another run found with the same client to the first attempt, as the
// manager does.
func (w *fixture) shareCapabilities(found *contract.Capabilities) {
	w.t.Helper()
	from := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Name: "first"}}
	status.Report(&from.Status, contract.Progress{Capabilities: found}, time.Now())
	if w.file.SharedCapabilities = endpoint.Share(from, time.Now()); w.file.SharedCapabilities == nil {
		w.t.Fatalf("of %+v nothing is shared", found)
	}
	w.file.SharedCapabilities.BaseURL = w.url // The simulators of two fixtures stand for one.
}

// TestSharedCapabilityCheck gives a run the findings of another run. The run itself checks only how gradients are
// combined and whether repeats are recognised, for which it saves and samples nothing, and trains the same weights.
func TestSharedCapabilityCheck(t *testing.T) {
	t.Parallel()
	first := withoutCapabilities(newFixture(t, nil))
	checking := first.startLearner(1, first.dieAt("open.probed", -1))
	<-checking.done
	found := checking.verdict.Progress.Capabilities
	if found == nil || found.CheckedAt == "" || found.ClientVersion == "" || found.SharedFrom != nil {
		t.Fatalf("the first run reports %+v", found)
	}
	all := first.sim.Stats()

	w := withoutCapabilities(newFixture(t, nil))
	w.shareCapabilities(found)
	var checked tinkersim.Stats
	w.startWorker("w0", behavior{})
	verdict := w.waitFor(w.startLearner(1, w.at("open.probed", -1, func(context.Context, func() error, string,
		int64) error {
		checked = w.sim.Stats()
		return nil
	})), contract.CauseCompleted)
	w.checkSame(verdict)
	const (
		prepared   = 1
		repeats    = 1
		calibrated = 4
		gradients  = 4
	)
	if made := checked.Operations["create_model"]; made != prepared+repeats+calibrated+gradients ||
		made >= all.Operations["create_model"] {
		t.Errorf("%d models were made before the run's own, want %d; a run that shares nothing made %d", made,
			prepared+repeats+calibrated+gradients, all.Operations["create_model"])
	}
	for _, op := range []string{"save_weights", "save_weights_for_sampler", "load_weights"} {
		if n := checked.Operations[op]; n != 0 || all.Operations[op] == 0 {
			t.Errorf("%d times %s before the run's own model, want none; a run that shares nothing did %d", n, op,
				all.Operations[op])
		}
	}
	if checked.SampledTokens != 0 || all.SampledTokens == 0 {
		t.Errorf("%d tokens were sampled before the run's own model, want none; a run that shares nothing sampled %d",
			checked.SampledTokens, all.SampledTokens)
	}
	reported := verdict.Progress.Capabilities
	if diff := cmp.Diff(found.Supported, reported.Supported); diff != "" {
		t.Errorf("supported (-first +second):\n%s", diff)
	}
	if from := reported.SharedFrom; from == nil || from.Name != "first" || from.CheckedAt != found.CheckedAt ||
		reported.CheckedAt == "" {
		t.Errorf("the run reports %+v, want that it is shared from the first", reported)
	}
}

// TestSharedCheckOfChangedEndpoint gives a run shared findings according to which its server sums gradients, although
// the server averages them, as SkyRL does. The run finds this, and trains the weights of a run that has checked
// everything itself.
func TestSharedCheckOfChangedEndpoint(t *testing.T) {
	t.Parallel()
	found, weights := skyRLBaseline(t)
	changed := *found
	changed.Supported = append(slices.Clone(found.Supported), contract.CapabilityGradientSum)
	changed.Ignored, changed.Unsupported = nil, nil
	w := newSkyRL(t, nil)
	w.shareCapabilities(&changed)
	w.startWorker("w0", behavior{})
	verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	reported := verdict.Progress.Capabilities
	if reported.SharedFrom == nil || !slices.Contains(reported.Ignored, contract.CapabilityGradientSum) ||
		!slices.Equal(reported.Unsupported, found.Unsupported) {
		t.Errorf("the run reports %+v, want the findings of a run alone, %+v", reported, found)
	}
	if got := w.weights(verdict); got != weights {
		t.Errorf("final adapter is %s, and %s of a run that checked alone", got, weights)
	}
}

// TestDeathDuringCapabilityCheck checks that the killed attempt leaves nothing behind that affects the next one.
func TestDeathDuringCapabilityCheck(t *testing.T) {
	t.Parallel()
	w := withoutCapabilities(newFixture(t, nil))
	w.startWorker("w0", behavior{})
	w.addFaults(fault.Rule{ID: "held", Op: "load_weights", Do: fault.Hold, Count: -1})
	first := w.startLearner(1, nil)
	w.until("the capability check loads its state", func() bool { return w.sim.Faults().List()[0].Holding > 0 })
	first.cancel()
	<-first.done
	w.sim.Faults().Clear()
	<-w.startLearner(2, w.dieAt("open.probed", -1)).done
	w.checkSame(w.waitFor(w.startLearner(3, nil), contract.CauseCompleted))
}

// TestEndpointWithoutOptimizerRestore checks that a run refuses an endpoint that does not restore optimizers, before
// samples are bought, unless the run allows it.
func TestEndpointWithoutOptimizerRestore(t *testing.T) {
	t.Parallel()
	forgetful := fault.Rule{Op: "load_weights", Do: fault.ColdAdam, Count: -1}
	t.Run("which is required", func(t *testing.T) {
		t.Parallel()
		w := withoutCapabilities(newFixture(t, nil))
		w.addFaults(forgetful)
		w.startWorker("w0", behavior{})
		verdict := w.waitFor(w.startLearner(1, nil), contract.CauseConfigRejected)
		if verdict.Reason != "OptimizerNotRestored" || !strings.Contains(verdict.Message,
			"failurePolicy.requireOptimizerState") {
			t.Errorf("verdict is %s: %s", verdict.Reason, verdict.Message)
		}
		if !slices.Contains(verdict.Progress.Capabilities.Ignored, "optimizer_restore") {
			t.Errorf("capabilities are %+v", verdict.Progress.Capabilities)
		}
		// The capability check saves one sampler to draw from, and one to see whether it is a snapshot.
		if saved := w.sim.Stats().Operations["save_weights_for_sampler"]; saved != 2 {
			t.Errorf("%d samplers were saved, want the two of the capability check: something was bought", saved)
		}
	})
	t.Run("which is not required", func(t *testing.T) {
		t.Parallel()
		w := withoutCapabilities(newFixture(t, func(f *contract.RunFile) { f.RequireOptimizer = false }))
		w.addFaults(forgetful)
		w.startWorker("w0", behavior{})
		first := w.startLearner(1, w.dieAt("covered.sent", 2))
		<-first.done
		if first.verdict.Progress.ColdOptimizer {
			t.Error("the first attempt is reported to have lost its optimizer")
		}
		w.passCapabilities(first.verdict.Progress.Capabilities)
		verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
		if !verdict.Progress.ColdOptimizer {
			t.Error("the resumed attempt does not report that Adam began anew")
		}
		if got := w.weights(verdict); got == baseline(t).adapter {
			t.Errorf("the weights %s are the weights of a run with its optimizer: nothing was forgotten", got)
		}
		w.checkMetrics()
	})
}

// TestStateLoadsWithoutOptimizer loads states without their optimizer, and checks that the resume detects it.
func TestStateLoadsWithoutOptimizer(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	cases := map[string]struct {
		rule     fault.Rule
		required bool
		cause    contract.Cause
		cold     bool
	}{
		"once, and it is loaded again": {fault.Rule{Op: "load_weights", Do: fault.ColdAdam}, true,
			contract.CauseCompleted, false},
		"once, where that is not required": {fault.Rule{Op: "load_weights", Do: fault.ColdAdam}, false,
			contract.CauseCompleted, false},
		"at the shadow alone, and it is loaded anew": {fault.Rule{Op: "load_weights", Occurrence: 2, Do: fault.ColdAdam,
			Count: 2}, true, contract.CauseCompleted, false},
		"the newest always, and the one before does": {fault.Rule{Op: "load_weights", Name: "s000002", Do: fault.ColdAdam,
			Count: -1}, true, contract.CauseCompleted, false},
		"all of them, and the run waits": {fault.Rule{Op: "load_weights", Do: fault.ColdAdam, Count: -1}, true,
			contract.CauseUpstream, false},
		"all of them, and the run continues cold": {fault.Rule{Op: "load_weights", Do: fault.ColdAdam, Count: -1}, false,
			contract.CauseCompleted, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, func(f *contract.RunFile) { f.RequireOptimizer = tc.required })
			w.startWorker("w0", behavior{})
			<-w.startLearner(1, w.dieAt("retire.before", 2)).done
			w.addFaults(tc.rule)
			verdict := w.waitFor(w.startLearner(2, nil), tc.cause)
			if verdict.Progress.ColdOptimizer != tc.cold {
				t.Errorf("the optimizer is reported to be cold: %v, want %v", verdict.Progress.ColdOptimizer, tc.cold)
			}
			if tc.cause != contract.CauseCompleted {
				if verdict.Reason != "OptimizerNotRestored" {
					t.Errorf("reason is %s: %s", verdict.Reason, verdict.Message)
				}
				w.sim.Faults().Clear()
				w.compare(w.waitFor(w.startLearner(3, nil), contract.CauseCompleted), want)
				return
			}
			if !tc.cold {
				w.compare(verdict, want)
			} else if got := w.outcome(verdict).adapter; got == want.adapter {
				t.Errorf("final adapter is %s, undisturbed the same, though the optimizer was lost", got)
			}
		})
	}
}

// rewrite changes the optimizer's settings in requests, which has the effect of a server that ignores them.
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

// TestIgnoredSetting checks that a run ends before samples are bought if the endpoint ignores a setting, unless the
// value of the setting changes nothing.
func TestIgnoredSetting(t *testing.T) {
	t.Parallel()
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
			w := withoutCapabilities(newFixture(t, func(
				f *contract.RunFile) {
				f.Fixed.Algorithm.Optimizer.GradClipNorm = tc.clip
			}))
			w.http = &http.Client{Transport: rewrite(func(adam map[string]any) { adam["grad_clip_norm"] = 0 })}
			w.startWorker("w0", behavior{})
			verdict := w.waitFor(w.startLearner(1, nil), tc.want)
			if tc.want == contract.CauseCompleted {
				w.checkSame(verdict)
				return
			}
			if verdict.Reason != "UnsupportedByEndpoint" || !strings.Contains(verdict.Message,
				"algorithm.optimizer.gradClipNorm") || !strings.Contains(verdict.Message, "set it to 0") {
				t.Errorf("verdict is %s: %s", verdict.Reason, verdict.Message)
			}
			if diff := cmp.Diff([]string{"adam.grad_clip_norm"}, verdict.Progress.Capabilities.Ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
}

// TestIgnoredSeeds completes a run whose samples cannot be repeated, and reports that.
func TestIgnoredSeeds(t *testing.T) {
	t.Parallel()
	w := withoutCapabilities(newFixture(t, nil))
	w.addFaults(fault.Rule{Op: "asample", Do: fault.IgnoreSeed, Count: -1})
	w.startWorker("w0", behavior{})
	verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	if diff := cmp.Diff([]string{"seed"}, verdict.Progress.Capabilities.Ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	w.checkMetrics()
}

// TestRetryChecksAgainWhatWasRefused checks an endpoint that is refused for a setting that it ignores. Another attempt,
// which only spec.retryGeneration begins, checks this setting again, and nothing else: the endpoint is refused as long
// as it stays the same, and the run trains once it is repaired.
func TestRetryChecksAgainWhatWasRefused(t *testing.T) {
	t.Parallel()
	for feature, setClip := range map[string]float64{"adam.grad_clip_norm": 1, "optimizer_restore": 0} {
		t.Run(feature, func(t *testing.T) {
			t.Parallel()
			w := withoutCapabilities(newFixture(t, func(
				f *contract.RunFile) {
				f.Fixed.Algorithm.Optimizer.GradClipNorm = setClip
			}))
			var repaired atomic.Bool
			w.http = &http.Client{Transport: rewrite(func(adam map[string]any) {
				if !repaired.Load() {
					adam["grad_clip_norm"] = 0
				}
			})}
			if feature == "optimizer_restore" {
				w.addFaults(fault.Rule{Op: "load_weights", Do: fault.ColdAdam, Count: -1})
			}
			w.startWorker("w0", behavior{})
			first := w.waitFor(w.startLearner(1, nil), contract.CauseConfigRejected).Progress.Capabilities
			checked := w.models()
			for attempt := int32(2); attempt <= 3; attempt++ {
				w.passCapabilities(first)
				verdict := w.waitFor(w.startLearner(attempt, nil), contract.CauseConfigRejected)
				if found := verdict.Progress.Capabilities; !slices.Contains(found.Ignored, feature) {
					t.Errorf("attempt %d finds %+v, want %s ignored", attempt, found, feature)
				}
			}
			if again := w.models() - checked; again == 0 || again >= 2*checked {
				t.Errorf("the first check made %d models, and two further attempts %d, want some and fewer", checked, again)
			}
			w.sim.Faults().Clear()
			repaired.Store(true)
			last := w.waitFor(w.startLearner(4, nil), contract.CauseCompleted)
			if known := last.Progress.Capabilities; len(known.Ignored) > 0 || !slices.Contains(known.Supported, feature) {
				t.Errorf("after the repair the capabilities are %+v", known)
			}
		})
	}
}
