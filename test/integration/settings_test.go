// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

func halveLearningRate(run *v1alpha1.TrainingRun) { run.Spec.Algorithm.Optimizer.LearningRate /= 2 }

var _ = Describe("What decides the weights", func() {
	It("may be changed until a first step is committed, and the next attempt begins with it", func() {
		w := newEnv()
		run, _ := w.startedRun()
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.SettingsFixed).To(HaveValue(BeFalse())) })
		former := w.runFile(run, 1)
		workers := w.jobs(v1alpha1.RoleRollout)[0].UID

		w.change(run, func(run *v1alpha1.TrainingRun) {
			halveLearningRate(run)
			run.Spec.Tinker.BaseURL = "http://tinkersim.other"
		})
		second := w.attempt(run, 2, progress(0))
		file := w.runFile(run, 2)
		Expect(file.SpecDigest).NotTo(Equal(former.SpecDigest))
		Expect(file.Fixed.BaseURL).To(Equal("http://tinkersim.other"))
		Expect(file.Fixed.Algorithm.Optimizer.LearningRate).To(Equal(1.5e-4))
		Expect(file.Former).To(HaveLen(1))
		Expect(file.Former[0].SpecDigest).To(Equal(former.SpecDigest))
		Expect(file.Former[0].Changed).To(Equal([]string{"algorithm", "tinker.baseURL"}))
		Expect(run.Status.Attempts[1].Reason).To(BeEquivalentTo(problem.SettingsChanged))
		Expect(run.Status.Restarts).To(HaveValue(BeZero()))
		Eventually(func(g Gomega) {
			jobs := w.jobs(v1alpha1.RoleRollout)
			g.Expect(jobs).To(HaveLen(1))
			g.Expect(jobs[0].UID).NotTo(Equal(workers), "workers of the former settings do not work for this learner")
			g.Expect(jobs[0].Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationSpecDigest, file.SpecDigest))
		}).Should(Succeed())

		w.learners.answer(second.ip, contract.HeartbeatReply{Attempt: 2, Progress: progress(1)})
		w.advance(11 * time.Second)
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.SettingsFixed).To(HaveValue(BeTrue())) })
		halveLearningRate(run)
		Expect(kube.Update(context.Background(), run)).To(MatchError(ContainSubstring("spec.algorithm: Forbidden: ")))
	})

	It("waits for a repair where a step was committed before a change took effect, and continues once it is made", func() {
		w := newEnv()
		run, _ := w.startedRun()
		former := w.runFile(run, 1)
		pod := w.learner(run.Name, 1)
		w.kubelet.set(func(k *kubelet) { k.holdDeleted = true })
		DeferCleanup(func() { w.kubelet.set(func(k *kubelet) { k.holdDeleted = false }) })
		w.change(run, halveLearningRate)
		Eventually(w.attemptsWithJobs).Should(BeEmpty())
		// The learner commits a step at the moment at which it is stopped.
		w.verdict(pod, contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(1)})
		w.attempt(run, 2, contract.Progress{Phase: contract.PhaseOpening})
		Expect(run.Status.SettingsFixed).To(HaveValue(BeFalse()), "the spec is not what made the step")
		const words = "Attempt 1 committed step 1 before a change of spec.algorithm took effect: restore it"
		w.verdict(w.learner(run.Name, 2), contract.Verdict{Cause: contract.CauseConfigRejected,
			Reason: problem.SettingsDiffer, Message: words, Attempt: 2})
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False SpecInvalid SettingsDiffer"))
			g.Expect(coded(run, v1alpha1.ConditionStalled)).To(Equal("True SpecInvalid SettingsDiffer"))
			g.Expect(message(run, v1alpha1.ConditionReady)).To(ContainSubstring(words))
		})
		w.advance(time.Hour)
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.Attempts).To(HaveLen(2)) })

		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.Algorithm.Optimizer.LearningRate *= 2 })
		w.attempt(run, 3, progress(2))
		Expect(w.runFile(run, 3).SpecDigest).To(Equal(former.SpecDigest))
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.SettingsFixed).To(HaveValue(BeTrue()))
			g.Expect(condition(run, v1alpha1.ConditionAccepted)).To(Equal("True Accepted"))
		})
	})

	It("takes a failed run that has made no step back with other settings", func() {
		w := newEnv()
		run, _ := w.startedRun()
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseConfigRejected,
			Reason: v1alpha1.ReasonModelUnknown, Message: "no such model", Attempt: 1})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionFailed)).To(Equal("True ModelUnknown"))
		})
		w.change(run, func(run *v1alpha1.TrainingRun) {
			run.Spec.Model.LoraRank = ptr.To[int32](4)
			run.Spec.RetryGeneration = ptr.To[int32](1)
		})
		w.attempt(run, 2, progress(0))
		Expect(w.runFile(run, 2).Fixed.Model.LoraRank).To(Equal(4))
		Expect(condition(run, v1alpha1.ConditionFailed)).To(Equal("False AsExpected"))
	})
})
