// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// kubelet is an API server with the events of a kubelet that cannot mount a volume.
type kubelet struct {
	apiServer
	note string
}

func (k *kubelet) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if events, ok := list.(*eventsv1.EventList); ok {
		if k.note != "" {
			events.Items = []eventsv1.Event{{Reason: "FailedMount", Note: k.note}}
		}
		return nil
	}
	return k.apiServer.List(ctx, list, options...)
}

// creating returns a pod that was assigned to a node a while ago, and whose container has not started.
func creating(container string, since time.Duration) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod", CreationTimestamp: metav1.NewTime(now.Add(-since))},
		Spec: corev1.PodSpec{NodeName: "node"}}
	pod.Status.Phase = corev1.PodPending
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
	}}
	return pod
}

func TestVolumesThatCannotBeMounted(t *testing.T) {
	run := startedRun()
	run.Spec.Tinker.CABundleConfigMapKeyRef = &ref.ConfigMapKey{Name: "authorities"}
	run.Spec.Tinker.ClientCertificateSecretRef = &ref.Secret{Name: "certificate"}
	for name, tc := range map[string]struct {
		note  string
		since time.Duration
		field string
	}{
		"the bundle": {`MountVolume.SetUp failed for volume "ca" : configmap "authorities" not found`,
			time.Minute, "correct tinker.caBundleConfigMapKeyRef"},
		"the certificate": {`MountVolume.SetUp failed for volume "tls" : secret "certificate" not found`, time.Minute,
			"correct tinker.clientCertificateSecretRef"},
		"a volume of the pod": {`MountVolume.SetUp failed for volume "data" : configmap "data" not found`, time.Minute,
			"correct podOverrides[target=Learner].volumes"},
		"a volume of a network": {"mount.nfs: access denied by server", time.Minute,
			"correct podOverrides[target=Learner].volumes"},
		"a pod that has begun":   {"mount.nfs: access denied by server", time.Second, ""},
		"a pod without an event": {"", time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := creating(desired.LearnerContainer, tc.since)
			observer := New(Observer{Live: &kubelet{note: tc.note}, Now: func() time.Time { return now }})
			seen := State{Learners: map[int32]Learner{1: {Job: desired.LearnerJob(run, 1, "c", desired.Settings{}), Pod: &pod}}}
			observer.observeMounts(t.Context(), run, &seen)
			o := seen.LearnerObstacle
			if o.NeedsAction() != (tc.field != "") || !strings.Contains(o.Message(), tc.field) || o.NeedsAction() &&
				!strings.Contains(o.Message(), tc.note) {
				t.Errorf("the obstacle is %+v, want one that says %q and %q", o, tc.note, tc.field)
			}
			if seen.LookAgain != LookInterval {
				t.Errorf("LookAgain = %s, want %s", seen.LookAgain, LookInterval)
			}
		})
	}
}

func TestWorkersThatLackAVolume(t *testing.T) {
	run := startedRun()
	job, _ := failedWorkers(run, "first", 0)
	job.Status.Failed = 0
	pod := creating(desired.RolloutContainer, time.Minute)
	pod.Labels = podsOfJob(job)
	live := &kubelet{apiServer: apiServer{[]corev1.Pod{pod}}, note: `secret "hub" not found`}
	observer := New(Observer{Live: live, Now: func() time.Time { return now }})
	seen := State{Rollout: job}
	observer.observeObstacles(t.Context(), run, &seen)
	if o := seen.WorkersObstacle; o.Code != problem.VolumeNotMounted || !strings.Contains(o.Message(),
		"correct podOverrides[target=Workers].volumes") {
		t.Errorf("the obstacle is %+v, want ConfigNotFound with podOverrides[target=Workers].volumes", o)
	}
}
