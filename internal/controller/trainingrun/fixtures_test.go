// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"errors"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/problem"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time {
	at := metav1.NewTime(now.Add(-d))
	return &at
}

// newRun returns a run that has not started, with changes and then with its defaults.
func newRun(changes ...func(*v1alpha1.TrainingRun)) *v1alpha1.TrainingRun {
	run := &v1alpha1.TrainingRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "run", UID: "0123456789", Generation: 3},
		Spec: v1alpha1.TrainingRunSpec{
			Model:  v1alpha1.Model{Name: "m"},
			Tinker: v1alpha1.Tinker{BaseURL: "http://tinkersim", APIKeySecretKeyRef: &ref.SecretKey{Name: "tinker", Key: "k"}},
			Environments: []v1alpha1.TrainingEnvironment{{
				EnvironmentUse: v1alpha1.EnvironmentUse{Name: "env", Sampling: playing.Sampling{MaxTokens: 16}},
				GroupSize:      8,
			}},
			Algorithm: &algorithm.Algorithm{TasksPerStep: 4, Steps: 60,
				Optimizer: algorithm.Optimizer{LearningRate: 1}},
			Rollouts: v1alpha1.Rollouts{Workers: new(int32(2))},
		},
	}
	for _, change := range changes {
		change(run)
	}
	admit.Default(run)
	return run
}

// attempts sets the attempts of a started run, the newest first.
func attempts(list ...v1alpha1.Attempt) func(*v1alpha1.TrainingRun) {
	return func(run *v1alpha1.TrainingRun) {
		run.Status.StartTime = ago(time.Hour)
		run.Status.Attempts = list
	}
}

func inProgress(number int32) v1alpha1.Attempt {
	return v1alpha1.Attempt{Number: number, StartTime: ago(time.Minute)}
}

// endedAttempt returns an attempt that ended a while ago. It began at step from, and ended at step to.
func endedAttempt(number int32, cause contract.Cause, from, to int64, since time.Duration) v1alpha1.Attempt {
	return v1alpha1.Attempt{
		Number: number, Cause: string(cause), StartTime: ago(since + time.Minute), CompletionTime: ago(since),
		FromStep: new(from), ToStep: new(to),
	}
}

func suspend(run *v1alpha1.TrainingRun) { run.Spec.Suspend = new(true) }

func conditionIs(kind string, status metav1.ConditionStatus, since time.Duration) func(*v1alpha1.TrainingRun) {
	return func(run *v1alpha1.TrainingRun) {
		run.Status.Conditions = append(run.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "R",
			LastTransitionTime: *ago(since)})
	}
}

func newJob(name string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// newPod returns the running pod of a learner, with changes.
func newPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "pod", UID: "pod"},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "learner", Image: "image"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{{
			Name: "learner", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *ago(time.Minute)}},
		}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func pending(pod *corev1.Pod) {
	pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodPending, nil
}

func waitingFor(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodPending
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason,
			Message: message}}
	}
}

func exited(code int32, reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, Message: message}}
	}
}

func deleted(since time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.DeletionTimestamp = ago(since) }
}

func podCondition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason})
	}
}

func unschedulableFor(d time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		podCondition(corev1.PodScheduled, "False", "Unschedulable")(pod)
		pod.Status.Conditions[0].LastTransitionTime = *ago(d)
	}
}

func verdictText(t *testing.T, v contract.Verdict) string {
	t.Helper()
	data, err := contract.EncodeVerdict(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// observing returns a state with the learner of one attempt, workers and a ready environment.
func observing(attempt int32, l observe.Learner, changes ...func(*observe.State)) observe.State {
	seen := observe.State{
		Learners: map[int32]observe.Learner{},
		Rollout: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "rollout"},
			Status: batchv1.JobStatus{Ready: new(int32(2))}},
		Service:      &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "service"}},
		Environments: map[string]*v1alpha1.RewardEnvironment{"env": readyEnvironment()},
	}
	if l.Job != nil || l.Pod != nil {
		seen.Learners[attempt] = l
	}
	for _, change := range changes {
		change(&seen)
	}
	return seen
}

// replying sets an answer of the learner from a moment ago.
func replying(reply contract.HeartbeatReply) func(*observe.State) {
	return func(seen *observe.State) {
		reply.RunUID = "0123456789"
		seen.Heartbeat = poller.Result{Reply: &reply, At: now.Add(-time.Second), Since: now.Add(-time.Hour)}
	}
}

// silent lets an hour's heartbeats pass without an answer of the learner.
func silent(seen *observe.State) {
	seen.Heartbeat = poller.Result{Since: now.Add(-time.Hour), Err: errors.New("connection refused")}
}

func repliedLongAgo(reply contract.HeartbeatReply) func(*observe.State) {
	return func(seen *observe.State) {
		replying(reply)(seen)
		seen.Heartbeat.At = now.Add(-time.Hour)
		seen.Heartbeat.Err = errors.New("connection refused")
	}
}

var blocked = contract.HeartbeatReply{
	Attempt: 1, SecondsSinceProgress: 3000,
	Problems: []problem.Problem{{Code: problem.ArtifactsBlocked, Evidence: "mkdir /artifacts/uid: permission denied"}},
	Progress: contract.Progress{Phase: contract.PhaseOpening},
}

// unavailable is the reply of a learner that has made no progress for a day, because no worker can play an
// environment.
func unavailable(skipped bool) contract.HeartbeatReply {
	reply := contract.HeartbeatReply{
		Attempt: 1, SecondsSinceProgress: 86400, Progress: contract.Progress{Phase: contract.PhaseTraining, WorkersSeen: 2},
		Unavailable: []contract.UnavailableEnvironment{{Name: "env", Problem: "connection refused", Skipped: skipped}},
	}
	if !skipped {
		reply.Problems = []problem.Problem{{Code: problem.EnvironmentUnavailable, Evidence: `"env"`}}
	}
	return reply
}

func readyEnvironment() *v1alpha1.RewardEnvironment {
	env := &v1alpha1.RewardEnvironment{
		ObjectMeta: metav1.ObjectMeta{Name: "env", Generation: 1},
		Spec: v1alpha1.RewardEnvironmentSpec{
			Dataset: &environment.Dataset{Arithmetic: &environment.ArithmeticData{}},
			Reward:  &environment.Reward{RewardRule: environment.RewardRule{ExactMatch: &environment.ExactMatch{}}},
		},
		Status: v1alpha1.RewardEnvironmentStatus{
			ObservedGeneration: new(int64(1)), Digest: "digest",
			Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Probed"}},
			Splits:     []v1alpha1.SplitStatus{{Name: "train", Tasks: new(int64(900))}, {Name: "test", Tasks: new(int64(100))}},
		},
	}
	admit.Default(env)
	return env
}
