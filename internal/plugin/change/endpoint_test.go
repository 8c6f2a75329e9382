// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// TestCheckOf lists the settings that the endpoint will refuse.
func TestCheckOf(t *testing.T) {
	file := func(known *contract.Capabilities) contract.RunFile {
		return contract.RunFile{Capabilities: known, Fixed: contract.Fixed{
			BaseURL: "http://own", Model: contract.Model{Name: "m", TrainAttention: true, TrainMLP: true, TrainUnembed: true},
			Algorithm: &algorithm.Algorithm{Loss: algorithm.Loss{Name: algorithm.LossPPO},
				Optimizer: algorithm.Optimizer{Beta1: new(0.9),
					Beta2: new(0.95), Epsilon: 1e-8}},
		}}
	}
	found := &contract.Capabilities{BaseURL: "http://own", Model: "m", Supported: []string{"adam.beta1"},
		Ignored: []string{"loss.ppo"}}
	ppo := &contract.Capabilities{BaseURL: "http://own", Model: "m", Supported: []string{"loss.ppo"}}
	all := &contract.Capabilities{BaseURL: "http://own", Model: "m", Supported: checkOf(file(nil), knowledge{}).Unchecked}
	unmeasured := &contract.Capabilities{BaseURL: "http://own", Model: "m"}
	for _, feature := range all.Supported {
		if feature != contract.CapabilityGradientSum {
			unmeasured.Supported = append(unmeasured.Supported, feature)
		}
	}
	for name, tc := range map[string]struct {
		file   contract.RunFile
		from   string
		shared *contract.Capabilities
		want   []string
	}{
		"refused":   {file(found), "first", nil, []string{"algorithm.loss.name PPO (ignored)", "as run first found"}},
		"not known": {file(nil), "", nil, []string{"not known", "no run of the namespace", "before it trains"}},
		"nothing":   {file(ppo), "first", ppo, []string{"nothing that run first has checked", "adam.beta1"}},
		"another's": {file(&contract.Capabilities{BaseURL: "http://other", Model: "m", Ignored: []string{"loss.ppo"}}),
			"", nil, []string{"not known"}},
		"all supported": {file(all), "first", all, []string{"nothing, as run first found"}},
		"all supported, and each run measures gradients": {file(all), "first", unmeasured,
			[]string{"nothing that run first has checked", "checks gradient_sum"}},
	} {
		known := knowledge{shared: tc.shared}
		if tc.from != "" {
			known.from = &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Name: tc.from}}
		}
		check := checkOf(tc.file, known)
		for _, want := range tc.want {
			if !strings.Contains(check.text(), want) {
				t.Errorf("%s: %q does not say %q", name, check.text(), want)
			}
		}
		if (check.Refusal != "") != (name == "refused") {
			t.Errorf("%s: the refusal is %q", name, check.Refusal)
		}
	}
}
