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
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

func TestTroubleThatPassesChangesNothing(t *testing.T) {
	cases := map[string]fault.Rule{
		"a model is not made":              {Op: "create_model", Do: fault.Fail, Category: "server"},
		"the third model is not made":      {Op: "create_model", Occurrence: 3, Do: fault.Fail, Category: "server"},
		"a pass fails":                     {Op: "forward_backward", Occurrence: 2, Do: fault.Fail, Category: "server"},
		"a pass of a trial fails":          {Op: "forward_backward", Occurrence: 6, Do: fault.Fail, Category: "unknown"},
		"the promise of a step is lost":    {Op: "optim_step", Occurrence: 5, Do: fault.LoseFuture},
		"the save fails, but was done":     {Op: "save_weights", Do: fault.Fail, Stage: fault.Reply, Category: "server"},
		"a load fails twice":               {Op: "load_weights", Count: 2, Do: fault.Fail, Category: "server"},
		"an answer is lost":                {Op: "optim_step", Do: fault.DropAnswer},
		"the server is overloaded at once": {Op: "load_weights", Do: fault.Refuse, Status: 503},
	}
	for name, rule := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim, probe := server(t, all())
			probe.Features = optimizer
			script(t, sim, rule)
			if diff := cmp.Diff(map[capability.Feature]capability.Support{}, lacks(run(t, probe), optimizer)); diff != "" {
				t.Errorf("what is lacking (-want +got):\n%s", diff)
			}
			if hits := sim.Faults().List()[0].Hits; hits == 0 {
				t.Error("nothing was struck")
			}
		})
	}
}

func TestWhatStaysBrokenIsUnknown(t *testing.T) {
	sim, probe := server(t, all())
	script(t, sim, fault.Rule{Op: "load_weights", Count: -1, Do: fault.Fail, Category: "server"})
	report := run(t, probe)
	if report.Of(capability.OptimizerRestore) != capability.Unknown || report.Of(capability.OptimizerReset) != capability.Unknown {
		t.Errorf("a server that fails at loads is said to be %v", report.Findings)
	}
	if missing := report.Missing([]capability.Feature{capability.OptimizerRestore, capability.Seed}); !cmp.Equal(missing, []capability.Feature{capability.OptimizerRestore}) {
		t.Errorf("missing are %v", missing)
	}
}

// TestAServerWithoutLogprobs leaves most unknown, and nothing wrong.
func TestAServerWithoutLogprobs(t *testing.T) {
	_, probe := server(t, outputs(func(r *tinker.ForwardBackwardResult) { r.LossFnOutputs = nil }))
	report := run(t, probe)
	for f, found := range report.Findings {
		if report.Lacks(f) {
			t.Errorf("%s is %s: %s", f, found.Support, found.Note)
		}
	}
	if report.Of(capability.OptimizerRestore) != capability.Unknown || report.Of(capability.Seed) != capability.Supported {
		t.Errorf("findings are %v", report.Findings)
	}
}

// TestSavesWithoutATimeToLive: a server may refuse one.
func TestSavesWithoutATimeToLive(t *testing.T) {
	_, probe := server(t, all(
		rewriting("save_weights", refusing("ttl_seconds")), rewriting("save_weights_for_sampler", refusing("ttl_seconds")),
	))
	probe.Features = append([]capability.Feature{capability.Seed}, optimizer...)
	if diff := cmp.Diff(map[capability.Feature]capability.Support{}, lacks(run(t, probe), probe.Features)); diff != "" {
		t.Errorf("what is lacking (-want +got):\n%s", diff)
	}
}

// refusing makes a request invalid if it has that field.
func refusing(field string) func(map[string]any) {
	return func(body map[string]any) {
		if _, ok := body[field]; ok {
			body["seq_id"] = "none"
		}
	}
}

// TestStepsThatAreRefused leave unknown what they would have told.
func TestStepsThatAreRefused(t *testing.T) {
	_, probe := server(t, rewriting("optim_step", func(body map[string]any) { body["seq_id"] = "none" }))
	report := run(t, probe)
	for f := range report.Findings {
		if report.Lacks(f) {
			t.Errorf("%s is %v", f, report.Findings[f])
		}
	}
	if report.Of(capability.OptimizerRestore) != capability.Unknown || report.Of(capability.Seed) != capability.Supported {
		t.Errorf("findings are %v", report.Findings)
	}
}

// TestALossThatIsRefusedAtOnce, and not by its result, leaves the rest to be found.
func TestALossThatIsRefusedAtOnce(t *testing.T) {
	for _, name := range []string{"dro", "cross_entropy"} {
		t.Run(name, func(t *testing.T) {
			_, probe := server(t, editing("forward_backward", func(body []byte) []byte {
				if request, err := tinker.DecodeForwardBackward(body); err == nil && request.Loss.Name == name {
					return []byte("\xff")
				}
				return body
			}))
			probe.Features = slices.Concat(losses, optimizer)
			report := run(t, probe)
			for _, f := range probe.Features {
				want := capability.Supported
				if strings.HasPrefix(string(f), "loss."+name) {
					want = capability.Unsupported
				}
				if got := report.Of(f); got != want && f != capability.LossFormula(name) {
					t.Errorf("%s is %v, want %s", f, report.Findings[f], want)
				}
			}
		})
	}
}

func TestALowestRankThatIsRefused(t *testing.T) {
	var mu sync.Mutex
	ranks := map[string]bool{}
	_, probe := server(t, rewriting("create_model", func(body map[string]any) {
		lora := body["lora_config"].(map[string]any)
		if rank := lora["rank"].(interface{ String() string }).String(); rank == "1" {
			lora["rank"] = 0 // as a server that wants more
		} else {
			mu.Lock()
			defer mu.Unlock()
			ranks[rank] = true
		}
	}))
	probe.Features = []capability.Feature{capability.OptimizerRestore}
	if report := run(t, probe); report.Of(capability.OptimizerRestore) != capability.Supported || !cmp.Equal(ranks, map[string]bool{"8": true}) {
		t.Errorf("of ranks %v was found %v", ranks, report.Findings)
	}
}

func TestWhatEndsAProbe(t *testing.T) {
	cases := map[string]struct {
		change func(*capability.Probe)
		door   door
		want   tinker.Category
	}{
		"a key that is refused": {want: tinker.CategoryUnauthorized, door: answering("POST", "/load_weights", 401, `{"detail":"no"}`)},
		"a model that is none":  {want: tinker.CategoryUser, change: func(p *capability.Probe) { p.Model = "none" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.door == nil {
				tc.door = all()
			}
			_, probe := server(t, tc.door)
			if tc.change != nil {
				tc.change(&probe)
			}
			if _, err := probe.Run(t.Context()); client.CategoryFrom(err) != tc.want {
				t.Errorf("Run gives %v, want %s", err, tc.want)
			}
		})
	}
	t.Run("the end of its context", func(t *testing.T) {
		sim, probe := server(t, all())
		ctx, cancel := context.WithCancel(t.Context())
		script(t, sim, fault.Rule{ID: "held", Op: "load_weights", Do: fault.Hold, Count: -1})
		go func() {
			for sim.Faults().List()[0].Holding == 0 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		if _, err := probe.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run gives %v", err)
		}
	})
}

func TestNothingIsLeftBehind(t *testing.T) {
	_, probe := server(t, all())
	run(t, probe)
	for checkpoint, err := range probe.API.Checkpoints(t.Context()) {
		t.Errorf("left is %s (%v)", checkpoint.TinkerPath, err)
	}
}
