// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"maps"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// apiServer lists the pods whose labels match the selector of the request.
type apiServer struct{ pods []corev1.Pod }

func (*apiServer) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

func (s *apiServer) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return nil
	}
	var asked client.ListOptions
	asked.ApplyOptions(options)
	for _, pod := range s.pods {
		if asked.LabelSelector == nil || asked.LabelSelector.Matches(labels.Set(pod.Labels)) {
			pods.Items = append(pods.Items, pod)
		}
	}
	return nil
}

// startedRun is a run whose first attempt is in progress.
func startedRun() *v1alpha1.TrainingRun {
	run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "run", UID: "0123456789"}}
	at := metav1.NewTime(now.Add(-time.Minute))
	run.Status.Attempts = []v1alpha1.Attempt{{Number: 1, StartTime: &at}}
	admit.Default(run)
	return run
}

// failedWorkers are a workers' Job and its only pod, which has exited.
func failedWorkers(run *v1alpha1.TrainingRun, uid types.UID, exitCode int32) (*batchv1.Job, corev1.Pod) {
	job := desired.RolloutJob(run, 1, "credentials", desired.Settings{})
	job.UID, job.CreationTimestamp, job.Status.Failed = uid, metav1.NewTime(now.Add(-time.Minute)), 1
	// The Job controller adds the name of the Job to the labels of the template.
	podLabels := maps.Clone(job.Spec.Template.Labels)
	podLabels[batchv1.JobNameLabel] = job.Name
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Labels:          podLabels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
	}}
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:  desired.RolloutContainer,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode}},
	}}
	return job, pod
}

func TestObstacleOfAnEarlierJobIsForgotten(t *testing.T) {
	run := startedRun()
	refused, pod := failedWorkers(run, "first", contract.ExitVersion)
	observer := New(Observer{Live: &apiServer{[]corev1.Pod{pod}}, Now: func() time.Time { return now }})
	seen := State{Rollout: refused}
	observer.observeObstacles(t.Context(), run, &seen)
	if seen.WorkersObstacle.Code != problem.VersionRefused {
		t.Fatalf("the obstacle of workers of another version is %+v", seen.WorkersObstacle)
	}
	replaced, _ := failedWorkers(run, "second", 0)
	seen = State{Rollout: replaced}
	observer.observeObstacles(t.Context(), run, &seen)
	if seen.WorkersObstacle.Code != "" {
		t.Errorf("the Job that replaced them has the obstacle %+v", seen.WorkersObstacle)
	}
	if seen.LookAgain == 0 {
		t.Error("the new Job is not looked at")
	}
}

func TestObstacleOfAnEarlierLearnerIsForgotten(t *testing.T) {
	run := startedRun()
	job := func(uid types.UID) map[int32]Learner {
		learner := desired.LearnerJob(run, 1, "credentials", desired.Settings{})
		learner.UID, learner.CreationTimestamp = uid, metav1.NewTime(now.Add(-time.Minute))
		return map[int32]Learner{1: {Job: learner}}
	}
	observer := New(Observer{Live: &apiServer{}, Now: func() time.Time { return now }})
	found := look{at: now, learnerJob: "first"}
	found.learner.Code = problem.CreateRefused
	observer.looks.Set(run, found)
	for uid, want := range map[types.UID]problem.Code{"first": problem.CreateRefused, "second": ""} {
		seen := State{Learners: job(uid)}
		observer.observeObstacles(t.Context(), run, &seen)
		if seen.LearnerObstacle.Code != want {
			t.Errorf("Job %s has the obstacle %+v, want reason %q", uid, seen.LearnerObstacle, want)
		}
	}
}

// TestWorkersWithARefusedKey checks that the refusal of a key stays reported while later Jobs try the key again, until
// a worker is ready.
func TestWorkersWithARefusedKey(t *testing.T) {
	run, at := startedRun(), now
	refused, pod := failedWorkers(run, "first", contract.ExitKeyRefused)
	pod.CreationTimestamp = metav1.NewTime(now.Add(-40 * time.Second))
	live := &apiServer{[]corev1.Pod{pod}}
	observer := New(Observer{Live: live, Now: func() time.Time { return at }})
	look := func(job *batchv1.Job) State {
		seen := State{Rollout: job}
		observer.observeObstacles(t.Context(), run, &seen)
		return seen
	}
	seen := look(refused)
	if seen.WorkersObstacle.Code != problem.WorkersKeyRefused || !seen.WorkersReplaceAt.Equal(now.Add(5*time.Second)) {
		t.Fatalf("the obstacle is %+v, and the Job is replaced at %v", seen.WorkersObstacle, seen.WorkersReplaceAt)
	}
	live.pods = nil
	next, _ := failedWorkers(run, "second", 0)
	next.CreationTimestamp, next.Status.Failed = metav1.NewTime(now), 0
	for name, job := range map[string]*batchv1.Job{"no Job": nil, "the next Job": next} {
		if seen := look(job); seen.WorkersObstacle.Code != problem.WorkersKeyRefused || !seen.WorkersReplaceAt.IsZero() {
			t.Errorf("with %s the obstacle is %+v, and the Job is replaced at %v", name, seen.WorkersObstacle,
				seen.WorkersReplaceAt)
		}
	}
	at = now.Add(15 * time.Second)
	if seen := look(next); seen.WorkersObstacle.Code != problem.WorkersKeyRefused {
		t.Errorf("while the next Job's workers try the key the obstacle is %+v", seen.WorkersObstacle)
	}
	ready := next.DeepCopy()
	ready.Status.Ready = new(int32(1))
	if seen := look(ready); seen.WorkersObstacle.NeedsAction() {
		t.Errorf("once a worker is ready the obstacle is %+v", seen.WorkersObstacle)
	}
}

// TestWorkersWithLabelsOfTheirOwn finds the pods of workers whose labels differ from the labels of their Job.
func TestWorkersWithLabelsOfTheirOwn(t *testing.T) {
	run := startedRun()
	run.Labels = map[string]string{"team": "a"}
	run.Spec.Override(v1alpha1.TargetWorkers).Labels = map[string]v1alpha1.LabelValue{"team": "b"}
	job, pod := failedWorkers(run, "first", contract.ExitVersion)
	observer := New(Observer{Live: &apiServer{[]corev1.Pod{pod}}, Now: func() time.Time { return now }})
	seen := State{Rollout: job}
	observer.observeObstacles(t.Context(), run, &seen)
	if seen.WorkersObstacle.Code != problem.VersionRefused {
		t.Errorf("the obstacle is %+v, want reason %q", seen.WorkersObstacle, problem.VersionRefused)
	}
}

// TestLingeringPods checks that a pod that does not end is named once its node has had the time to end it.
func TestLingeringPods(t *testing.T) {
	run, at := startedRun(), now
	job, pod := failedWorkers(run, "first", 0)
	pod.Name, pod.Spec.NodeName, pod.Status = "worker", "node", corev1.PodStatus{Phase: corev1.PodRunning}
	pod.DeletionTimestamp, job.DeletionTimestamp = &metav1.Time{Time: now.Add(time.Minute)}, &metav1.Time{Time: now}
	observer := New(Observer{Live: &apiServer{[]corev1.Pod{pod}}, Now: func() time.Time { return at }})
	for _, tc := range []struct {
		after time.Duration
		want  string
		again time.Duration
	}{
		{time.Second, "", 0}, {time.Minute, "", LookInterval}, {2 * time.Minute, `pod "worker" on node "node"`, LookInterval},
	} {
		at = now.Add(tc.after)
		seen := State{Rollout: job}
		observer.observeLingering(t.Context(), run, &seen)
		if seen.Lingering != tc.want || seen.LookAgain != tc.again {
			t.Errorf("after %s: Lingering = %q, LookAgain = %s, want %q, %s", tc.after, seen.Lingering, seen.LookAgain, tc.want,
				tc.again)
		}
	}
	ended := New(Observer{Live: &apiServer{}, Now: func() time.Time { return at }})
	seen := State{Rollout: job}
	if ended.observeLingering(t.Context(), run, &seen); seen.Lingering != "" {
		t.Errorf("once the pod has ended: Lingering = %q", seen.Lingering)
	}
}
