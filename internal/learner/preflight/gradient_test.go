// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// TestUnknownGradients checks that an endpoint whose gradients could not be measured is refused if it reads only JSON,
// and accepted if it reads protobuf.
func TestUnknownGradients(t *testing.T) {
	const unsupported, unknown = capability.Unsupported, capability.Unknown
	cases := map[string]struct {
		found  map[capability.Feature]capability.Support
		reason problem.Code
	}{
		"JSON only": {map[capability.Feature]capability.Support{capability.Protobuf: unsupported,
			capability.GradientSum: unknown}, problem.UnsupportedByEndpoint},
		"JSON only, averaged": {map[capability.Feature]capability.Support{capability.Protobuf: unsupported,
			capability.GradientSum: capability.Ignored}, ""},
		"protobuf": {map[capability.Feature]capability.Support{capability.GradientSum: unknown}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := check(&fake{found: tc.found}, nil).CheckFeatures(t.Context())
			if reasonOf(err) != tc.reason {
				t.Fatalf("CheckFeatures = %v, want the reason %q", err, tc.reason)
			}
			if err != nil && !strings.Contains(err.Error(), "whether the endpoint sums gradients") {
				t.Errorf("the refusal does not name the gradients: %v", err)
			}
		})
	}
}

// TestAssumed checks that unchecked features of an endpoint that reads only JSON, or averages gradients, are not
// relied on, and are published as unknown.
func TestAssumed(t *testing.T) {
	features := []capability.Feature{capability.Repeats, capability.SamplerSnapshot}
	for endpoint, tc := range map[string]struct {
		protobuf, sums capability.Support
		relied         bool
	}{
		"JSON":                               {capability.Unsupported, capability.Supported, false},
		"protobuf, sums":                     {capability.Supported, capability.Supported, true},
		"protobuf, averages, as SkyRL 0.4.0": {capability.Supported, capability.Ignored, false},
	} {
		f := &fake{found: map[capability.Feature]capability.Support{capability.Protobuf: tc.protobuf,
			capability.GradientSum: tc.sums}}
		for _, feature := range features {
			f.found[feature] = capability.Unknown
		}
		report, err := check(f, nil).CheckFeatures(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, feature := range features {
			if report.Of(feature) != capability.Unknown {
				t.Errorf("%s: %s is published as %s", endpoint, feature, report.Of(feature))
			}
			if got := Assumed(report).Lacks(feature); got == tc.relied {
				t.Errorf("%s: %s counts as missing: %v", endpoint, feature, got)
			}
		}
		_, err = check(f, func(file *contract.RunFile) { file.Fixed.Algorithm.Lag = 1 }).CheckFeatures(t.Context())
		if refused := reasonOf(err) == problem.UnsupportedByEndpoint; refused == tc.relied {
			t.Errorf("%s: a lag is refused: %v", endpoint, err)
		}
	}
}

// TestRefusalOfGradients refuses an endpoint whose gradients are neither sums nor averages that can be compensated.
func TestRefusalOfGradients(t *testing.T) {
	cases := map[string]struct {
		support capability.Support
		loss    algorithm.LossName
		refused bool
	}{
		"sums":                       {capability.Supported, algorithm.LossPPO, false},
		"averages, compensated":      {capability.Ignored, algorithm.LossPPO, false},
		"something else":             {capability.Unsupported, algorithm.LossPPO, true},
		"what could not be measured": {capability.Unknown, algorithm.LossPPO, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := contract.RunFile{Fixed: contract.Fixed{Algorithm: &algorithm.Algorithm{Loss: algorithm.Loss{Name: tc.loss}}}}
			report := capability.Report{Findings: map[capability.Feature]capability.Finding{
				capability.GradientSum: {Support: tc.support, Note: "why"}}}
			err := refusal(file, nil, report)
			if (err != nil) != tc.refused {
				t.Errorf("refusal is %v, want %v", err, tc.refused)
			}
			if err != nil && !strings.Contains(err.Error(), "gradients are sums") {
				t.Errorf("refusal does not name the gradients: %v", err)
			}
		})
	}
}
