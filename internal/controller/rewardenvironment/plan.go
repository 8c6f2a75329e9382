// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rewardenvironment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Pauses between probes of an environment that failed in a way that may pass. A repair is noticed within a minute, and
// there is one pod every 45 s at most.
const (
	retryInterval = refusal.RetryInterval
	minPause      = 10 * time.Second
	maxPause      = 30 * time.Minute
)

// dataInterval is the time between two looks at ConfigMaps that have data or code.
const dataInterval = 15 * time.Second

// lookInterval is the time between two looks at why a probe has no pod.
const lookInterval = 10 * time.Second

// plan has the actions on an environment, and its condition.
type plan struct {
	// ready is the condition; its zero value leaves it as it is.
	ready status.Condition
	// found is the result of the probe; nil if there is none that counts.
	found *found
	// probe is the number of the try to make; 0 if there is none.
	probe   int32
	deletes []*batchv1.Job
	// pending says that the probe does not run yet, so that the reason why the former probe did not start stays in the
	// status.
	pending bool
	requeue time.Duration
}

// found is the result that goes into the status.
type found struct {
	digest string
	result contract.ProbeResult
	code   []v1alpha1.CodeStatus
	image  string
	// packages are the wheels of execution.requirements.
	packages []string
	at       time.Time
}

// makePlan decides: an environment whose generation has its answer is left alone; a probe that has ended
// gives the answer, or is tried again after a while; otherwise one is made.
func makePlan(env *v1alpha1.RewardEnvironment, seen observed, now time.Time) plan {
	p := plan{}
	for _, job := range seen.others {
		if job.DeletionTimestamp == nil {
			p.deletes = append(p.deletes, job)
		}
	}
	if hasAnswer(env, seen) {
		return p
	}
	if seen.unreadable != nil {
		p.ready = notReady(*seen.unreadable)
		return p
	}
	if err := seen.definition.Validate(); err != nil {
		p.ready = notReady(problem.Problem{Code: problem.Invalid, Evidence: err.Error()})
		return p
	}
	if seen.job == nil {
		p.ready, p.pending = probing(), true
		return p.withProbe(env, seen, 1, now)
	}
	if t := podstate.Termination(seen.pod, desired.ProbeContainer); t != nil {
		return p.withResult(env, seen, t, now)
	}
	if digest := seen.job.Annotations[v1alpha1.AnnotationTemplate]; digest != "" &&
		digest != desired.ProbeTemplateDigest(env) {
		p.ready, p.pending = probing(), true
		return p.withProbe(env, seen, seen.try+1, now)
	}
	if end := podstate.JobEnd(seen.job); end != nil && seen.podRefused.Code != "" {
		p.ready = refusedPod(seen.podRefused)
		return p.withProbe(env, seen, seen.try+1, now)
	} else if end != nil {
		return p.withRetry(env, seen, end.LastTransitionTime.Time, withoutAnswer(seen.pod), now)
	}
	if podstate.ImageMissing(seen.pod) {
		return p.withoutImage(env, seen, now)
	}
	return p.withoutResult(seen)
}

// withoutResult waits for a probe that does not run, or has not ended.
func (p plan) withoutResult(seen observed) plan {
	if seen.pod == nil {
		p.requeue = lookInterval
	}
	if seen.pod == nil && seen.podRefused.Code != "" {
		p.ready = refusedPod(seen.podRefused)
		return p
	}
	_, running := podstate.Running(seen.pod, desired.ProbeContainer)
	p.ready, p.pending = waitingProbe(seen.pod), !running
	return p
}

// withoutImage replaces a probe whose image is missing after a while: the kubelet pulls the image for another pod
// sooner.
func (p plan) withoutImage(env *v1alpha1.RewardEnvironment, seen observed, now time.Time) plan {
	p.ready, p.requeue = waitingProbe(seen.pod), podstate.ReplaceIn(seen.pod, now)
	if p.requeue > 0 {
		return p
	}
	return p.withProbe(env, seen, seen.try+1, now)
}

// hasAnswer reports whether this generation has an answer that stays until a ConfigMap that it reads changes.
func hasAnswer(env *v1alpha1.RewardEnvironment, seen observed) bool {
	ready := meta.FindStatusCondition(env.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != env.Generation || ptr.Deref(env.Status.ObservedGeneration,
		0) != env.Generation {
		return false
	}
	if ready.Reason == v1alpha1.ReasonProbed {
		return seen.files.Match(env.Status.Dataset) && seen.unreadable == nil && slices.Equal(seen.code, env.Status.Code)
	}
	return ready.Reason == v1alpha1.ReasonSpecInvalid
}

// withResult reads the result of a probe.
func (p plan) withResult(env *v1alpha1.RewardEnvironment, seen observed, t *corev1.ContainerStateTerminated,
	now time.Time) plan {
	result, err := contract.DecodeProbeResult(t.Message)
	if err != nil {
		ended := problem.Problem{Code: problem.ProbeFailed, Evidence: fmt.Sprintf("exit code %d", t.ExitCode)}
		return p.withRetry(env, seen, t.FinishedAt.Time, notReady(ended), now)
	}
	if result.OK && !seen.files.Match(datasetStatus(result.Contents)) {
		changed := notReady(problem.Problem{Code: problem.DataChanging})
		return p.withRetry(env, seen, t.FinishedAt.Time, changed, now)
	}
	if result.OK {
		image := desired.ImageOfProbe(seen.definition, podstate.ImageID(seen.pod, desired.FunctionContainer(env.Name)))
		packages, err := packagesOf(seen)
		if err != nil {
			unpinned := notReady(problem.Problem{Code: problem.PackagesUnavailable, Evidence: err.Error()})
			return p.withRetry(env, seen, t.FinishedAt.Time, unpinned, now)
		}
		digest, err := environmentDigest(seen.definition, result, image, packages)
		if err != nil {
			p.ready = notReady(problem.Problem{Code: problem.Invalid, Evidence: err.Error()})
			return p
		}
		message := "The probe found tasks and graded a reply."
		if result.Message != "" {
			message += " Warning: " + strings.TrimRight(result.Message, ". ") + "."
		}
		p.ready = status.True(v1alpha1.ConditionReady, v1alpha1.ReasonProbed, message)
		p.found = &found{digest: digest, result: result, code: seen.code, image: image, packages: packages,
			at: t.FinishedAt.Time}
		return p
	}
	failed := notReady(problem.Problem{Code: result.Reason, Evidence: strings.TrimRight(result.Message, ". ")})
	if result.Reason == problem.Invalid {
		p.ready = failed
		return p
	}
	return p.withRetry(env, seen, t.FinishedAt.Time, failed, now)
}

// packagesOf returns the wheels that the probe's pod has pinned.
func packagesOf(seen observed) ([]string, error) {
	message := ""
	if t := podstate.InitTermination(seen.pod, desired.PackagesContainer); t != nil {
		message = t.Message
	}
	return desired.PackagesOfProbe(seen.definition, message)
}

// withRetry makes the next try when the time since the last is over.
func (p plan) withRetry(env *v1alpha1.RewardEnvironment, seen observed, ended time.Time, as status.Condition,
	now time.Time) plan {
	p.ready = as
	lasted := podstate.Lasted(seen.pod, desired.ProbeContainer)
	wait := max(retryInterval-lasted, minPause)
	if as.Code == problem.DataInvalid {
		// The probe has read all data: at most half of the time goes into reading them again.
		wait = max(wait, min(lasted, maxPause))
	}
	// The clock of a node may be behind: by this process's own clock there is also at most one pod in each interval.
	if left := max(ended.Add(wait).Sub(now), seen.started.Add(retryInterval).Sub(now)); left > 0 {
		p.requeue = left
		return p
	}
	return p.withProbe(env, seen, seen.try+1, now)
}

// withProbe makes a try, unless the API server refused it a moment ago, or finally.
func (p plan) withProbe(env *v1alpha1.RewardEnvironment, seen observed, try int32, now time.Time) plan {
	wait, again := seen.refused.Wait(env.Generation, now)
	if seen.refused.Code != "" && seen.refused.Generation == env.Generation {
		p.ready = notStarting(refusal.OfObject(seen.refused.Problem, "Job", "pod"))
	}
	if wait > 0 || !again {
		p.requeue = wait
		return p
	}
	p.probe = try
	if seen.job != nil {
		p.deletes = append(p.deletes, seen.job)
	}
	return p
}

// withoutAnswer returns the condition of a probe that ended without a result.
func withoutAnswer(pod *corev1.Pod) status.Condition {
	if failed := podstate.FailedInit(pod, "pod"); failed.NeedsAction() {
		return notStarting(failed)
	}
	return notReady(problem.Problem{Code: problem.ProbeFailed, Evidence: "its pod was deleted, or it took too long"})
}

func refusedPod(refused problem.Problem) status.Condition {
	return notStarting(refusal.OfObject(refused, "pod", "pod"))
}

// waitingProbe returns the condition of a probe that has not ended, with the reason of its wait. While a probe after a
// failure has no problem itself, it does not change the condition, so that the failure stays visible.
func waitingProbe(pod *corev1.Pod) status.Condition {
	if _, running := podstate.Running(pod, desired.ProbeContainer); running {
		return probing()
	}
	obstacle := podstate.Waiting(pod, desired.ProbeContainer, podstate.Fields{
		Image:  "the operator's image",
		Secret: func(string) string { return "the spec's reference to it" },
		Claim:  func(string) string { return "dataset.jsonl.claimName or pod.volumes" },
		Pod:    "pod",
	})
	if !obstacle.NeedsAction() {
		return probing()
	}
	return notStarting(obstacle)
}

func probing() status.Condition {
	return status.Unknown(v1alpha1.ConditionReady, v1alpha1.ReasonProbing, "The probe is running.")
}

func notReady(found problem.Problem) status.Condition {
	c := status.Show(v1alpha1.ConditionReady, metav1.ConditionFalse, found)
	c.Message = found.ProbeMessage()
	return c
}

// notStarting is the condition of a probe whose pod cannot start because of a problem.
func notStarting(why problem.Problem) status.Condition {
	c := notReady(why)
	c.Reason = v1alpha1.ReasonProbeNotStarting
	return c
}
