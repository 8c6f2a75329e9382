// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// TestCheckOf checks that CheckOf finds the broker's check for the model and the matrices of a run if the check was
// made at the current connection, within a day.
func TestCheckOf(t *testing.T) {
	base := platform()
	base.Spec.APIKeySecretKeyRef = ref.SecretKey{Name: "tinker", Key: "k"}
	checked := v1alpha1.EndpointCapabilities{Model: "m", TrainModules: []v1alpha1.TrainModule{"Attention", "MLP"},
		Supported: []string{"seed"}, CheckedAt: ago(time.Hour), Connection: ServerConnection(base)}
	other := checked
	other.Model = "other"
	refused := checked
	refused.Model, refused.CheckedAt, refused.Refused = "refused", nil, "no such model"
	base.Status.Capabilities = []v1alpha1.EndpointCapabilities{other, checked, refused}
	model := v1alpha1.Model{Name: "m", TrainModules: []v1alpha1.TrainModule{"MLP", "Attention"}}
	for name, tc := range map[string]struct {
		endpoint func(*v1alpha1.TinkerEndpoint)
		model    func(*v1alpha1.Model)
		later    time.Duration
		want     bool
	}{
		"within a day":            {later: 23*time.Hour - time.Second, want: true},
		"a day ago":               {later: 23 * time.Hour},
		"another rank":            {model: func(m *v1alpha1.Model) { m.LoraRank = new(int32(4)) }, want: true},
		"other matrices":          {model: func(m *v1alpha1.Model) { m.TrainModules = m.TrainModules[:1] }},
		"a model without a check": {model: func(m *v1alpha1.Model) { m.Name = "unknown" }},
		"a check that is refused": {model: func(m *v1alpha1.Model) { m.Name = "refused" }},
		"other budgets": {endpoint: func(e *v1alpha1.TinkerEndpoint) {
			e.Spec.Budgets = []v1alpha1.EndpointBudget{{Name: "b"}}
		}, want: true},
		"another address": {endpoint: func(e *v1alpha1.TinkerEndpoint) { e.Spec.BaseURL = "https://new" }},
		"another Secret":  {endpoint: func(e *v1alpha1.TinkerEndpoint) { e.Spec.APIKeySecretKeyRef.Name = "new" }},
		"another proxy":   {endpoint: func(e *v1alpha1.TinkerEndpoint) { e.Spec.ProxyURL = "http://new" }},
		"the annotation": {endpoint: func(e *v1alpha1.TinkerEndpoint) {
			e.Annotations = map[string]string{v1alpha1.AnnotationCheckAgain: "now"}
		}},
	} {
		of, wanted := base.DeepCopy(), *model.DeepCopy()
		if tc.endpoint != nil {
			tc.endpoint(of)
		}
		if tc.model != nil {
			tc.model(&wanted)
		}
		found := CheckOf(of, wanted, now.Add(tc.later))
		if (found != nil) != tc.want {
			t.Errorf("%s: %+v, want a check: %v", name, found, tc.want)
		}
		if found != nil {
			if diff := cmp.Diff(&checked, found); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// TestShareCheck checks that a run gets all findings of the broker, including the features that the server lacks.
func TestShareCheck(t *testing.T) {
	checked := &v1alpha1.EndpointCapabilities{Model: "m", Supported: []string{"gradient_sum", "repeats"},
		Ignored: []string{"ttl"}, Unsupported: []string{"protobuf"}, Undecided: []string{"seed"},
		CheckedAt: ago(time.Hour), ClientVersion: "v1", Connection: "c"}
	want := &contract.Capabilities{BaseURL: "https://broker", Model: "m", Supported: []string{"gradient_sum", "repeats"},
		Ignored: []string{"ttl"}, Unsupported: []string{"protobuf"}, ClientVersion: "v1", Connection: "c",
		SharedFrom: &contract.SharedCheck{Name: "prod", CheckedAt: "2026-11-23T11:00:00Z"}}
	if diff := cmp.Diff(want, ShareCheck(checked, "prod", "https://broker")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, nothing := range map[string]*v1alpha1.EndpointCapabilities{"no check": nil,
		"nothing decided": {Model: "m", Undecided: []string{"seed"}, CheckedAt: ago(0)}} {
		if got := ShareCheck(nothing, "prod", "https://broker"); got != nil {
			t.Errorf("%s: %+v is shared", name, got)
		}
	}
}
