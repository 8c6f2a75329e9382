// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability_test

import (
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

const key = "tml-probe"

// server is a simulator behind whatever is put before it.
func server(t *testing.T, before door) (*tinkersim.Server, capability.Probe) {
	t.Helper()
	sim, err := tinkersim.New(tinkersim.Options{Dir: t.TempDir(), APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(before(sim))
	t.Cleanup(func() {
		sim.Close()
		listening.CloseClientConnections()
		listening.Close()
	})
	api, err := client.New(client.Config{BaseURL: listening.URL, APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	return sim, capability.Probe{
		API: api, BaseURL: listening.URL, Model: tinkersim.ModelName, Features: capability.All(),
		Lora:         tinker.LoraConfig{Rank: 8, TrainAttn: true, TrainMLP: true, TrainUnembed: true},
		UserMetadata: tinker.Metadata{"run": "uid"}, Patience: 5 * time.Minute,
	}
}

func script(t *testing.T, sim *tinkersim.Server, rules ...fault.Rule) {
	t.Helper()
	if _, err := sim.Faults().Add(rules); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, p capability.Probe) capability.Report {
	t.Helper()
	report, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// The features by what is tried for them: a test asks about those that it is about.
var (
	optimizer = about("optimizer", "adam")
	losses    = about("loss")
	modules   = []capability.Feature{capability.TrainModules}
	sampling  = []capability.Feature{capability.Seed, capability.Temperature, capability.TopK, capability.TopP, capability.PromptLogprobs}
	records   = []capability.Feature{
		capability.ListModels, capability.ListCheckpoints, capability.UserMetadata, capability.TTL, capability.DeleteCheckpoint, capability.UnloadModel,
	}
)

// about gives the features whose names begin so.
func about(prefixes ...string) []capability.Feature {
	return slices.DeleteFunc(capability.All(), func(f capability.Feature) bool {
		return !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(string(f), prefix) })
	})
}

// lacks are those of the features that the report does not say to be supported.
func lacks(report capability.Report, features []capability.Feature) map[capability.Feature]capability.Support {
	lacking := map[capability.Feature]capability.Support{}
	for _, f := range features {
		if support := report.Of(f); support != capability.Supported {
			lacking[f] = support
		}
	}
	return lacking
}

type found map[capability.Feature]capability.Support

func TestSimulatorSupportsEverything(t *testing.T) {
	sim, probe := server(t, all())
	report := run(t, probe)
	if lacking := lacks(report, capability.All()); len(lacking) > 0 {
		t.Errorf("the simulator lacks %v", report.Findings)
	}
	if list := sim.Faults().List(); len(list) > 0 {
		t.Errorf("faults are left: %v", list)
	}
}

// TestWhatAServerIgnoresIsFound has servers that answer with success and do something else.
func TestWhatAServerIgnoresIsFound(t *testing.T) {
	const ignored, unsupported, unknown = capability.Ignored, capability.Unsupported, capability.Unknown
	cases := map[string]struct {
		features []capability.Feature
		door     door
		rules    []fault.Rule
		want     found
	}{
		"the optimizer's state is not restored": {features: optimizer,
			rules: []fault.Rule{{Op: "load_weights", Do: fault.ColdAdam, Count: -1}},
			want:  found{capability.OptimizerRestore: ignored},
		},
		"the optimizer's state is always restored": {features: optimizer,
			door: rewriting("load_weights", func(body map[string]any) { body["optimizer"] = true }),
			want: found{capability.OptimizerReset: ignored},
		},
		"there is no momentum, so there is no state either": {features: optimizer,
			door: all(adam("beta1", 0), adam("beta2", 0)),
			want: found{"adam.beta1": ignored, "adam.beta2": ignored, capability.OptimizerRestore: ignored, capability.OptimizerReset: ignored},
		},
		"beta1":                          {features: optimizer, door: adam("beta1", 0.9), want: found{"adam.beta1": ignored}},
		"beta2":                          {features: optimizer, door: adam("beta2", 0.999), want: found{"adam.beta2": ignored}},
		"eps":                            {features: optimizer, door: adam("eps", 1e-8), want: found{"adam.eps": ignored}},
		"weight decay":                   {features: optimizer, door: adam("weight_decay", 0), want: found{"adam.weight_decay": ignored}},
		"clipping":                       {features: optimizer, door: adam("grad_clip_norm", 0), want: found{"adam.grad_clip_norm": ignored}},
		"a learning rate":                {features: optimizer, door: adam("learning_rate", 1e-4), want: found{"adam.learning_rate": ignored}},
		"the lower bound of ppo":         {features: losses, door: lossSetting("ppo", "clip_low_threshold", 0.8), want: found{"loss.ppo.clip_low_threshold": ignored}},
		"the upper bound of ppo":         {features: losses, door: lossSetting("ppo", "clip_high_threshold", 1.2), want: found{"loss.ppo.clip_high_threshold": ignored}},
		"another bound of cispo instead": {features: losses, door: lossSetting("cispo", "clip_high_threshold", 4), want: found{"loss.cispo.clip_high_threshold": ignored, "loss.cispo.formula": unsupported}},
		"beta of dro":                    {features: losses, door: lossSetting("dro", "beta", 0.05), want: found{"loss.dro.beta": ignored}},
		"a bound, where passes have no metrics": {features: losses,
			door: all(silent(), lossSetting("ppo", "clip_high_threshold", 1.2)),
			want: found{
				"loss.ppo.clip_high_threshold": ignored, capability.LossSum: unknown, "loss.ppo.formula": unknown, "loss.cispo.formula": unknown,
				"loss.dro.formula": unknown, "loss.importance_sampling.formula": unknown, "loss.cross_entropy.formula": unknown,
			},
		},
		"a loss that it does not have": {features: losses,
			door: noLoss("dro"), want: found{"loss.dro": unsupported, "loss.dro.beta": unsupported, "loss.dro.formula": unknown},
		},
		"losses are averaged": {features: losses,
			door: outputs(func(r *tinker.ForwardBackwardResult) { r.Metrics["loss:sum"] /= float64(len(r.LossFnOutputs)) }),
			want: found{capability.LossSum: unsupported},
		},
		"flags of what is trained": {features: modules,
			door: rewriting("create_model", func(body map[string]any) {
				lora := body["lora_config"].(map[string]any)
				lora["train_mlp"], lora["train_attn"], lora["train_unembed"] = true, true, true
			}),
			want: found{capability.TrainModules: ignored},
		},
		"seeds, each sample another": {features: sampling,
			rules: []fault.Rule{{Op: "asample", Do: fault.IgnoreSeed, Count: -1}},
			want:  found{capability.Seed: ignored, capability.Temperature: capability.Supported},
		},
		"seeds, all samples the same": {features: sampling,
			door: rewriting("asample", func(body map[string]any) { body["sampling_params"].(map[string]any)["seed"] = 7 }),
			want: found{capability.Seed: ignored, capability.Temperature: unknown, capability.TopK: unknown, capability.TopP: unknown},
		},
		"the temperature": {features: sampling,
			door: rewriting("asample", func(body map[string]any) { body["sampling_params"].(map[string]any)["temperature"] = 1 }),
			want: found{capability.Temperature: ignored},
		},
		"top_k and top_p": {features: sampling,
			door: rewriting("asample", func(body map[string]any) {
				params := body["sampling_params"].(map[string]any)
				params["top_k"], params["top_p"] = -1, 1
			}),
			want: found{capability.TopK: ignored, capability.TopP: ignored},
		},
		"one log-probability of a prompt too few": {features: sampling,
			door: samples(func(r *tinker.SampleResult) { r.PromptLogprobs = r.PromptLogprobs[min(1, len(r.PromptLogprobs)):] }),
			want: found{capability.PromptLogprobs: unsupported},
		},
		"log-probabilities of a prompt moved by one": {features: sampling,
			door: samples(func(r *tinker.SampleResult) {
				if n := len(r.PromptLogprobs); n > 0 {
					r.PromptLogprobs = append(r.PromptLogprobs[1:], 0)
				}
			}),
			want: found{capability.PromptLogprobs: unsupported},
		},
		"what is noted about models": {features: records,
			door: rewriting("create_model", func(body map[string]any) { delete(body, "user_metadata") }),
			want: found{capability.UserMetadata: ignored},
		},
		"times to live": {features: records, door: answering("PUT", "/ttl", 200, "null"), want: found{capability.TTL: ignored}},
		"lists that are empty": {features: records,
			door: all(
				answering("GET", "/api/v1/checkpoints", 200, `{"checkpoints":[],"cursor":{"offset":0,"limit":100,"total_count":0}}`),
				answering("GET", "/api/v1/training_runs", 200, `{"training_runs":[],"cursor":{"offset":0,"limit":100,"total_count":0}}`),
			),
			want: found{capability.ListCheckpoints: ignored, capability.ListModels: ignored, capability.TTL: unknown, capability.UserMetadata: ignored},
		},
		"endpoints that are none": {features: records,
			door: all(
				answering("GET", "/api/v1/checkpoints", 404, `{"detail":"Not Found"}`), answering("GET", "/api/v1/training_runs", 404, `{"detail":"Not Found"}`),
				answering("PUT", "/ttl", 405, `{"detail":"no"}`), answering("DELETE", "/checkpoints", 405, `{"detail":"no"}`),
				answering("POST", "/unload_model", 404, `{"detail":"Not Found"}`),
			),
			want: found{
				capability.ListCheckpoints: unsupported, capability.ListModels: unsupported, capability.TTL: unsupported,
				capability.UserMetadata: unsupported, capability.DeleteCheckpoint: unsupported, capability.UnloadModel: unsupported,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.door == nil {
				tc.door = all()
			}
			sim, probe := server(t, tc.door)
			probe.Features = tc.features
			script(t, sim, tc.rules...)
			report := run(t, probe)
			maps.DeleteFunc(tc.want, func(_ capability.Feature, s capability.Support) bool { return s == capability.Supported })
			if diff := cmp.Diff(map[capability.Feature]capability.Support(tc.want), lacks(report, tc.features)); diff != "" {
				t.Errorf("what is lacking (-want +got):\n%s%v", diff, report.Findings)
			}
		})
	}
}
