// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// heartbeatAt is the reply of the first attempt's learner after a step.
func heartbeatAt(step int64) contract.HeartbeatReply {
	return contract.HeartbeatReply{Attempt: 1, Progress: progress(step)}
}

// mostWrites limits the writes of a status in a minute, which duringMinute counts: one every 5 s, and the writes of the
// beginning and of transitions.
const mostWrites = 60/5 + 4

// duringMinute lets a minute pass in steps of a second, however long the steps take, calls each at every step, and
// returns the writes of this minute.
func (w *env) duringMinute(run *v1alpha1.TrainingRun, each func(second int)) []string {
	GinkgoHelper()
	w.clock.stop()
	// Earlier changes are written first: advance waits for these writes.
	w.advance(10 * time.Second)
	w.awaitReconciles()
	before := w.writes.count()
	for second := range 60 {
		if each != nil {
			each(second)
		}
		w.clock.advance(time.Second)
		w.annotate(run, second)
		// The manager asks learners more often than once a second, however busy the machine is.
		if condition(run, v1alpha1.ConditionFailed) == "False AsExpected" {
			w.learners.awaitReply()
		}
		time.Sleep(20 * time.Millisecond)
	}
	w.awaitReconciles()
	return w.writes.since(before)
}

// awaitWorkers waits until the status has all workers ready, which they become by themselves.
func (w *env) awaitWorkers(run *v1alpha1.TrainingRun) {
	GinkgoHelper()
	w.eventually(run, func(g Gomega) {
		g.Expect(run.Status.ReadyWorkers).To(HaveValue(Equal(*run.Spec.Rollouts.Workers)))
	})
}

// annotate changes an annotation, which the manager ignores, so that the run is reconciled.
func (w *env) annotate(run *v1alpha1.TrainingRun, second int) {
	GinkgoHelper()
	Expect(w.touch(run)).To(Succeed(), "second %d", second)
}

func (w *env) touch(run *v1alpha1.TrainingRun) error {
	return kube.Patch(context.Background(), run.DeepCopy(), touched())
}

// statusWrites are the writes to statuses; all others are counted apart, since a waiting run makes none.
func statusWrites(writes []string) (statuses, others []string) {
	for _, write := range writes {
		if strings.HasSuffix(write, "/status") {
			statuses = append(statuses, write)
			continue
		}
		// An event of an earlier change may be written late.
		if !strings.Contains(write, "/events") {
			others = append(others, write)
		}
	}
	return statuses, others
}

var _ = Describe("API writes in a minute", func() {
	none := func(w *env, run *v1alpha1.TrainingRun) {
		GinkgoHelper()
		statuses, others := statusWrites(w.duringMinute(run, nil))
		Expect(statuses).To(BeEmpty())
		Expect(others).To(BeEmpty())
	}

	It("do not occur while an environment is missing", func() {
		w := newEnv()
		run := w.create()
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False EnvironmentNotUsable EnvironmentNotFound"))
		})
		none(w, run)
	})

	It("are few while an environment fails its probe", func() {
		w := newEnv()
		w.kubelet.set(func(k *kubelet) { k.probe.OK, k.probe.Reason, k.probe.Message = false, "EnvironmentFault", "down" })
		w.environment()
		run := w.create()
		w.eventually(run, func(g Gomega) {
			g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring("down"))
		})
		statuses, others := statusWrites(w.duringMinute(run, nil))
		// Probes begin at least 45 s after one another, so a minute has at most two probes.
		const mostProbes = 2
		Expect(len(statuses)).To(BeNumerically("<=", 2*mostProbes), "%v", statuses)
		Expect(len(others)).To(BeNumerically("<=", 4*mostProbes), "%v", others)
	})

	It("do not occur while the Secret is missing", func() {
		w := newEnv()
		w.environment()
		run := w.create()
		pod := w.learner(run.Name, 1)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "learner", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `secret "tinker" not found`},
		}}}
		Expect(kube.Status().Update(context.Background(), pod)).To(Succeed())
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionReady)).To(Equal("False ObjectNotFound SecretNotFound"))
		})
		w.advance(3 * time.Minute)
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionStalled)).To(Equal("True ObjectNotFound SecretNotFound"))
		})
		w.awaitWorkers(run)
		none(w, run)
	})

	It("do not occur while the source of initFrom is missing", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) {
			run.Spec.InitFrom = &v1alpha1.InitFrom{RunRef: &v1alpha1.RunCheckpoint{Name: "other"},
				Optimizer: v1alpha1.OptimizerReset}
		})
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False SourceNotUsable InitFromNotFound"))
		})
		none(w, run)
	})

	It("do not occur while the endpoint cannot be reached", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.awaitWorkers(run)
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(3),
			Problems: []problem.Problem{{Code: "EndpointUnreachable"}}})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("False EndpointUnreachable"))
		})
		none(w, run)
	})

	It("do not occur while the learner does not answer", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.awaitWorkers(run)
		w.learners.silence(first.ip)
		w.advance(time.Minute)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("Unknown Unreachable"))
		})
		none(w, run)
	})

	It("do not occur while suspended", func() {
		w := newEnv()
		w.environment()
		run := w.create(suspend)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("True Suspended"))
		})
		none(w, run)
	})

	It("do not occur after the end, refused key or not", func() {
		w := newEnv()
		run, _ := w.startedRun()
		w.awaitWorkers(run)
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseConfigRejected, Reason: "ModelUnknown",
			Message: "m", Attempt: 1})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionFailed)).To(Equal("True ModelUnknown"))
		})
		none(w, run)
	})

	It("are bounded while the endpoint answers 429 now and then", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.awaitWorkers(run)
		statuses, others := statusWrites(w.duringMinute(run, func(second int) {
			var found []problem.Problem
			if second%2 == 0 {
				found = []problem.Problem{{Code: problem.Throttled}}
			}
			w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(1), Problems: found})
		}))
		Expect(len(statuses)).To(BeNumerically("<=", mostWrites))
		Expect(others).To(BeEmpty())
	})

	It("are bounded while a run makes a step each second", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.awaitWorkers(run)
		statuses, others := statusWrites(w.duringMinute(run,
			func(second int) { w.learners.answer(first.ip, heartbeatAt(int64(second))) }))
		Expect(len(statuses)).To(And(BeNumerically("<=", mostWrites), BeNumerically(">=", 6)), "and it looks alive")
		Expect(others).To(BeEmpty())
	})

	It("are two while a run makes a step each second that has trained for a while", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.awaitWorkers(run)
		w.advance(2 * time.Minute)
		statuses, others := statusWrites(w.duringMinute(run,
			func(second int) { w.learners.answer(first.ip, heartbeatAt(int64(100+second/4))) }))
		Expect(len(statuses)).To(And(BeNumerically("<=", 3), BeNumerically(">=", 2)),
			"steps, and the checkpoint that is kept")
		Expect(others).To(BeEmpty())
	})

	It("are bounded while attempts crash at once", func() {
		w := newEnv()
		w.environment()
		// Only the back-off slows these attempts down: none of their ends counts as a failure.
		run := w.create()
		w.learner(run.Name, 1)
		crashed := map[string]bool{}
		crash := func() {
			GinkgoHelper()
			for _, job := range w.jobs(v1alpha1.RoleLearner) {
				attempt := job.Labels[v1alpha1.LabelAttempt]
				if !crashed[attempt] {
					crashed[attempt] = true
					Expect(client.IgnoreNotFound(kube.Delete(context.Background(), &job, client.PropagationPolicy("Background")))).To(
						Succeed())
				}
			}
		}
		statuses, others := statusWrites(w.duringMinute(run, func(int) { crash() }))
		Expect(len(statuses)).To(BeNumerically("<=", mostWrites))
		Expect(len(others)).To(BeNumerically("<=", 40), "%v", others)
		w.eventually(run, func(g Gomega) {
			crash() // An attempt may have started at the end of the minute.
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("False BackingOff"))
		})
	})
})
