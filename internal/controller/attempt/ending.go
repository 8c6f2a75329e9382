// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"cmp"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// Ending is the end of an attempt.
type Ending struct {
	Cause contract.Cause
	// Reason is the code of the problem, and may be empty.
	Reason  problem.Code
	Message string
	// Progress is the progress in the learner's verdict; nil if there is no verdict.
	Progress *contract.Progress
}

// OverdueAfter is the time after its grace period for which a pod may linger before its node counts as lost.
const OverdueAfter = 30 * time.Second

// EndingOfLearner returns how an attempt ended, from its Job and pod; nil while it is in progress. The pod decides if
// there is one: a Job is slow to fail, and on a silent node it never does.
func EndingOfLearner(attempt int32, job *batchv1.Job, pod *corev1.Pod, now time.Time) *Ending {
	if pod != nil {
		return ofPod(attempt, pod, now)
	}
	if job == nil {
		return &Ending{Cause: contract.CauseDisrupted, Message: "The attempt's Job was deleted or never created."}
	}
	if JobEnded(job) {
		return &Ending{Cause: contract.CauseDisrupted, Message: "The learner's pod was deleted and left no verdict."}
	}
	return nil
}

// JobEnded reports whether a Job will make no further pod.
func JobEnded(job *batchv1.Job) bool {
	if job.DeletionTimestamp != nil || job.Status.Failed > 0 || job.Status.Succeeded > 0 {
		return true
	}
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Type != batchv1.JobSuspended {
			return true
		}
	}
	return false
}

func ofPod(attempt int32, pod *corev1.Pod, now time.Time) *Ending {
	if terminated := podstate.Termination(pod, desired.LearnerContainer); terminated != nil {
		return ofTermination(attempt, pod, terminated)
	}
	if failed := podstate.FailedInit(pod, "podOverrides[target=Learner]"); failed.NeedsAction() {
		return &Ending{Cause: contract.CauseStartTimeout, Reason: failed.Code, Message: failed.Message()}
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		message := cmp.Or(pod.Status.Message, pod.Status.Reason, "It left no verdict.")
		return &Ending{Cause: disruption(pod, contract.CauseDisrupted), Message: "The learner's pod ended: " + message}
	}
	if pod.DeletionTimestamp == nil {
		return nil
	}
	if podstate.NodeSilent(pod) || now.After(pod.DeletionTimestamp.Add(OverdueAfter)) {
		return &Ending{Cause: contract.CauseNodeLost, Message: fmt.Sprintf("Node %q does not answer.", pod.Spec.NodeName)}
	}
	return nil
}

// ofTermination returns the ending by a learner's own verdict, if the exit code agrees with it, or else by the exit
// code.
func ofTermination(attempt int32, pod *corev1.Pod, t *corev1.ContainerStateTerminated) *Ending {
	verdict, err := contract.DecodeVerdict(t.Message)
	if err == nil && verdict.Attempt == attempt && int(t.ExitCode) == verdict.Cause.ExitCode() {
		return ofVerdict(verdict)
	}
	if podstate.OutOfMemory(t) {
		return &Ending{Cause: contract.CauseOOMKilled,
			Message: "The learner used more memory than its limit: raise podOverrides[target=Learner].resources.limits.memory."}
	}
	if t.Reason == "ContainerStatusUnknown" {
		return &Ending{Cause: contract.CauseDisrupted, Message: "The node lost track of the learner's container."}
	}
	causes := map[int32]contract.Cause{
		0:  contract.CauseUnknown,
		64: contract.CauseConfigRejected,
		65: contract.CauseDataRejected,
		75: contract.CauseDrained,
		77: contract.CauseFenced,
	}
	cause, known := causes[t.ExitCode]
	if !known {
		cause = disruption(pod, contract.CauseCrashed)
	}
	message := fmt.Sprintf("The learner exited with code %d and left no verdict.", t.ExitCode)
	if err != nil && t.Message != "" {
		// The kubelet returns the end of the log if a container left no message.
		message = fmt.Sprintf("The learner exited with code %d; its log ends: %s", t.ExitCode,
			podstate.LogEnd(t.Message, maxLogEnd))
	}
	return &Ending{Cause: cause, Message: message}
}

// MaxMessage is the longest message of an attempt.
const MaxMessage = 256

// maxLogEnd limits the part of a learner's log in an attempt's message.
const maxLogEnd = MaxMessage - 64

// ofVerdict returns an ending as the learner reports it. A cause that no learner reports counts as a crash. A refused
// key can be replaced while the run waits, even if a learner calls it a refused configuration.
func ofVerdict(v contract.Verdict) *Ending {
	end := &Ending{Cause: v.Cause, Reason: v.Reason, Message: v.Message, Progress: &v.Progress}
	if v.Reason != "" && !problem.IsKnown(v.Reason) {
		end.Message = problem.Problem{Code: v.Reason, Evidence: v.Message}.Message()
	}
	if !v.Cause.Reported() {
		end.Cause = contract.CauseCrashed
	}
	if v.Cause == contract.CauseConfigRejected && v.Reason == problem.KeyRefused {
		end.Cause = contract.CauseUpstream
	}
	return end
}

// disruption returns the cause of the end of a pod that something other than its learner ended, or the argument
// otherwise for any other pod.
func disruption(pod *corev1.Pod, otherwise contract.Cause) contract.Cause {
	switch podstate.DisruptionOf(pod) {
	case podstate.NodeLost:
		return contract.CauseNodeLost
	case podstate.Disrupted:
		return contract.CauseDisrupted
	default:
		return otherwise
	}
}
