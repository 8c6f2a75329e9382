// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/dialect"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

func TestTemporaryErrors(t *testing.T) {
	cases := map[string]fault.Rule{
		"a model is not created":          {Op: "create_model", Do: fault.Fail, Category: "server"},
		"the third model is not created":  {Op: "create_model", Occurrence: 3, Do: fault.Fail, Category: "server"},
		"a pass fails":                    {Op: "forward_backward", Occurrence: 2, Do: fault.Fail, Category: "server"},
		"a pass of a trial fails":         {Op: "forward_backward", Occurrence: 6, Do: fault.Fail, Category: "unknown"},
		"the future of a step is lost":    {Op: "optim_step", Occurrence: 5, Do: fault.LoseFuture},
		"the save succeeds with an error": {Op: "save_weights", Do: fault.Fail, Stage: fault.Reply, Category: "server"},
		"a load fails twice":              {Op: "load_weights", Count: 2, Do: fault.Fail, Category: "server"},
		"a response is lost":              {Op: "optim_step", Do: fault.DropAnswer},
		"the server rejects an operation": {Op: "load_weights", Do: fault.Refuse, Status: 503},
	}
	for name, rule := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim, checker := server(t, chain())
			checker.Features = optimizer
			addFaults(t, sim, rule)
			if diff := cmp.Diff(map[capability.Feature]capability.Support{}, lacks(run(t, checker), optimizer)); diff != "" {
				t.Errorf("missing features (-want +got):\n%s", diff)
			}
			if hits := sim.Faults().List()[0].Hits; hits == 0 {
				t.Error("no fault was injected")
			}
		})
	}
}

func TestPersistentErrorsAreUnknown(t *testing.T) {
	sim, checker := server(t, chain())
	addFaults(t, sim, fault.Rule{Op: "load_weights", Count: -1, Do: fault.Fail, Category: "server"})
	report := run(t, checker)
	if report.Of(capability.OptimizerRestore) != capability.Unknown ||
		report.Of(capability.OptimizerReset) != capability.Unknown {
		t.Errorf("findings about a server that fails at loads: %v", report.Findings)
	}
	if missing := report.Missing([]capability.Feature{capability.OptimizerRestore, capability.Seed}); !cmp.Equal(missing,
		[]capability.Feature{capability.OptimizerRestore}) {
		t.Errorf("missing features %v", missing)
	}
}

// TestLostMeasurementOfGradients fails the first measurement after a step. The first pass measures the new first model,
// and the next four the models that step at once, so that the sixth follows a step.
func TestLostMeasurementOfGradients(t *testing.T) {
	sim, checker := server(t, chain())
	checker.Features = []capability.Feature{capability.GradientSum}
	addFaults(t, sim, fault.Rule{Op: "forward", Occurrence: 6, Do: fault.Fail, Category: "server"})
	if report := run(t, checker); report.Of(capability.GradientSum) != capability.Supported {
		t.Errorf("gradient_sum is %v", report.Findings[capability.GradientSum])
	}
	for _, rule := range sim.Faults().List() {
		if rule.Hits != 1 {
			t.Errorf("the fault was injected %d times, want once", rule.Hits)
		}
	}
}

// TestCheckWithoutCheckpoint checks gradients and repeats alone: the check finds the same as a check of more features,
// and saves nothing.
func TestCheckWithoutCheckpoint(t *testing.T) {
	averaged := editPass(func(r *tinker.ForwardBackwardRequest) {
		for _, datum := range r.Data {
			advantages, err := datum.LossFnInputs[tinker.InputAdvantages].Dense()
			if err != nil || len(advantages.Float) == 0 {
				continue
			}
			for i := range advantages.Float {
				advantages.Float[i] /= float32(len(r.Data))
			}
			datum.LossFnInputs[tinker.InputAdvantages] = tinker.Floats(advantages.Float)
		}
	})
	for name, tc := range map[string]struct {
		middleware middleware
		dialect    string
	}{
		"sums":                      {middleware: chain()},
		"averages of sequences":     {middleware: averaged},
		"sums, and reads JSON only": {middleware: chain(), dialect: dialect.NameJSON},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			features := []capability.Feature{capability.Protobuf, capability.GradientSum, capability.Repeats}
			sim, checker := serverWith(t, tinkersim.Options{Dialect: tc.dialect}, tc.middleware)
			checker.Features = features
			alone := run(t, checker)
			if saved := sim.Stats().Operations["save_weights"] + sim.Stats().Operations["save_weights_for_sampler"]; saved > 0 {
				t.Errorf("%d checkpoints were saved", saved)
			}
			checker.Features = append(features, capability.Adam("beta1"))
			all := run(t, checker)
			for _, f := range features {
				if alone.Of(f) != all.Of(f) || alone.Of(f) == capability.Unknown {
					t.Errorf("%s is %s alone and %s in a check of more: %v", f, alone.Of(f), all.Of(f), alone.Findings)
				}
			}
		})
	}
}

// TestServerWithoutLogprobs uses a server whose passes return no log-probabilities: the check finds most features
// unknown, and none missing.
func TestServerWithoutLogprobs(t *testing.T) {
	_, checker := server(t, editOutput(func(r *tinker.ForwardBackwardResult) { r.LossFnOutputs = nil }))
	report := run(t, checker)
	for f, found := range report.Findings {
		if report.Lacks(f) {
			t.Errorf("%s is %s: %s", f, found.Support, found.Note)
		}
	}
	if report.Of(capability.OptimizerRestore) != capability.Unknown || report.Of(capability.Seed) != capability.Supported {
		t.Errorf("findings are %v", report.Findings)
	}
}

// TestSavesWithoutTTL uses a server that rejects TTLs.
func TestSavesWithoutTTL(t *testing.T) {
	_, checker := server(t, chain(
		editJSON("save_weights", rejectField("ttl_seconds")),
		editJSON("save_weights_for_sampler", rejectField("ttl_seconds")),
	))
	checker.Features = append([]capability.Feature{capability.Seed}, optimizer...)
	if diff := cmp.Diff(map[capability.Feature]capability.Support{},
		lacks(run(t, checker), checker.Features)); diff != "" {
		t.Errorf("missing features (-want +got):\n%s", diff)
	}
}

// rejectField makes a request invalid if it has the field.
func rejectField(field string) func(map[string]any) {
	return func(body map[string]any) {
		if _, ok := body[field]; ok {
			body["seq_id"] = "none"
		}
	}
}

// TestRejectedSteps uses a server that rejects steps: the check finds the features of steps unknown, and none missing.
func TestRejectedSteps(t *testing.T) {
	_, checker := server(t, editJSON("optim_step", func(body map[string]any) { body["seq_id"] = "none" }))
	report := run(t, checker)
	for f := range report.Findings {
		if report.Lacks(f) {
			t.Errorf("%s is %v", f, report.Findings[f])
		}
	}
	if report.Of(capability.OptimizerRestore) != capability.Unknown || report.Of(capability.Seed) != capability.Supported {
		t.Errorf("findings are %v", report.Findings)
	}
}

// TestLossRejectedAtSubmit uses a server that rejects a loss when a pass is submitted, and not in its result.
func TestLossRejectedAtSubmit(t *testing.T) {
	for _, name := range []tinker.LossName{tinker.LossDRO, tinker.LossCrossEntropy} {
		t.Run(string(name), func(t *testing.T) {
			_, checker := server(t, editBody("forward_backward", func(body []byte) []byte {
				if request, err := tinker.DecodeForwardBackward(body); err == nil && request.Loss.Name == name {
					return []byte("\xff")
				}
				return body
			}))
			checker.Features = slices.Concat(losses, optimizer)
			report := run(t, checker)
			for _, f := range checker.Features {
				want := capability.Supported
				if strings.HasPrefix(string(f), "loss."+string(name)) {
					want = capability.Unsupported
				}
				if got := report.Of(f); got != want && f != capability.LossFormula(name) {
					t.Errorf("%s is %v, want %s", f, report.Findings[f], want)
				}
			}
		})
	}
}

func TestRejectedRank(t *testing.T) {
	var mu sync.Mutex
	ranks := map[string]bool{}
	_, checker := server(t, editJSON("create_model", func(body map[string]any) {
		lora := body["lora_config"].(map[string]any)
		if rank := lora["rank"].(interface{ String() string }).String(); rank == "1" {
			lora["rank"] = 0 // like a server that requires a higher rank
		} else {
			mu.Lock()
			defer mu.Unlock()
			ranks[rank] = true
		}
	}))
	checker.Features = []capability.Feature{capability.OptimizerRestore}
	if report := run(t, checker); report.Of(capability.OptimizerRestore) != capability.Supported || !cmp.Equal(ranks,
		map[string]bool{"8": true}) {
		t.Errorf("ranks %v, findings %v", ranks, report.Findings)
	}
}

func TestErrorsThatEndTheCheck(t *testing.T) {
	cases := map[string]struct {
		change     func(*capability.Checker)
		middleware middleware
		want       tinker.Category
	}{
		"a rejected key": {want: tinker.CategoryUnauthorized, middleware: respondWith("POST", "/load_weights", 401,
			`{"detail":"no"}`)},
		"an unknown model": {want: tinker.CategoryUser, change: func(p *capability.Checker) { p.Model = "none" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.middleware == nil {
				tc.middleware = chain()
			}
			_, checker := server(t, tc.middleware)
			if tc.change != nil {
				tc.change(&checker)
			}
			if _, err := checker.Run(t.Context()); client.CategoryFrom(err) != tc.want {
				t.Errorf("Run = %v, want %s", err, tc.want)
			}
		})
	}
	t.Run("a canceled context", func(t *testing.T) {
		sim, checker := server(t, chain())
		ctx, cancel := context.WithCancel(t.Context())
		addFaults(t, sim, fault.Rule{ID: "held", Op: "load_weights", Do: fault.Hold, Count: -1})
		go func() {
			for sim.Faults().List()[0].Holding == 0 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		if _, err := checker.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestCleanUp(t *testing.T) {
	_, checker := server(t, chain())
	run(t, checker)
	for checkpoint, err := range checker.API.Checkpoints(t.Context()) {
		t.Errorf("%s remains (%v)", checkpoint.TinkerPath, err)
	}
}

// TestOutageAtGradients makes every step in the check of gradients fail. The check ends with an error only at a server
// that reads JSON alone: there the run needs the answer, and waits for it.
func TestOutageAtGradients(t *testing.T) {
	const stepsBefore = 3
	for _, name := range []string{dialect.Protobuf, dialect.NameJSON} {
		sim, checker := serverWith(t, tinkersim.Options{Dialect: name}, chain())
		checker.Features = []capability.Feature{capability.Protobuf, capability.GradientSum}
		addFaults(t, sim, fault.Rule{Op: "optim_step", Occurrence: stepsBefore + 1, Count: -1, Do: fault.Fail,
			Category: "server"})
		report, err := checker.Run(t.Context())
		if ended := err != nil; ended != (name == dialect.NameJSON) {
			t.Errorf("dialect %q: the check ended with %v and %v", name, err, report.Findings)
		}
	}
}

// TestSlowSaveOfNewestWeights checks a server like SkyRL: once a model has moved on, the server saves its newest
// weights and samples from these, so that saved weights are no snapshot. The check must find this out even if polls are
// held for less time than the save takes.
func TestSlowSaveOfNewestWeights(t *testing.T) {
	sim, checker := serverWith(t, tinkersim.Options{Dialect: dialect.NameSkyRL, PollHold: time.Millisecond,
		PollPatience: time.Millisecond}, chain())
	checker.Features = []capability.Feature{capability.Protobuf, capability.SamplerSnapshot}
	addFaults(t, sim, fault.Rule{Op: "save_weights_for_sampler", Name: "live-", Count: -1, Do: fault.Pause, Seconds: 0.1})
	report := run(t, checker)
	if got := report.Findings[capability.SamplerSnapshot].Support; got != capability.Unsupported {
		t.Errorf("sampler_snapshot is %v, want %v", got, capability.Unsupported)
	}
	if sim.Faults().List()[0].Hits == 0 {
		t.Error("the newest weights were not saved")
	}
}
