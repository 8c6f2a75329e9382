// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/internal/heartbeat"
)

func TestJudge(t *testing.T) {
	verdict := func(cause heartbeat.Cause, attempt int32) string {
		return verdictText(t, heartbeat.Verdict{Cause: cause, Attempt: attempt, Reason: "R", Message: "M"})
	}
	job := aJob("job")
	failedJob := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}}}
	cases := map[string]struct {
		l    learner
		want heartbeat.Cause // empty: it goes on
	}{
		"a running learner goes on":                        {learner{job, aPod()}, ""},
		"a pending learner goes on":                        {learner{job, aPod(pending)}, ""},
		"a Job without a pod yet goes on":                  {learner{job, nil}, ""},
		"a pod that outlives its Job goes on":              {learner{nil, aPod()}, ""},
		"neither Job nor pod is a lost attempt":            {learner{}, heartbeat.CauseDisrupted},
		"a Job that failed without a pod left":             {learner{failedJob, nil}, heartbeat.CauseDisrupted},
		"a Job that counted a failure without a pod":       {learner{&batchv1.Job{Status: batchv1.JobStatus{Failed: 1}}, nil}, heartbeat.CauseDisrupted},
		"completed by verdict and exit code":               {learner{job, aPod(exited(0, "Completed", verdict(heartbeat.CauseCompleted, 2)))}, heartbeat.CauseCompleted},
		"completed by verdict, but killed":                 {learner{job, aPod(exited(137, "Error", verdict(heartbeat.CauseCompleted, 2)))}, heartbeat.CauseCrashed},
		"another attempt's verdict is none":                {learner{job, aPod(exited(0, "Completed", verdict(heartbeat.CauseCompleted, 1)))}, heartbeat.CauseUnknown},
		"exit 0 without a verdict":                         {learner{job, aPod(exited(0, "Completed", ""))}, heartbeat.CauseUnknown},
		"refused configuration":                            {learner{job, aPod(exited(64, "Error", verdict(heartbeat.CauseConfigRejected, 2)))}, heartbeat.CauseConfigRejected},
		"exit 64 without a verdict":                        {learner{job, aPod(exited(64, "Error", ""))}, heartbeat.CauseConfigRejected},
		"exit 65 without a verdict":                        {learner{job, aPod(exited(65, "Error", ""))}, heartbeat.CauseDataRejected},
		"exit 75 without a verdict":                        {learner{job, aPod(exited(75, "Error", ""))}, heartbeat.CauseDrained},
		"exit 77 without a verdict":                        {learner{job, aPod(exited(77, "Error", ""))}, heartbeat.CauseFenced},
		"gave up on the endpoint":                          {learner{job, aPod(exited(75, "Error", verdict(heartbeat.CauseUpstream, 2)))}, heartbeat.CauseUpstream},
		"a panic":                                          {learner{job, aPod(exited(2, "Error", "panic: oh"))}, heartbeat.CauseCrashed},
		"out of memory":                                    {learner{job, aPod(exited(137, "OOMKilled", ""))}, heartbeat.CauseOOMKilled},
		"killed":                                           {learner{job, aPod(exited(137, "Error", ""))}, heartbeat.CauseCrashed},
		"killed with its pod":                              {learner{job, aPod(exited(137, "Error", ""), deleted(0))}, heartbeat.CauseDisrupted},
		"killed by preemption":                             {learner{job, aPod(exited(137, "Error", ""), podCondition(corev1.DisruptionTarget, "True", "PreemptionByScheduler"))}, heartbeat.CauseDisrupted},
		"collected with its node":                          {learner{job, aPod(exited(137, "Error", ""), podCondition(corev1.DisruptionTarget, "True", "DeletionByPodGC"))}, heartbeat.CauseNodeLost},
		"a verdict counts more than the pod's deletion":    {learner{job, aPod(exited(75, "Error", verdict(heartbeat.CauseDrained, 2)), deleted(0))}, heartbeat.CauseDrained},
		"forgotten by a kubelet that restarted":            {learner{job, aPod(exited(137, "ContainerStatusUnknown", ""))}, heartbeat.CauseDisrupted},
		"evicted by the kubelet, without containers":       {learner{job, aPod(pending, func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" })}, heartbeat.CauseDisrupted},
		"being deleted on a node that answers goes on":     {learner{job, aPod(deleted(-time.Minute))}, ""},
		"being deleted for another taint, ready, goes on":  {learner{job, aPod(deleted(-time.Minute), podCondition(corev1.DisruptionTarget, "True", "DeletionByTaintManager"), podCondition(corev1.PodReady, "True", ""))}, ""},
		"being deleted on a silent node":                   {learner{job, aPod(deleted(-time.Minute), podCondition(corev1.DisruptionTarget, "True", "DeletionByTaintManager"), podCondition(corev1.PodReady, "False", ""))}, heartbeat.CauseNodeLost},
		"deleted long ago and still there":                 {learner{job, aPod(deleted(time.Minute))}, heartbeat.CauseNodeLost},
		"a node that is not ready, without eviction, goes": {learner{job, aPod(podCondition(corev1.PodReady, "False", ""))}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := judge(2, tc.l, now)
			switch {
			case got == nil && tc.want != "":
				t.Errorf("judge = nothing, want %s", tc.want)
			case got != nil && got.cause != tc.want:
				t.Errorf("judge = %s (%s), want %q", got.cause, got.message, tc.want)
			case got != nil && got.message == "":
				t.Error("the ending says nothing")
			}
		})
	}
}

func TestJudgeKeepsTheVerdict(t *testing.T) {
	text := verdictText(t, heartbeat.Verdict{Cause: heartbeat.CauseConfigRejected, Reason: "KeyRefused", Message: "Renew it.", Attempt: 1, Progress: heartbeat.Progress{Step: 7}})
	got := judge(1, learner{pod: aPod(exited(64, "Error", text))}, now)
	if got.reason != "KeyRefused" || got.message != "Renew it." || got.progress.Step != 7 {
		t.Errorf("judge = %+v", got)
	}
}
