// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// TestRefusalOfGradients refuses an endpoint whose gradients are neither sums nor averages that can be compensated.
func TestRefusalOfGradients(t *testing.T) {
	cases := map[string]struct {
		support capability.Support
		loss    contract.LossName
		refused bool
	}{
		"sums":                       {capability.Supported, contract.LossPPO, false},
		"averages, compensated":      {capability.Ignored, contract.LossPPO, false},
		"averages of dro":            {capability.Ignored, contract.LossDRO, true},
		"something else":             {capability.Unsupported, contract.LossPPO, true},
		"what could not be measured": {capability.Unknown, contract.LossPPO, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := contract.RunFile{Fixed: contract.Fixed{Algorithm: &contract.Algorithm{Loss: contract.Loss{Name: tc.loss}}}}
			report := capability.Report{Findings: map[capability.Feature]capability.Finding{capability.GradientSum: {Support: tc.support, Note: "why"}}}
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
