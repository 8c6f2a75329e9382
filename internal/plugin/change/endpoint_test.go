// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// fileOf returns the run file of a run with the known capabilities of its endpoint.
func fileOf(known *contract.Capabilities) contract.RunFile {
	return contract.RunFile{Capabilities: known, Fixed: contract.Fixed{
		BaseURL: "http://own", Model: contract.Model{Name: "m", TrainAttention: true, TrainMLP: true, TrainUnembed: true},
		Algorithm: &algorithm.Algorithm{Loss: algorithm.Loss{Name: algorithm.LossPPO},
			Optimizer: algorithm.Optimizer{Beta1: new(0.9),
				Beta2: new(0.95), Epsilon: 1e-8}},
	}}
}

// TestCheckOf checks the list of settings that the endpoint will refuse.
func TestCheckOf(t *testing.T) {
	file := fileOf
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
		known := knowledge{shared: tc.shared, from: tc.from}
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

// TestCheckOfBroker plans a run at a TinkerEndpoint by the findings of its broker, and not by those of runs.
func TestCheckOfBroker(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	modules := []v1alpha1.TrainModule{"Attention", "MLP", "Unembed"}
	run := func() *v1alpha1.TrainingRun {
		r := &v1alpha1.TrainingRun{}
		r.Spec.Tinker.EndpointRef = &ref.Endpoint{Name: "prod"}
		r.Spec.Model = v1alpha1.Model{Name: "m", TrainModules: modules}
		return r
	}
	of := &v1alpha1.TinkerEndpoint{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	of.Status = v1alpha1.TinkerEndpointStatus{Namespace: "operator", Capabilities: []v1alpha1.EndpointCapabilities{{
		Model: "m", TrainModules: modules, Supported: []string{"adam.beta1"}, Ignored: []string{"loss.ppo"},
		CheckedAt: &metav1.Time{Time: now.Add(-time.Hour)}, Connection: endpoint.ServerConnection(of)}}}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		at      time.Time
		want    []string
	}{
		"checked": {[]client.Object{of}, now, []string{"PPO (ignored)", "as the broker of TinkerEndpoint prod found"}},
		"checked long ago": {[]client.Object{of}, now.Add(24 * time.Hour),
			[]string{"not known", "has not checked"}},
		"no endpoint, or none that may be read": {nil, now, []string{"not known", "has not checked"}},
	} {
		one := run()
		known, err := brokerCapabilities(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(
			tc.objects...).Build(), one, tc.at)
		if err != nil {
			t.Fatal(err)
		}
		planning := fileOf(nil)
		if found := one.Status.Capabilities; found != nil {
			planning.Capabilities, planning.Fixed.BaseURL = status.Capabilities(found), found.BaseURL
		}
		text := checkOf(planning, known).text()
		for _, want := range tc.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q does not say %q", name, text, want)
			}
		}
	}
}
