// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

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
		Volumes:                       []v1alpha1.Volume{{Name: "own", EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		VolumeMounts:                  []v1alpha1.VolumeMount{{Name: "own", MountPath: "/etc/ssl/certs"}},
	}
	want := given
	// The given mount replaces the default mount at the same path.
	want.Volumes = append(defaults.Volumes[:1:1], given.Volumes...)
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

func TestEachFieldOfAllAppliesToBothTargets(t *testing.T) {
	data, err := os.ReadFile("../../test/integration/testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, document, _ := strings.Cut(string(data), "\n---\n")
	var run v1alpha1.TrainingRun
	if err := yaml.Unmarshal([]byte(document), &run); err != nil {
		t.Fatal(err)
	}
	every := *run.Spec.Override(v1alpha1.TargetWorkers)
	for field, value := range reflect.ValueOf(every).Fields() {
		if value.IsZero() {
			t.Errorf("the manifest lacks podOverrides[].%s", field.Name)
		}
	}
	every.Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	run.Spec.PodOverrides = []v1alpha1.TargetedPodOverrides{{Target: v1alpha1.TargetAll, PodOverrides: every}}
	for _, target := range []v1alpha1.PodTarget{v1alpha1.TargetLearner, v1alpha1.TargetWorkers} {
		if diff := cmp.Diff(every, PodOverrides(&run, target), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
}

func TestOverridesOfATargetComeAfterAll(t *testing.T) {
	volume := func(name string) v1alpha1.Volume { return v1alpha1.Volume{Name: name} }
	run := testRun(func(run *v1alpha1.TrainingRun) {
		run.Spec.PodOverrides = []v1alpha1.TargetedPodOverrides{
			{Target: v1alpha1.TargetWorkers, PodOverrides: v1alpha1.PodOverrides{Image: "workers:1",
				NodeSelector: map[string]string{"pool": "spot"}, Volumes: []v1alpha1.Volume{volume("cache")},
				Env: []corev1.EnvVar{{Name: "A", Value: "workers"}}}},
			{Target: v1alpha1.TargetAll, PodOverrides: v1alpha1.PodOverrides{Image: "all:1", SchedulerName: "batch",
				NodeSelector: map[string]string{"pool": "any", "zone": "a"}, Volumes: []v1alpha1.Volume{volume("ca")},
				Env: []corev1.EnvVar{{Name: "A", Value: "all"}, {Name: "B", Value: "all"}}}},
		}
	})
	for target, want := range map[v1alpha1.PodTarget]v1alpha1.PodOverrides{
		v1alpha1.TargetLearner: {Image: "all:1", SchedulerName: "batch",
			NodeSelector: map[string]string{"pool": "any", "zone": "a"}, Volumes: []v1alpha1.Volume{volume("ca")},
			Env: []corev1.EnvVar{{Name: "A", Value: "all"}, {Name: "B", Value: "all"}}},
		v1alpha1.TargetWorkers: {Image: "workers:1", SchedulerName: "batch",
			NodeSelector: map[string]string{"pool": "spot", "zone": "a"},
			Volumes:      []v1alpha1.Volume{volume("ca"), volume("cache")},
			Env:          []corev1.EnvVar{{Name: "B", Value: "all"}, {Name: "A", Value: "workers"}}},
	} {
		if diff := cmp.Diff(want, PodOverrides(run, target), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
	before := RolloutTemplateDigest(run)
	run.Spec.Override(v1alpha1.TargetLearner).Image = "learner:1"
	if got := RolloutTemplateDigest(run); got != before {
		t.Errorf("a change of the learner's pod replaces the workers: got %v, want %v", got, before)
	}
	run.Spec.Override(v1alpha1.TargetAll).SchedulerName = "other"
	if got := RolloutTemplateDigest(run); got == before {
		t.Errorf("a change of all pods does not replace the workers: got %v for both", got)
	}
}

func TestInvalidPodDefaults(t *testing.T) {
	for text, want := range map[string]string{
		`{"tolerationz": []}`:         `unknown field "tolerationz"`,
		`{"image": "own:1"}`:          "have no default",
		`{"nodeSelector": ["a"]}`:     "cannot unmarshal array",
		`{"volumes": [{"name":"v"}]}`: "give exactly one of",
		`{"volumes": [{"name":"v","emptyDir":{}},{"name":"v","emptyDir":{}}]}`:                                   "volumes[1] needs a name of its own",
		`{"volumes": [{"name":"tinker-operator-run","emptyDir":{}}]}`:                                            "the operator's own",
		`{"volumeMounts": [{"name":"ca","mountPath":"/etc/ca"}]}`:                                                `mounts "ca", which volumes do not have`,
		`{"volumes": [{"name":"ca","emptyDir":{}}], "volumeMounts": [{"name":"ca","mountPath":"/artifacts/x"}]}`: "outside of",
		`{"initContainers": [{"name":"i","image":"i:1"}]}`:                                                       "give them in the spec of each run",
		`{"resourceClaims": [{"name":"gpu"}]}`:                                                                   "give them in the spec of each run",
	} {
		if _, err := DecodePodDefaults(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("DecodeDefaults(%s) = %v, want %q", text, err, want)
		}
	}
}
