// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability_test

import (
	"net/http/httptest"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/latency"
)

// BenchmarkHosted checks the features that a run with the usual settings needs, at an endpoint with the latencies of
// the hosted service divided by ten. A run does this after it is applied and before its first lease, unless the
// features are known. The goal is 10 s.
func BenchmarkHosted(b *testing.B) {
	sim, err := tinkersim.New(tinkersim.Options{Dir: b.TempDir(), APIKey: key, Latency: latency.Hosted.Faster(10)})
	if err != nil {
		b.Fatal(err)
	}
	listening := httptest.NewServer(sim)
	defer listening.Close()
	defer sim.Close()
	api, err := client.New(client.Config{BaseURL: listening.URL, APIKey: key})
	if err != nil {
		b.Fatal(err)
	}
	checker := capability.Checker{
		API: api, BaseURL: listening.URL, Model: tinkersim.ModelName,
		Lora: tinker.LoraConfig{Rank: 8, TrainAttn: true, TrainMLP: true, TrainUnembed: true},
		Features: []capability.Feature{
			capability.Seed, capability.PromptLogprobs, capability.ListModels, capability.ListCheckpoints,
			capability.UserMetadata,
			capability.TTL, capability.UnloadModel, capability.Loss(tinker.LossImportanceSampling), capability.Adam("beta1"),
			capability.Adam("beta2"), capability.Protobuf, capability.Repeats, capability.GradientSum,
			capability.SamplerSnapshot,
			capability.OptimizerRestore, capability.LossSum,
		},
	}
	for b.Loop() {
		report, err := checker.Run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if missing := report.Missing(checker.Features); len(missing) > 0 {
			b.Fatalf("not found out: %v: %v", missing, report.Findings)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/check")
}
