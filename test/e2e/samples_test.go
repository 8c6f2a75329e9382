// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && samples

package e2e

import (
	"cmp"
	"path/filepath"
	"testing"
)

// TestSamples applies, as they are printed, the samples that no test of `make test` applies, and wants each run to
// complete without a fault.
func TestSamples(t *testing.T) {
	prepare(t, namespace)
	loadPython(t)
	loadFolder(t, "cookbook", "environment-cookbook:dev")
	loadFolder(t, "mini-swe-agent", "environment-mini-swe-agent:dev")
	// The last run of a sample is the one to complete.
	for _, name := range []string{"sft", "sft-then-rl", "distillation", "code-tests", "agent-openai", "agent-anthropic",
		"agent-branches", "agent-swe", "python-environment", "self-play", "cookbook"} {
		t.Run(name, func(t *testing.T) {
			last := map[string]string{"sft-then-rl": "chain-rl"}[name]
			run := applySample(t, filepath.Join("config/samples", name+".yaml"), cmp.Or(last, name))
			for _, of := range run.Status.Environments {
				if of.FaultRatio != nil && *of.FaultRatio != 0 {
					t.Errorf("environment %s ended with the share %v of faults, want none: %+v", of.Name, *of.FaultRatio, of.Fault)
				}
			}
			for _, m := range run.Status.Metrics {
				t.Logf("%s: %s is %v", name, m.Name, m.Value)
			}
		})
	}
}
