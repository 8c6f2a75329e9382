// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/attempt"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

func TestEndingOfLearner(t *testing.T) {
	verdict := func(cause contract.Cause, attempt int32) string {
		return verdictText(t, contract.Verdict{Cause: cause, Attempt: attempt, Reason: "R", Message: "M"})
	}
	job := newJob("job")
	failedJob := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailureTarget,
		Status: corev1.ConditionTrue}}}}
	cases := map[string]struct {
		l    observe.Learner
		want contract.Cause // empty: it continues
	}{
		"a running learner continues":           {observe.Learner{Job: job, Pod: newPod()}, ""},
		"a pending learner continues":           {observe.Learner{Job: job, Pod: newPod(pending)}, ""},
		"a Job without a pod yet continues":     {observe.Learner{Job: job, Pod: nil}, ""},
		"a pod that outlives its Job continues": {observe.Learner{Job: nil, Pod: newPod()}, ""},
		"neither Job nor pod is a lost attempt": {observe.Learner{}, contract.CauseDisrupted},
		"a Job that failed without a pod left": {observe.Learner{Job: failedJob, Pod: nil},
			contract.CauseDisrupted},
		"a Job that counted a failure without a pod": {
			observe.Learner{Job: &batchv1.Job{Status: batchv1.JobStatus{Failed: 1}}, Pod: nil}, contract.CauseDisrupted},
		"completed by verdict and exit code": {observe.Learner{Job: job,
			Pod: newPod(exited(0, "Completed", verdict(contract.CauseCompleted, 2)))}, contract.CauseCompleted},
		"completed by verdict, but killed": {observe.Learner{Job: job,
			Pod: newPod(exited(137, "Error", verdict(contract.CauseCompleted, 2)))}, contract.CauseCrashed},
		"another attempt's verdict does not count": {observe.Learner{Job: job,
			Pod: newPod(exited(0, "Completed", verdict(contract.CauseCompleted, 1)))}, contract.CauseUnknown},
		"exit 0 without a verdict": {observe.Learner{Job: job,
			Pod: newPod(exited(0, "Completed", ""))}, contract.CauseUnknown},
		"refused configuration": {observe.Learner{Job: job,
			Pod: newPod(exited(64, "Error", verdict(contract.CauseConfigRejected, 2)))}, contract.CauseConfigRejected},
		"exit 64 without a verdict": {observe.Learner{Job: job,
			Pod: newPod(exited(64, "Error", ""))}, contract.CauseConfigRejected},
		"exit 65 without a verdict": {observe.Learner{Job: job,
			Pod: newPod(exited(65, "Error", ""))}, contract.CauseDataRejected},
		"exit 75 without a verdict": {observe.Learner{Job: job,
			Pod: newPod(exited(75, "Error", ""))}, contract.CauseDrained},
		"exit 77 without a verdict": {observe.Learner{Job: job,
			Pod: newPod(exited(77, "Error", ""))}, contract.CauseFenced},
		"gave up on the endpoint": {observe.Learner{Job: job,
			Pod: newPod(exited(75, "Error", verdict(contract.CauseUpstream, 2)))}, contract.CauseUpstream},
		"a cause that no learner reports": {observe.Learner{Job: job,
			Pod: newPod(exited(1, "Error", verdict("SomethingElse", 2)))}, contract.CauseCrashed},
		"a cause that only the manager infers": {observe.Learner{Job: job,
			Pod: newPod(exited(1, "Error", verdict(contract.CauseNodeLost, 2)))}, contract.CauseCrashed},
		"a panic": {observe.Learner{Job: job, Pod: newPod(exited(2, "Error", "panic: oh"))},
			contract.CauseCrashed},
		"out of memory": {observe.Learner{Job: job, Pod: newPod(exited(137, "OOMKilled", ""))},
			contract.CauseOOMKilled},
		"killed": {observe.Learner{Job: job, Pod: newPod(exited(137, "Error", ""))}, contract.CauseCrashed},
		"killed with its pod": {observe.Learner{Job: job, Pod: newPod(exited(137, "Error", ""), deleted(0))},
			contract.CauseDisrupted},
		"killed by preemption": {observe.Learner{Job: job,
			Pod: newPod(exited(137, "Error", ""), podCondition(corev1.DisruptionTarget, "True", "PreemptionByScheduler"))},
			contract.CauseDisrupted},
		"collected with its node": {observe.Learner{Job: job,
			Pod: newPod(exited(137, "Error", ""), podCondition(corev1.DisruptionTarget, "True", "DeletionByPodGC"))},
			contract.CauseNodeLost},
		"a verdict counts more than the pod's deletion": {observe.Learner{Job: job,
			Pod: newPod(exited(75, "Error", verdict(contract.CauseDrained, 2)), deleted(0))}, contract.CauseDrained},
		"forgotten by a kubelet that restarted": {observe.Learner{Job: job,
			Pod: newPod(exited(137, "ContainerStatusUnknown", ""))}, contract.CauseDisrupted},
		"evicted by the kubelet, without containers": {observe.Learner{Job: job,
			Pod: newPod(pending, func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" })},
			contract.CauseDisrupted},
		"an init container that failed": {observe.Learner{Job: job, Pod: newPod(pending, failedInit)},
			contract.CauseStartTimeout},
		"being deleted on a node that answers continues": {observe.Learner{Job: job,
			Pod: newPod(deleted(-time.Minute))}, ""},
		"being deleted for another taint, ready, continues": {observe.Learner{Job: job,
			Pod: newPod(deleted(-time.Minute), podCondition(corev1.DisruptionTarget, "True", "DeletionByTaintManager"),
				podCondition(corev1.PodReady, "True", ""))}, ""},
		"being deleted on a silent node": {observe.Learner{Job: job,
			Pod: newPod(deleted(-time.Minute), podCondition(corev1.DisruptionTarget, "True", "DeletionByTaintManager"),
				podCondition(corev1.PodReady, "False", ""))}, contract.CauseNodeLost},
		"deleted long ago and not removed": {observe.Learner{Job: job,
			Pod: newPod(deleted(time.Minute))}, contract.CauseNodeLost},
		"a node that is not ready, without eviction, continues": {observe.Learner{Job: job,
			Pod: newPod(podCondition(corev1.PodReady, "False", ""))}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := attempt.EndingOfLearner(2, tc.l.Job, tc.l.Pod, now)
			switch {
			case got == nil && tc.want != "":
				t.Errorf("ending = nothing, want %s", tc.want)
			case got != nil && got.Cause != tc.want:
				t.Errorf("ending = %s (%s), want %q", got.Cause, got.Message, tc.want)
			case got != nil && got.Message == "":
				t.Error("the ending says nothing")
			}
		})
	}
}

// failedInit ends a pod with an init container that failed.
func failedInit(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodFailed
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "fetch: no route"},
	}}}
}

func TestFailedInitContainerAwaitsRepair(t *testing.T) {
	end := attempt.EndingOfLearner(2, newJob("job"), newPod(pending, failedInit), now)
	ended := v1alpha1.Attempt{Cause: string(end.Cause), Reason: string(end.Reason)}
	if end.Reason != problem.InitContainerFailed || !attempt.AwaitsRepair(ended) ||
		attempt.CountsAsFailure(ended.Cause) {
		t.Errorf("the attempt ended as %+v, want one that waits for a repair and does not count", end)
	}
	if want := "Correct podOverrides[target=Learner].initContainers"; !strings.Contains(end.Message, want) {
		t.Errorf("the message is %q, want %q in it", end.Message, want)
	}
}

func TestEndingQuotesTheLog(t *testing.T) {
	log := strings.Repeat("x", 5000) + "\npanic: index out of range\n"
	got := attempt.EndingOfLearner(1, nil, newPod(exited(2, "Error", log)), now)
	if got.Cause != contract.CauseCrashed || !strings.HasSuffix(got.Message, "panic: index out of range") ||
		len(got.Message) > attempt.MaxMessage {
		t.Errorf("ending of a panic = %s: %q (%d bytes)", got.Cause, got.Message, len(got.Message))
	}
}

func TestEndingKeepsTheVerdict(t *testing.T) {
	text := verdictText(t, contract.Verdict{Cause: contract.CauseConfigRejected, Reason: "KeyRefused",
		Message: "Renew it.", Attempt: 1, Progress: contract.Progress{Step: 7}})
	got := attempt.EndingOfLearner(1, nil, newPod(exited(64, "Error", text)), now)
	if got.Reason != "KeyRefused" || got.Message != "Renew it." || got.Progress.Step != 7 {
		t.Errorf("ending = %+v", got)
	}
}

func TestKilledLearnerIsNotStoppedAsAsked(t *testing.T) {
	text := verdictText(t, contract.Verdict{Cause: contract.CauseDrained, Message: "Stopped at a saved state, as asked.",
		Attempt: 1, Progress: contract.Progress{Step: 7}})
	for name, tc := range map[string]struct {
		change func(*v1alpha1.TrainingRun)
		asked  bool
	}{
		"the pod was deleted":       {func(*v1alpha1.TrainingRun) {}, false},
		"the run was suspended":     {suspend, true},
		"and continues by now":      {conditionIs(v1alpha1.ConditionSuspended, "Unknown", time.Minute), true},
		"it continues since longer": {conditionIs(v1alpha1.ConditionSuspended, "False", time.Minute), false},
	} {
		run := newRun(attempts(inProgress(1)), tc.change)
		p := makePlan(run, observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(exited(75, "Error", text))}), now)
		if got := strings.Contains(p.ending.Message, "as asked"); got != tc.asked ||
			p.ending.Cause != contract.CauseDrained || p.ending.Message == "" {
			t.Errorf("%s: the attempt ended %s: %q", name, p.ending.Cause, p.ending.Message)
		}
	}
}
