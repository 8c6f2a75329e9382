// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// startSecondManager starts a manager beside the one that runs, as when both are leaders for a moment.
func (w *env) startSecondManager(o *managerOptions) {
	GinkgoHelper()
	first := w.stop
	w.stop = func() {}
	w.startManager(o)
	second := w.stop
	w.stop = func() { first(); second() }
}

// trainingRun returns a run that trains with all its workers, at a step.
func (w *env) trainingRun(step int64) (*v1alpha1.TrainingRun, learnerPod) {
	GinkgoHelper()
	run, first := w.startedRun()
	w.learners.answer(first.ip, heartbeatAt(step))
	w.eventually(run, func(g Gomega) {
		g.Expect(*run.Status.Step).To(Equal(step))
		g.Expect(condition(run, v1alpha1.ConditionReady)).To(Equal("True Progressing"))
		g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
		g.Expect(message(run, v1alpha1.ConditionProgressing)).To(ContainSubstring("continues from status.latestCheckpoint"))
	})
	return run, first
}

// reaches reports a step as the learner, and waits until the status has the step and this status is recorded.
func (w *env) reaches(run *v1alpha1.TrainingRun, ip string, step int64) {
	GinkgoHelper()
	w.learners.answer(ip, heartbeatAt(step))
	w.eventually(run, func(g Gomega) { g.Expect(*run.Status.Step).To(Equal(step)) })
	w.statuses.at(run)
}

var _ = Describe("The status of a run that trains", func() {
	It("has no transition over ten failovers", func() {
		w := newEnv()
		run, first := w.trainingRun(1)
		events := len(w.eventReasons(run))
		from := w.statuses.at(run)
		for n := range int64(10) {
			w.stop()
			if n%2 == 1 {
				w.advance(10 * time.Minute) // It was away for long.
			}
			w.startManager(nil)
			w.reaches(run, first.ip, n+2)
		}
		versions := w.statuses.since(from)
		Expect(len(versions)).To(BeNumerically(">=", 11), "every step is written")
		Expect(transitions(versions)).To(BeEmpty())
		Expect(w.eventReasons(run)).To(HaveLen(events), "no event follows from a failover")
		Expect(w.attemptsWithJobs()).To(Equal([]string{"1"}))
	})

	It("leaves the pods in which agents play alone over failovers", func() {
		w := newEnv()
		w.environment(func(env *v1alpha1.RewardEnvironment) {
			env.Spec.Interaction = &environment.Interaction{Agent: &environment.Agent{Command: []string{"python3", "/agent.py"}}}
			env.Spec.Execution = &v1alpha1.Execution{FunctionImage: environment.FunctionImage{Image: "registry.example/agent:1"}}
		})
		run := w.create()
		first := w.attempt(run, 1, progress(0))
		w.reaches(run, first.ip, 1)
		job := w.rolloutJob(nil)
		images := func(pod corev1.PodSpec) (list []string) {
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				list = append(list, c.Image)
			}
			return list
		}
		Expect(images(job.Spec.Template.Spec)).To(ContainElement("registry.example/agent:1"))
		pods := func() (list []types.UID) {
			all := &corev1.PodList{}
			Expect(kube.List(context.Background(), all, client.InNamespace(w.namespace),
				client.MatchingLabels(job.Spec.Template.Labels))).To(Succeed())
			for _, pod := range all.Items {
				Expect(pod.DeletionTimestamp).To(BeNil())
				list = append(list, pod.UID)
			}
			return list
		}
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
		})
		playing, from := pods(), w.statuses.at(run)
		for n := range int64(4) {
			w.stop()
			w.advance(10 * time.Minute)
			w.startManager(nil)
			w.reaches(run, first.ip, n+2)
		}
		Expect(pods()).To(ConsistOf(playing), "an episode that is played goes on")
		Expect(w.rolloutJob(nil).UID).To(Equal(job.UID))
		Expect(transitions(w.statuses.since(from))).To(BeEmpty())
		Expect(w.attemptsWithJobs()).To(Equal([]string{"1"}))
	})

	It("has no transition while a learner cannot be asked for a moment after a failover", func() {
		w := newEnv()
		run, first := w.trainingRun(1)
		from := w.statuses.at(run)
		w.learners.silence(first.ip)
		w.startManager(nil)
		Eventually(func() int { return len(w.learners.received(first.ip)) }).Should(BeNumerically(">", 0))
		w.awaitReconciles()
		w.reaches(run, first.ip, 2)
		Expect(transitions(w.statuses.since(from))).To(BeEmpty())
	})

	It("has no transition under two managers at once, and one of a crash", func() {
		w := newEnv()
		run, first := w.trainingRun(1)
		from := w.statuses.at(run)
		w.startSecondManager(nil)
		for step := int64(2); step < 12; step++ {
			w.reaches(run, first.ip, step)
		}
		Expect(transitions(w.statuses.since(from))).To(BeEmpty())
		w.endLearner(w.learner(run.Name, 1), 1, "panic")
		w.attempt(run, 2, progress(11))
		Consistently(w.attemptsWithJobs, "500ms", "50ms").Should(ConsistOf("1", "2"),
			"two managers make one learner, and keep the log of the crash")
		Expect(run.Status.Attempts).To(HaveLen(2))
		Expect(*run.Status.FailuresSinceCheckpoint).To(BeEquivalentTo(1), "the crash counts once")
	})

	It("that drains is not cut short by failovers", func() {
		w := newEnv()
		run, first := w.trainingRun(3)
		w.change(run, suspend)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("Unknown Draining"))
		})
		from := w.statuses.at(run)
		for range 3 {
			w.stop()
			w.advance(time.Minute)
			w.startManager(nil)
			before := len(w.learners.received(first.ip))
			Eventually(func() int { return len(w.learners.received(first.ip)) }).Should(BeNumerically(">", before+1))
		}
		Expect(transitions(w.statuses.since(from))).To(BeEmpty())
		Expect(w.attemptsWithJobs()).To(Equal([]string{"1"}))
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(4)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("True Suspended"))
		})
	})
})
