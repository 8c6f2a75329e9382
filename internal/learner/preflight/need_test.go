// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// plain returns the run file of a run that trains all parts of the model by importance_sampling, with the defaults.
func plain(change func(*contract.RunFile)) contract.RunFile {
	drawn := playing.Sampling{Temperature: new(1.0), TopP: 1}
	file := contract.RunFile{
		RequireOptimizer: true,
		Fixed: contract.Fixed{
			Model: contract.Model{Name: "m", TrainAttention: true, TrainMLP: true, TrainUnembed: true}, BaseURL: "http://u",
			Environments: []contract.Environment{{Name: "e", Sampling: drawn}},
			Algorithm: &algorithm.Algorithm{
				Loss: algorithm.Loss{Name: algorithm.LossImportanceSampling},
				Optimizer: algorithm.Optimizer{Beta1: new(0.9), Beta2: new(0.95),
					Epsilon: 1e-8},
			},
		},
		Evaluation: &contract.Evaluation{Environments: []contract.Environment{{Name: "e", Sampling: drawn}}},
	}
	if change != nil {
		change(&file)
	}
	return file
}

func TestNeedsOf(t *testing.T) {
	always := []string{"loss.importance_sampling", "adam.beta1", "adam.beta2"}
	cases := map[string]struct {
		change func(*contract.RunFile)
		want   []string
	}{
		"the defaults need little": {nil, always},
		"ppo needs its bounds": {
			func(f *contract.RunFile) {
				f.Fixed.Algorithm.Loss = algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.8), ClipHigh: new(1.2)}
			},
			[]string{"loss.ppo", "loss.ppo.clip_high_threshold", "loss.ppo.clip_low_threshold", "adam.beta1", "adam.beta2"},
		},
		"roles need their losses, each once": {
			func(f *contract.RunFile) {
				f.Fixed.Algorithm.Roles = []algorithm.Role{
					{Name: "critic", Loss: &algorithm.Loss{Name: algorithm.LossImportanceSampling}},
					{Name: "judge", Loss: &algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.8), ClipHigh: new(1.2)}},
					{Name: "solver", Loss: &algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.7), ClipHigh: new(1.3)}},
				}
			},
			[]string{"loss.importance_sampling", "loss.ppo", "loss.ppo.clip_high_threshold", "loss.ppo.clip_low_threshold",
				"adam.beta1", "adam.beta2"},
		},
		"an optimizer needs what it is given": {
			func(f *contract.RunFile) {
				o := &f.Fixed.Algorithm.Optimizer
				o.Epsilon, o.WeightDecay, o.GradClipNorm = 1e-3, 0.1, 1
			},
			append(always[:3:3], "adam.eps", "adam.weight_decay", "adam.grad_clip_norm"),
		},
		"a part of the matrices is a setting": {func(f *contract.RunFile) { f.Fixed.Model.TrainMLP = false },
			append(always[:3:3], "train_modules")},
		"a fresh optimizer is a setting": {func(f *contract.RunFile) { f.Fixed.InitFrom = &contract.InitFrom{} },
			append(always[:3:3], "optimizer_reset")},
		"a restored optimizer is not": {func(
			f *contract.RunFile) {
			f.Fixed.InitFrom = &contract.InitFrom{RestoreOptimizer: true}
		}, always},
		"evaluation may be sampled otherwise": {
			func(f *contract.RunFile) {
				f.Evaluation.Environments[0].Sampling = playing.Sampling{Temperature: new(0.6), TopP: 0.9, TopK: 20}
			},
			append([]string{"temperature", "top_p", "top_k"}, always...),
		},
		"a prompt of a group is shared by place": {
			func(f *contract.RunFile) {
				f.Fixed.Environments[0].Sampling.SharedPrompt, f.Fixed.Environments[0].GroupSize = new(true), 8
			},
			append([]string{"num_samples"}, always...),
		},
		"evaluations of several samples share prompts, too": {
			func(f *contract.RunFile) {
				f.Evaluation.Environments[0].Sampling.SharedPrompt, f.Evaluation.Environments[0].GroupSize = new(true), 4
			},
			append([]string{"num_samples"}, always...),
		},
		"one sample shares nothing": {
			func(f *contract.RunFile) {
				f.Evaluation.Environments[0].Sampling.SharedPrompt, f.Evaluation.Environments[0].GroupSize = new(true), 1
			}, always,
		},
		"a lag needs sampler weights that stay": {func(f *contract.RunFile) { f.Fixed.Algorithm.Lag = 1 },
			append(always[:3:3], "sampler_snapshot")},
		"a KL penalty reads log-probabilities": {
			func(f *contract.RunFile) {
				f.Fixed.Algorithm.KL = &algorithm.KL{Coefficient: 0.1}
			}, append(always[:3:3], "prompt_logprobs"),
		},
		"evaluation alone needs no more": {
			func(f *contract.RunFile) {
				f.Fixed.Algorithm, f.Fixed.Environments, f.Evaluation.Environments[0].Sampling.Temperature = nil, nil, new(0.0)
			},
			[]string{"temperature"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, n := range needsOf(plain(tc.change)) {
				got = append(got, string(n.feature))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryNeedCanBeChecked(t *testing.T) {
	known := map[capability.Feature]bool{}
	for _, f := range capability.All() {
		known[f] = true
	}
	file := plain(func(f *contract.RunFile) {
		f.Fixed.Algorithm.Optimizer = algorithm.Optimizer{Epsilon: 1, WeightDecay: 1, GradClipNorm: 1}
		f.Fixed.Model.TrainMLP, f.Fixed.InitFrom = false, &contract.InitFrom{}
		f.Evaluation.Environments[0].Sampling = playing.Sampling{Temperature: new(0.6), TopP: 0.9, TopK: 20,
			SharedPrompt: new(true)}
		f.Evaluation.Environments[0].GroupSize = 2
	})
	for _, loss := range []algorithm.Loss{
		{Name: algorithm.LossImportanceSampling}, {Name: algorithm.LossPPO, ClipLow: new(1.0), ClipHigh: new(1.0)},
		{Name: algorithm.LossCISPO, ClipLow: new(1.0), ClipHigh: new(1.0)},
		{Name: algorithm.LossGSPO, ClipLow: new(1.0), ClipHigh: new(1.0)},
	} {
		file.Fixed.Algorithm.Loss = loss
		for _, f := range featuresOf(file, needsOf(file)) {
			if !known[f] {
				t.Errorf("no check finds out %s", f)
			}
		}
	}
	// The manager looks for these two in the lists.
	if contract.CapabilityOptimizerRestore != string(capability.OptimizerRestore) ||
		contract.CapabilitySeed != string(capability.Seed) {
		t.Errorf("the manager reads %q and %q, want %q and %q of the capability check", contract.CapabilityOptimizerRestore,
			contract.CapabilitySeed, capability.OptimizerRestore, capability.Seed)
	}
}

func TestRefusal(t *testing.T) {
	lacking := func(support capability.Support, features ...capability.Feature) capability.Report {
		report := capability.Report{Findings: map[capability.Feature]capability.Finding{}}
		for _, f := range features {
			report.Findings[f] = capability.Finding{Support: support, Note: "as was seen"}
		}
		return report
	}
	clipped := func(f *contract.RunFile) { f.Fixed.Algorithm.Optimizer.GradClipNorm = 1 }
	cases := map[string]struct {
		change func(*contract.RunFile)
		report capability.Report
		reason problem.Code
		says   []string
	}{
		"nothing is lacking": {nil, lacking(capability.Supported, "adam.beta1"), "", nil},
		"what is not known does not reject the run": {nil, lacking(capability.Unknown, "adam.beta1", "optimizer_restore"), "",
			nil},
		"what is not set may be ignored":     {nil, lacking(capability.Ignored, "adam.grad_clip_norm", "loss.ppo"), "", nil},
		"what a run can do without may lack": {nil, lacking(capability.Unsupported, "seed", "ttl", "list_models"), "", nil},
		"what is set must not be ignored": {
			clipped, lacking(capability.Ignored, "adam.grad_clip_norm"), "UnsupportedByEndpoint",
			[]string{"algorithm.optimizer.gradClipNorm", "ignored", "as was seen", "set it to 0"},
		},
		"all that is ignored is named": {
			clipped, lacking(capability.Ignored, "adam.grad_clip_norm", "adam.beta2"), "UnsupportedByEndpoint",
			[]string{"algorithm.optimizer.gradClipNorm", "algorithm.optimizer.beta2"},
		},
		"a loss that is refused": {
			nil, lacking(capability.Unsupported, "loss.importance_sampling"), "UnsupportedByEndpoint",
			[]string{"algorithm.loss.name ImportanceSampling", "unsupported"},
		},
		"an optimizer that must be restored": {
			nil, lacking(capability.Ignored, "optimizer_restore"), "OptimizerNotRestored",
			[]string{"failurePolicy.requireOptimizerState"},
		},
		"an optimizer that need not be restored": {
			func(f *contract.RunFile) { f.RequireOptimizer = false }, lacking(capability.Ignored, "optimizer_restore"), "", nil,
		},
		"an optimizer that nothing uses": {
			func(f *contract.RunFile) { f.Fixed.Algorithm = nil }, lacking(capability.Ignored, "optimizer_restore"), "", nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := plain(tc.change)
			err := refusal(file, needsOf(file), tc.report)
			var refused *RejectedError
			if errors.As(err, &refused) != (tc.reason != "") || (refused != nil && refused.Code != tc.reason) {
				t.Fatalf("refusal is %v, want the reason %q", err, tc.reason)
			}
			for _, text := range tc.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
		})
	}
}

func TestKnownCapabilities(t *testing.T) {
	found := contract.Capabilities{BaseURL: "http://u", Model: "m", Supported: []string{"seed"}, Ignored: []string{"ttl"},
		Unsupported: []string{"loss.ppo"}}
	report := known(plain(func(f *contract.RunFile) { f.Capabilities = &found }))
	if report.Of(capability.Seed) != capability.Supported || report.Of(capability.TTL) != capability.Ignored ||
		report.Of("loss.ppo") != capability.Unsupported {
		t.Errorf("known is %v", report.Findings)
	}
	for name, other := range map[string]contract.Capabilities{
		"another endpoint": {BaseURL: "http://other", Model: "m", Supported: []string{"seed"}},
		"another model":    {BaseURL: "http://u", Model: "other", Supported: []string{"seed"}},
	} {
		if report := known(plain(func(f *contract.RunFile) { f.Capabilities = &other })); len(report.Findings) > 0 {
			t.Errorf("of %s is known %v", name, report.Findings)
		}
	}
}

// TestExpect compares the expectation with a check of the endpoint that found the same features.
func TestExpect(t *testing.T) {
	clipped := plain(func(f *contract.RunFile) {
		f.Fixed.Algorithm.Optimizer.GradClipNorm = 1
		f.Capabilities = &contract.Capabilities{BaseURL: "http://u", Model: "m", Ignored: []string{"adam.grad_clip_norm"}}
	})
	unchecked, err := Expect(clipped)
	var refused *RejectedError
	if !errors.As(err, &refused) || refused.Code != problem.UnsupportedByEndpoint || !strings.Contains(refused.Message,
		"gradClipNorm") {
		t.Errorf("Expect refuses with %v", err)
	}
	if all := featuresOf(clipped, needsOf(clipped)); len(unchecked) == 0 || len(unchecked) >= len(all) {
		t.Errorf("Expect leaves %d of %d features to be checked", len(unchecked), len(all))
	}
	clipped.Capabilities = nil
	if unchecked, err := Expect(clipped); err != nil || len(unchecked) == 0 {
		t.Errorf("Expect of an endpoint that nobody has checked: %v, %v", unchecked, err)
	}
}
