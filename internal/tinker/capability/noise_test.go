// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// The race detector makes the arithmetic of 20 servers ten times slower.
//go:build !race

package capability_test

import (
	"net/http"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// TestNoisyServer checks 20 servers, mostly with noisy arithmetic: half of them honour all sampling settings, and the
// others ignore them.
func TestNoisyServer(t *testing.T) {
	ignoreSettings := editJSON("asample", func(body map[string]any) {
		params := body["sampling_params"].(map[string]any)
		params["temperature"], params["top_k"], params["top_p"], params["seed"] = 1, -1, 1, 7
	})
	honour := func(next http.Handler) http.Handler { return next }
	settings := []capability.Feature{capability.Seed, capability.Temperature, capability.TopK, capability.TopP}
	for i := range 10 {
		for _, noise := range []float64{0, 0.05, 0.2}[i%3 : i%3+1] {
			_, honoured := serverWith(t, tinkersim.Options{SampleNoise: noise}, honour)
			report := run(t, honoured)
			for _, f := range append(settings, capability.PromptLogprobs) {
				if report.Lacks(f) {
					t.Errorf("noise %g: a server that honours %s lacks it: %+v", noise, f, report.Findings[f])
				}
			}
			_, ignored := serverWith(t, tinkersim.Options{SampleNoise: noise}, ignoreSettings)
			report = run(t, ignored)
			for _, f := range settings {
				if report.Of(f) != capability.Ignored {
					t.Errorf("noise %g: a server that ignores %s: %+v", noise, f, report.Findings[f])
				}
			}
		}
	}
}
