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

// server starts a simulator behind a middleware, and returns it with a checker of all features.
func server(t *testing.T, wrap middleware) (*tinkersim.Server, capability.Checker) {
	t.Helper()
	return serverWith(t, tinkersim.Options{}, wrap)
}

// serverWith starts a simulator with options.
func serverWith(t *testing.T, options tinkersim.Options, wrap middleware) (*tinkersim.Server, capability.Checker) {
	t.Helper()
	options.Dir, options.APIKey = t.TempDir(), key
	sim, err := tinkersim.New(options)
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(wrap(sim))
	t.Cleanup(func() {
		sim.Close()
		listening.CloseClientConnections()
		listening.Close()
	})
	api, err := client.New(client.Config{BaseURL: listening.URL, APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	return sim, capability.Checker{
		API: api, BaseURL: listening.URL, Model: tinkersim.ModelName, Features: capability.All(),
		Lora:         tinker.LoraConfig{Rank: 8, TrainAttn: true, TrainMLP: true, TrainUnembed: true},
		UserMetadata: tinker.Metadata{"run": "uid"}, Patience: 5 * time.Minute,
	}
}

func addFaults(t *testing.T, sim *tinkersim.Server, rules ...fault.Rule) {
	t.Helper()
	if _, err := sim.Faults().Add(rules); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, p capability.Checker) capability.Report {
	t.Helper()
	report, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// These are the features, grouped by the operations that try them. A test checks only the features that it needs.
var (
	optimizer = withPrefix("optimizer", "adam")
	losses    = withPrefix("loss")
	modules   = []capability.Feature{capability.TrainModules}
	sampling  = []capability.Feature{capability.Seed, capability.NumSamples, capability.Temperature, capability.TopK,
		capability.TopP, capability.PromptLogprobs,
		capability.PromptLogprobsLastN}
	listings = []capability.Feature{
		capability.ListModels, capability.ListCheckpoints, capability.UserMetadata, capability.TTL,
		capability.DeleteCheckpoint, capability.UnloadModel,
	}
)

// withPrefix returns the features whose names have one of the prefixes.
func withPrefix(prefixes ...string) []capability.Feature {
	return slices.DeleteFunc(capability.All(), func(f capability.Feature) bool {
		return !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(string(f), prefix) })
	})
}

// lacks returns the features that are not supported according to the report.
func lacks(report capability.Report, features []capability.Feature) map[capability.Feature]capability.Support {
	lacking := map[capability.Feature]capability.Support{}
	for _, f := range features {
		if support := report.Of(f); support != capability.Supported {
			lacking[f] = support
		}
	}
	return lacking
}

type supports map[capability.Feature]capability.Support

// TestSessionsOfTheCheckAreFinished checks that the check ends all its sessions, even if it has to make its first model
// again.
func TestSessionsOfTheCheckAreFinished(t *testing.T) {
	sim, checker := server(t, chain())
	checker.Features = listings
	addFaults(t, sim, fault.Rule{Op: "forward_backward", Do: fault.LoseFuture, Count: 1})
	run(t, checker)
	calls := sim.Stats().Calls
	if calls["create_session"] == 0 || calls["finish_session"] != calls["create_session"] {
		t.Errorf("%d of %d sessions are finished", calls["finish_session"], calls["create_session"])
	}
}

func TestSimulatorSupportsEverything(t *testing.T) {
	sim, checker := server(t, chain())
	report := run(t, checker)
	if lacking := lacks(report, capability.All()); len(lacking) > 0 {
		t.Errorf("the simulator lacks %v", report.Findings)
	}
	if list := sim.Faults().List(); len(list) > 0 {
		t.Errorf("faults remain: %v", list)
	}
}

// TestIgnoredFeatures uses servers that report success and do something else.
func TestIgnoredFeatures(t *testing.T) {
	const supported, ignored, unsupported, unknown = capability.Supported, capability.Ignored, capability.Unsupported,
		capability.Unknown
	cases := map[string]struct {
		features   []capability.Feature
		middleware middleware
		rules      []fault.Rule
		want       supports
	}{
		"the optimizer's state is not restored": {features: optimizer,
			rules: []fault.Rule{{Op: "load_weights", Do: fault.ColdAdam, Count: -1}},
			want:  supports{capability.OptimizerRestore: ignored},
		},
		"the optimizer's state is always restored": {features: optimizer,
			middleware: editJSON("load_weights", func(body map[string]any) { body["optimizer"] = true }),
			want:       supports{capability.OptimizerReset: ignored},
		},
		"without momentum there is no state either": {features: optimizer,
			middleware: chain(ignoreAdam("beta1", 0), ignoreAdam("beta2", 0)),
			want: supports{"adam.beta1": ignored, "adam.beta2": ignored, capability.OptimizerRestore: ignored,
				capability.OptimizerReset: ignored},
		},
		"beta1": {features: optimizer, middleware: ignoreAdam("beta1", 0.9), want: supports{"adam.beta1": ignored}},
		"beta2": {features: optimizer, middleware: ignoreAdam("beta2", 0.999), want: supports{"adam.beta2": ignored}},
		"eps":   {features: optimizer, middleware: ignoreAdam("eps", 1e-8), want: supports{"adam.eps": ignored}},
		"weight decay": {features: optimizer, middleware: ignoreAdam("weight_decay", 0),
			want: supports{"adam.weight_decay": ignored}},
		"weight decay of every model, which is no reason to doubt": {features: append(slices.Clone(optimizer),
			capability.GradientSum), middleware: decayEverywhere(), want: supports{}},
		"clipping": {features: optimizer, middleware: ignoreAdam("grad_clip_norm", 0),
			want: supports{"adam.grad_clip_norm": ignored}},
		"a learning rate": {features: optimizer, middleware: ignoreAdam("learning_rate", 1e-4),
			want: supports{"adam.learning_rate": ignored}},
		"the lower bound of ppo": {features: losses, middleware: ignoreLossSetting("ppo", "clip_low_threshold", 0.8),
			want: supports{"loss.ppo.clip_low_threshold": ignored}},
		"the upper bound of ppo": {features: losses, middleware: ignoreLossSetting("ppo", "clip_high_threshold", 1.2),
			want: supports{"loss.ppo.clip_high_threshold": ignored}},
		"another bound of cispo": {features: losses, middleware: ignoreLossSetting("cispo", "clip_high_threshold", 4),
			want: supports{"loss.cispo.clip_high_threshold": ignored, "loss.cispo.formula": unsupported}},
		"the mask of gspo, which SkyRL 0.4.0 does not read": {features: losses,
			middleware: editPass(func(r *tinker.ForwardBackwardRequest) {
				for _, d := range r.Data {
					delete(d.LossFnInputs, "sequence_ratio_mask")
				}
			}),
			// Both sequences then have the ratio 1, which no bound changes.
			want: supports{"loss.gspo.sequence_ratio_mask": ignored, "loss.gspo.formula": unsupported,
				"loss.gspo.clip_low_threshold": ignored, "loss.gspo.clip_high_threshold": ignored}},
		"a bound of gspo": {features: losses, middleware: ignoreLossSetting("gspo", "clip_low_threshold", 0.8),
			want: supports{"loss.gspo.clip_low_threshold": ignored}},
		"gspo that is ppo": {features: losses, middleware: editPass(func(r *tinker.ForwardBackwardRequest) {
			if r.Loss.Name == "gspo" {
				r.Loss.Name = "ppo"
				for _, d := range r.Data {
					delete(d.LossFnInputs, "sequence_ratio_mask")
				}
			}
		}), want: supports{"loss.gspo.sequence_ratio_mask": ignored}},
		"beta of dro": {features: losses, middleware: ignoreLossSetting("dro", "beta", 0.05),
			want: supports{"loss.dro.beta": ignored}},
		"a bound, where passes have no metrics": {features: losses,
			middleware: chain(withoutMetrics(), ignoreLossSetting("ppo", "clip_high_threshold", 1.2)),
			want: supports{
				"loss.ppo.clip_high_threshold": ignored, capability.LossSum: unknown, "loss.ppo.formula": unknown,
				"loss.cispo.formula": unknown, "loss.gspo.formula": unknown, "loss.gspo.sequence_ratio_mask": unknown,
				"loss.dro.formula": unknown, "loss.importance_sampling.formula": unknown, "loss.cross_entropy.formula": unknown,
			},
		},
		"a missing loss": {features: losses,
			middleware: withoutLoss("dro"), want: supports{"loss.dro": unsupported, "loss.dro.beta": unsupported,
				"loss.dro.formula": unknown},
		},
		"losses are averaged": {features: losses,
			middleware: editOutput(func(r *tinker.ForwardBackwardResult) {
				r.Metrics["loss:sum"] /= float64(len(r.LossFnOutputs))
			}),
			want: supports{capability.LossSum: unsupported, "loss.gspo.formula": unsupported}, // GSPO is tried with two datums
		},
		"the flags of trained modules": {features: modules,
			middleware: editJSON("create_model", func(body map[string]any) {
				lora := body["lora_config"].(map[string]any)
				lora["train_mlp"], lora["train_attn"], lora["train_unembed"] = true, true, true
			}),
			want: supports{capability.TrainModules: ignored},
		},
		"seeds, with different samples": {features: sampling,
			rules: []fault.Rule{{Op: "asample", Do: fault.IgnoreSeed, Count: -1}},
			want: supports{capability.Seed: ignored, capability.NumSamples: ignored,
				capability.Temperature: capability.Supported},
		},
		"the places of the samples of a request": {features: sampling,
			rules: []fault.Rule{{Op: "asample", Do: fault.ReorderSamples, Count: -1}},
			want:  supports{capability.Seed: supported, capability.NumSamples: ignored},
		},
		"the number of samples, of which one is repeated": {features: sampling,
			middleware: editSamples(func(r *tinker.SampleResult) {
				for i := range r.Sequences {
					r.Sequences[i] = r.Sequences[0]
				}
			}),
			want: supports{capability.Seed: unknown, capability.NumSamples: ignored, capability.Temperature: unknown,
				capability.TopK: unknown, capability.TopP: unknown},
		},
		"seeds, with equal samples": {features: sampling,
			middleware: editJSON("asample", func(body map[string]any) { body["sampling_params"].(map[string]any)["seed"] = 7 }),
			want: supports{capability.Seed: ignored, capability.Temperature: supported, capability.TopK: supported,
				capability.TopP: supported},
		},
		"the temperature": {features: sampling,
			middleware: editJSON("asample", func(body map[string]any) {
				body["sampling_params"].(map[string]any)["temperature"] = 1
			}),
			want: supports{capability.Temperature: ignored},
		},
		"top_k and top_p": {features: sampling,
			middleware: editJSON("asample", func(body map[string]any) {
				params := body["sampling_params"].(map[string]any)
				params["top_k"], params["top_p"] = -1, 1
			}),
			want: supports{capability.TopK: ignored, capability.TopP: ignored},
		},
		"a missing log-probability of a prompt": {features: sampling,
			middleware: editSamples(func(r *tinker.SampleResult) {
				r.PromptLogprobs = r.PromptLogprobs[:max(0, len(r.PromptLogprobs)-2)]
			}),
			want: supports{capability.PromptLogprobs: unsupported, capability.PromptLogprobsLastN: unsupported},
		},
		"no place for the first token of a prompt, as at SkyRL": {features: sampling,
			middleware: editSamples(func(r *tinker.SampleResult) {
				r.PromptLogprobs = r.PromptLogprobs[min(1, len(r.PromptLogprobs)):]
			}),
			want: supports{},
		},
		"a part of a prompt": {features: sampling,
			middleware: editJSON("asample", func(body map[string]any) { delete(body, "prompt_logprobs_last_n") }),
			want:       supports{capability.PromptLogprobsLastN: ignored},
		},
		"a part of a prompt, which is refused": {features: sampling,
			middleware: editJSON("asample", func(body map[string]any) {
				if _, given := body["prompt_logprobs_last_n"]; given {
					body["prompt_logprobs_last_n"] = 1 << 20
				}
			}),
			want: supports{capability.PromptLogprobsLastN: unsupported},
		},
		"log-probabilities of a prompt shifted by one": {features: sampling,
			middleware: editSamples(func(r *tinker.SampleResult) {
				if n := len(r.PromptLogprobs); n > 0 {
					r.PromptLogprobs = append(r.PromptLogprobs[1:], 0)
				}
			}),
			want: supports{capability.PromptLogprobs: unsupported, capability.PromptLogprobsLastN: ignored},
		},
		"metadata of models": {features: listings,
			middleware: editJSON("create_model", func(body map[string]any) { delete(body, "user_metadata") }),
			want:       supports{capability.UserMetadata: ignored},
		},
		"TTLs": {features: listings, middleware: respondWith("PUT", "/ttl", 200, "null"),
			want: supports{capability.TTL: ignored}},
		"empty listings": {features: listings,
			middleware: chain(
				respondWith("GET", "/api/v1/checkpoints", 200,
					`{"checkpoints":[],"cursor":{"offset":0,"limit":100,"total_count":0}}`),
				respondWith("GET", "/api/v1/training_runs", 200,
					`{"training_runs":[],"cursor":{"offset":0,"limit":100,"total_count":0}}`),
			),
			// The call for one model is answered with a listing as well.
			want: supports{
				capability.ListCheckpoints: ignored, capability.ListModels: ignored, capability.TTL: unknown,
				capability.UserMetadata: unsupported,
			},
		},
		"missing endpoints": {features: listings,
			middleware: chain(
				respondWith("GET", "/api/v1/checkpoints", 404, `{"detail":"Not Found"}`),
				respondWith("GET", "/api/v1/training_runs", 404, `{"detail":"Not Found"}`),
				respondWith("PUT", "/ttl", 405, `{"detail":"no"}`), respondWith("DELETE", "/checkpoints", 405, `{"detail":"no"}`),
				respondWith("POST", "/unload_model", 404, `{"detail":"Not Found"}`),
			),
			want: supports{
				capability.ListCheckpoints: unsupported, capability.ListModels: unsupported, capability.TTL: unsupported,
				capability.UserMetadata: unsupported, capability.DeleteCheckpoint: unsupported, capability.UnloadModel: unsupported,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.middleware == nil {
				tc.middleware = chain()
			}
			sim, checker := server(t, tc.middleware)
			checker.Features = tc.features
			addFaults(t, sim, tc.rules...)
			report := run(t, checker)
			maps.DeleteFunc(tc.want, func(_ capability.Feature, s capability.Support) bool { return s == capability.Supported })
			if diff := cmp.Diff(map[capability.Feature]capability.Support(tc.want), lacks(report, tc.features)); diff != "" {
				t.Errorf("missing features (-want +got):\n%s%v", diff, report.Findings)
			}
		})
	}
}
