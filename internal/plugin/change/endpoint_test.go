// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// TestNewestKnowing chooses among runs of which some have checked the endpoint and the model of the planned one.
func TestNewestKnowing(t *testing.T) {
	run := func(name string, age time.Duration, spec, found, model string) v1alpha1.TrainingRun {
		r := v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))}}
		r.Spec.Tinker.BaseURL = spec
		if found != "" {
			r.Status.Capabilities = &v1alpha1.Capabilities{BaseURL: found, Model: model}
		}
		return r
	}
	const own, other = "http://own", "http://other"
	runs := []v1alpha1.TrainingRun{
		run("old", 3*time.Hour, own, own, "m"),
		run("new", 2*time.Hour, own, own, "m"),
		run("of the manager's endpoint", time.Hour, "", own, "m"),
		run("without findings", 0, own, "", ""),
		run("of another model", 0, own, own, "n"),
		run("of another endpoint", 0, other, other, "m"),
	}
	for name, tc := range map[string]struct{ spec, model, want string }{
		"the newest of the same address":  {own, "m", "of the manager's endpoint"},
		"the address is the manager's":    {"", "m", "of the manager's endpoint"},
		"another model":                   {own, "n", "of another model"},
		"another endpoint":                {other, "m", "of another endpoint"},
		"nobody has checked the endpoint": {"http://new", "m", ""},
	} {
		planned := run("planned", 0, tc.spec, "", "")
		planned.Spec.Model.Name = tc.model
		got := ""
		if found := newestKnowing(runs, &planned); found != nil {
			got = found.Name
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if found := newestKnowing(runs[:2], &v1alpha1.TrainingRun{Spec: v1alpha1.TrainingRunSpec{
		Model: v1alpha1.Model{Name: "m"}, Tinker: v1alpha1.Tinker{BaseURL: own},
	}}); found == nil || found.Name != "new" {
		t.Errorf("of two it is %v, want the newest", found)
	}
}

// TestCheckOf says what the endpoint will refuse.
func TestCheckOf(t *testing.T) {
	file := func(known *contract.Capabilities) contract.RunFile {
		return contract.RunFile{Capabilities: known, Fixed: contract.Fixed{
			BaseURL: "http://own", Model: contract.Model{Name: "m", TrainAttention: true, TrainMLP: true, TrainUnembed: true},
			Algorithm: &contract.Algorithm{Loss: contract.Loss{Name: "ppo"}, Optimizer: contract.Optimizer{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8}},
		}}
	}
	found := &contract.Capabilities{BaseURL: "http://own", Model: "m", Supported: []string{"adam.beta1"}, Ignored: []string{"loss.ppo"}}
	for name, tc := range map[string]struct {
		file contract.RunFile
		from string
		want []string
	}{
		"refused":   {file(found), "first", []string{"algorithm.loss.name ppo (ignored)", "as run first found"}},
		"not known": {file(nil), "", []string{"not known", "no run of the namespace", "before it trains"}},
		"nothing":   {file(&contract.Capabilities{BaseURL: "http://own", Model: "m", Supported: []string{"loss.ppo"}}), "first", []string{"nothing that run first has checked", "adam.beta1"}},
		"another's": {file(&contract.Capabilities{BaseURL: "http://other", Model: "m", Ignored: []string{"loss.ppo"}}), "", []string{"not known"}},
		"all supported": {func() contract.RunFile {
			unchecked := checkOf(file(nil), "").Unchecked
			return file(&contract.Capabilities{BaseURL: "http://own", Model: "m", Supported: unchecked})
		}(), "first", []string{"nothing, as run first found"}},
	} {
		check := checkOf(tc.file, tc.from)
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
