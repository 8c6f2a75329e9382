// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

func TestPodOverridesWinOverDefaults(t *testing.T) {
	defaults, err := DecodePodDefaults(everyPodDefault)
	if err != nil {
		t.Fatal(err)
	}
	given := v1alpha1.PodOverrides{
		Labels: map[string]v1alpha1.LabelValue{"team": "mine"}, NodeSelector: map[string]string{"zone": "a"},
		PriorityClassName: "high",
		ImagePullSecrets:  []corev1.LocalObjectReference{{Name: "own"}, {Name: "registry"}},
		Resources:         corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("4")}},
		Env:               []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://other"}},
		Tolerations: []corev1.Toleration{{Key: "runs", Operator: "Equal", Value: "x", Effect: "NoSchedule"},
			{Key: "gpu", Operator: "Exists"}},
		EnvFrom: []corev1.EnvFromSource{{Prefix: "OWN_"}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
			{MaxSkew: 2, TopologyKey: "zone", WhenUnsatisfiable: "ScheduleAnyway"},
			{MaxSkew: 1, TopologyKey: "host", WhenUnsatisfiable: "DoNotSchedule"},
		},
		SchedulerName: "own", RuntimeClassName: "kata", DNSPolicy: corev1.DNSDefault, ImagePullPolicy: corev1.PullNever,
		TerminationGracePeriodSeconds: new(int64(30)),
	}
	want := given
	want.EnvFrom = append(defaults.EnvFrom[:1:1], given.EnvFrom...)
	want.DNSConfig = defaults.DNSConfig
	want.Labels = map[string]v1alpha1.LabelValue{"team": "mine", "tier": "batch"}
	want.Annotations = map[string]string{"a": "1"}
	want.NodeSelector = map[string]string{"pool": "runs", "zone": "a"}
	want.ServiceAccountName = "runs"
	want.SecurityContext = defaults.SecurityContext
	want.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("4"),
		"memory": resource.MustParse("2Gi")}}
	if diff := cmp.Diff(want, WithPodDefaults(given, defaults)); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(given, WithPodDefaults(given, v1alpha1.PodOverrides{})); diff != "" {
		t.Errorf("without defaults (-want +got):\n%s", diff)
	}
}

func TestInvalidPodDefaults(t *testing.T) {
	for text, want := range map[string]string{
		`{"tolerationz": []}`:                              `unknown field "tolerationz"`,
		`{"image": "own:1"}`:                               "have no default",
		`{"nodeSelector": ["a"]}`:                          "cannot unmarshal array",
		`{"volumes": [{"name":"v"}]}`:                      "give them in the spec of each run",
		`{"initContainers": [{"name":"i","image":"i:1"}]}`: "give them in the spec of each run",
		`{"resourceClaims": [{"name":"gpu"}]}`:             "give them in the spec of each run",
	} {
		if _, err := DecodePodDefaults(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("DecodeDefaults(%s) = %v, want %q", text, err, want)
		}
	}
}
