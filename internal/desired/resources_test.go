// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// TestRequestsOfEphemeralStorage expects room for a log, 256 MiB for rows of data sets, and an eighth of the maximum
// size of other volumes, unless a user gives another request or a lower limit.
func TestRequestsOfEphemeralStorage(t *testing.T) {
	of := func(quantity string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(quantity)}
	}
	dataset := environment.Dataset{Hub: &environment.Hub{Repository: "o/n"}}
	env := func(given corev1.ResourceRequirements) *v1alpha1.RewardEnvironment {
		e := &v1alpha1.RewardEnvironment{Spec: v1alpha1.RewardEnvironmentSpec{Dataset: &dataset}}
		e.Spec.Pod.Resources = given
		return e
	}
	run := func(given corev1.ResourceRequirements) *v1alpha1.TrainingRun {
		return testRun(func(run *v1alpha1.TrainingRun) { run.Spec.Override(v1alpha1.TargetWorkers).Resources = given })
	}
	url := testRun(func(run *v1alpha1.TrainingRun) { run.Spec.Artifacts = &v1alpha1.Artifacts{URL: "s3://bucket"} })
	withDisk := func(job *batchv1.Job, given corev1.ResourceRequirements, settings Settings) *batchv1.Job {
		MountData(job, disk, v1alpha1.PodOverrides{Resources: given}, settings)
		return job
	}
	none, more, zero := corev1.ResourceRequirements{}, corev1.ResourceRequirements{Requests: of("3Gi")},
		corev1.ResourceRequirements{Requests: of("0")}
	limited := corev1.ResourceRequirements{Limits: of("100Mi")}
	defaults := Settings{Image: settings.Image, PodDefaults: v1alpha1.PodOverrides{Resources: more}}
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		want string
	}{
		"a learner":                         {LearnerJob(run(none), 1, "link", settings), "64Mi"},
		"a learner with artifacts at a URL": {LearnerJob(url, 1, "link", settings), "320Mi"},
		"a worker":                          {RolloutJob(run(none), 1, "link", settings), "288Mi"},
		"a worker with a data set": {withDisk(RolloutJob(run(none), 1, "link", settings), none, settings),
			"544Mi"},
		"a user's request":                 {RolloutJob(run(more), 1, "link", settings), "3Gi"},
		"a user's request, and a data set": {withDisk(RolloutJob(run(more), 1, "link", settings), more, settings), "3Gi"},
		"a user's request of nothing":      {withDisk(RolloutJob(run(zero), 1, "link", settings), zero, settings), "0"},
		"a user's lower limit":             {RolloutJob(run(limited), 1, "link", settings), "100Mi"},
		"a user's lower limit and a data set": {withDisk(RolloutJob(run(limited), 1, "link", settings), limited, settings),
			"100Mi"},
		"the chart's request, and a data set": {withDisk(RolloutJob(run(none), 1, "link", defaults), none, defaults), "3Gi"},
		"a probe with a data set":             {ProbeJob(env(none), "0123456789", 1, settings), "320Mi"},
		"a probe with a user's request":       {ProbeJob(env(more), "0123456789", 1, settings), "3Gi"},
	} {
		got := tc.job.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceEphemeralStorage]
		if got.Cmp(resource.MustParse(tc.want)) != 0 {
			t.Errorf("%s requests %s, want %s", name, got.String(), tc.want)
		}
	}
}

// TestOverridesOfEphemeralStorage checks that users can give another request of ephemeral storage, for a quota or for
// their nodes. The pod's own volumes are bounded by their sizes.
func TestOverridesOfEphemeralStorage(t *testing.T) {
	storage := resource.MustParse("2Gi")
	given := corev1.ResourceList{corev1.ResourceEphemeralStorage: storage}
	run := testRun(func(run *v1alpha1.TrainingRun) {
		run.Spec.Override(v1alpha1.TargetWorkers).Resources = corev1.ResourceRequirements{Requests: given, Limits: given}
	})
	pod := RolloutJob(run, 1, "link", settings).Spec.Template.Spec
	for kind, list := range map[string]corev1.ResourceList{"request": pod.Containers[0].Resources.Requests,
		"limit": pod.Containers[0].Resources.Limits} {
		if got := list[corev1.ResourceEphemeralStorage]; got.Cmp(storage) != 0 || list.Cpu().IsZero() && kind == "request" {
			t.Errorf("the %s is %v, want ephemeral storage beside the operator's own", kind, list)
		}
	}
	total := resource.Quantity{}
	for _, volume := range pod.Volumes {
		if volume.EmptyDir != nil && volume.EmptyDir.SizeLimit == nil {
			t.Errorf("volume %s has no limit", volume.Name)
		} else if volume.EmptyDir != nil {
			total.Add(*volume.EmptyDir.SizeLimit)
		}
	}
	if total.Cmp(storage) > 0 {
		t.Errorf("the volumes may take %s, want at most the %s that docs/operating.md names", total.String(),
			storage.String())
	}
}

func TestOverridesOfMemory(t *testing.T) {
	cases := map[string]struct {
		given     corev1.ResourceRequirements
		request   string
		limit     string
		goMemory  string
		userEnv   []corev1.EnvVar
		wantCount int
	}{
		"a request above our own limit raises it": {
			given: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(
				"2Gi")}},
			request: "2Gi", limit: "2Gi", goMemory: "1932735276", wantCount: 1,
		},
		"a limit below our own request lowers that": {
			given:   corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}},
			request: "32Mi", limit: "32Mi", goMemory: "30198987", wantCount: 1,
		},
		"a GOMEMLIMIT of one's own stays": {
			request: "64Mi", limit: "1Gi", goMemory: "1MiB", wantCount: 1,
			userEnv: []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "1MiB"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := testRun(func(run *v1alpha1.TrainingRun) {
				*run.Spec.Override(v1alpha1.TargetWorkers) = v1alpha1.PodOverrides{Resources: tc.given, Env: tc.userEnv}
			})
			c := RolloutJob(run, 1, "link", settings).Spec.Template.Spec.Containers[0]
			if got := c.Resources.Requests.Memory().String(); got != tc.request {
				t.Errorf("request = %s, want %s", got, tc.request)
			}
			if got := c.Resources.Limits.Memory().String(); got != tc.limit {
				t.Errorf("limit = %s, want %s", got, tc.limit)
			}
			var found []string
			for _, e := range c.Env {
				if e.Name == "GOMEMLIMIT" {
					found = append(found, e.Value)
				}
			}
			if len(found) != tc.wantCount || found[0] != tc.goMemory {
				t.Errorf("GOMEMLIMIT = %v, want %s", found, tc.goMemory)
			}
		})
	}
}
