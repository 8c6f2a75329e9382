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

// TestUnknownGradients refuses an endpoint that reads JSON only and whose gradients could not be measured, and accepts
// one that reads protobuf.
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
				t.Fatalf("CheckFeatures gives %v, want the reason %q", err, tc.reason)
			}
			if err != nil && !strings.Contains(err.Error(), "whether the endpoint sums gradients") {
				t.Errorf("the refusal does not name the gradients: %v", err)
			}
		})
	}
}

// TestAssumedOfJSON does not rely on what could not be checked of an endpoint that reads JSON only, and publishes it as
// unknown.
func TestAssumedOfJSON(t *testing.T) {
	features := []capability.Feature{capability.Repeats, capability.SamplerSnapshot}
	for _, encoding := range []capability.Support{capability.Supported, capability.Unsupported} {
		f := &fake{found: map[capability.Feature]capability.Support{capability.Protobuf: encoding}}
		for _, feature := range features {
			f.found[feature] = capability.Unknown
		}
		report, err := check(f, nil).CheckFeatures(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, feature := range features {
			if report.Of(feature) != capability.Unknown {
				t.Errorf("protobuf %s: %s is published as %s", encoding, feature, report.Of(feature))
			}
			if got, want := Assumed(report).Lacks(feature), encoding == capability.Unsupported; got != want {
				t.Errorf("protobuf %s: %s counts as missing: %v, want %v", encoding, feature, got, want)
			}
		}
		_, err = check(f, func(file *contract.RunFile) { file.Fixed.Algorithm.Lag = 1 }).CheckFeatures(t.Context())
		if refused := reasonOf(err) == problem.UnsupportedByEndpoint; refused != (encoding == capability.Unsupported) {
			t.Errorf("protobuf %s: a lag is refused: %v", encoding, err)
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
