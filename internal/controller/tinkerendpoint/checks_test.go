// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkerendpoint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	rules "github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// TestChecks checks that the status shows the broker's findings, and whether the broker is checking or a check was
// refused. Ready does not depend on checks.
func TestChecks(t *testing.T) {
	found := endpoint.Check{Model: "m", TrainModules: []string{"Attention"}, Supported: []string{"seed"},
		Ignored: []string{"ttl"}, Unsupported: []string{"protobuf"}, Undecided: []string{"top_k"}, CheckedAt: now,
		ClientVersion: "v1", Connection: "c"}
	shown := v1alpha1.EndpointCapabilities{Model: "m", TrainModules: []v1alpha1.TrainModule{"Attention"},
		Supported: []string{"seed"}, Ignored: []string{"ttl"}, Unsupported: []string{"protobuf"},
		Undecided: []string{"top_k"}, CheckedAt: ptr.To(metav1.NewTime(now)), ClientVersion: "v1", Connection: "c"}
	checking, refused := found, endpoint.Check{Model: "n", Refused: strings.Repeat("no such model. ", 50)}
	checking.Checking = true
	first := endpoint.Check{Model: "n", Checking: true}
	for name, tc := range map[string]struct {
		report  *endpoint.Report
		want    []v1alpha1.EndpointCapabilities
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"no report yet": {nil, []v1alpha1.EndpointCapabilities{shown}, metav1.ConditionUnknown, "NotAsked", "not reported"},
		"nothing asked": {&endpoint.Report{}, nil, metav1.ConditionUnknown, "NotAsked", "No run has asked"},
		"checked": {&endpoint.Report{Checks: []endpoint.Check{found}}, []v1alpha1.EndpointCapabilities{shown},
			metav1.ConditionTrue, "Checked", "what runs have asked for"},
		"checking again": {&endpoint.Report{Checks: []endpoint.Check{checking}}, []v1alpha1.EndpointCapabilities{shown},
			metav1.ConditionUnknown, "Checking", "with m."},
		"checking another": {&endpoint.Report{Checks: []endpoint.Check{found, first}},
			[]v1alpha1.EndpointCapabilities{shown}, metav1.ConditionUnknown, "Checking", "with n."},
		"refused": {&endpoint.Report{Checks: []endpoint.Check{found, refused}},
			[]v1alpha1.EndpointCapabilities{shown, {Model: "n", Refused: strings.TrimSpace(refused.Refused)}},
			metav1.ConditionFalse, "CheckRefused", "n: no such model."},
	} {
		of := newEndpoint(func(e *v1alpha1.TinkerEndpoint) {
			e.Status.Capabilities = []v1alpha1.EndpointCapabilities{shown}
		})
		p, settings := planned(t, of, observed{ready: 1, report: tc.report})
		if settings.Connection != rules.ServerConnection(of) || settings.Connection == "" {
			t.Errorf("%s: the broker is told the connection %q", name, settings.Connection)
		}
		if p.ready.Status != metav1.ConditionTrue {
			t.Errorf("%s: Ready is %s", name, p.ready.Status)
		}
		for i := range p.capabilities { // The message is bounded, as TestTrim checks.
			if text := p.capabilities[i].Refused; text != "" {
				if len(text) > rules.MaxEvidence || !strings.HasPrefix(text, "no such model.") {
					t.Errorf("%s: the refusal is %q", name, text)
				}
				tc.want[i].Refused = text
			}
		}
		if diff := cmp.Diff(tc.want, p.capabilities); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if c := p.checked; c.Type != v1alpha1.ConditionChecked || c.Status != tc.status || c.Reason != tc.reason ||
			!strings.Contains(c.Message, tc.message) || (c.Code == problem.ServerCheckRefused) != (tc.reason == "CheckRefused") {
			t.Errorf("%s: %+v, want %s %s with %q", name, c, tc.status, tc.reason, tc.message)
		}
	}
}
