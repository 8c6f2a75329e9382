// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestCacheStoresLittle(t *testing.T) {
	options, err := CacheOptions([]string{"a", "b"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(options.DefaultNamespaces) != 2 {
		t.Errorf("namespaces = %v", options.DefaultNamespaces)
	}
	own := labels.Set{"app.kubernetes.io/managed-by": "tinker-operator"}
	for object, by := range options.ByObject {
		if by.Label.Matches(labels.Set{"app.kubernetes.io/managed-by": "Helm"}) {
			t.Errorf("%T of others are cached", object)
		}
		role := func(name string) labels.Set {
			return labels.Merge(own, labels.Set{"rl.tinker-operator.dev/role": name})
		}
		if _, pods := object.(*corev1.Pod); pods {
			if by.Label.Matches(role("rollout")) || !by.Label.Matches(role("learner")) || !by.Label.Matches(role("probe")) {
				t.Error("pods are cached that nobody reads, or not those that are read")
			}
		}
	}
	all, err := CacheOptions(nil, true)
	if err != nil || all.DefaultNamespaces != nil {
		t.Errorf("all namespaces: %v, %v", all.DefaultNamespaces, err)
	}
}

func TestStrip(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		NodeName: "node", Volumes: []corev1.Volume{{Name: "v"}},
		Containers:     []corev1.Container{{Name: "c", Image: "i", Args: []string{"a"}}},
		InitContainers: []corev1.Container{{Name: "first", Image: "f", Args: []string{"a"}}},
	}}
	if _, err := strip(pod); err != nil {
		t.Fatal(err)
	}
	want := corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "c", Image: "i"}},
		InitContainers: []corev1.Container{{Name: "first", Image: "f"}}}
	if diff := cmp.Diff(want, pod.Spec); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	job := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: new(int32(2)),
		Template: corev1.PodTemplateSpec{Spec: pod.Spec}}}
	job.Spec.Template.Labels = map[string]string{"a": "b"}
	if _, err := strip(job); err != nil {
		t.Fatal(err)
	}
	if job.Spec.Template.Spec.NodeName != "" || *job.Spec.Parallelism != 2 || job.Spec.Template.Labels["a"] != "b" {
		t.Errorf("job = %+v", job.Spec)
	}
}
