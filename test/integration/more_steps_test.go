// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

func stepsTo(steps int64) func(*v1alpha1.TrainingRun) {
	return func(run *v1alpha1.TrainingRun) { run.Spec.Algorithm.Steps = steps }
}

// progressOf returns the progress of a run with the given number of steps.
func progressOf(step, steps int64) contract.Progress {
	p := progress(step)
	p.Steps = steps
	return p
}

var _ = Describe("More steps", func() {
	DescribeTable("can only be given once a step is committed, where the learning rate does not depend on them",
		func(created, change func(*v1alpha1.TrainingRun), words ...string) {
			w := emptyEnv()
			run := w.create(created)
			now := metav1.Now()
			run.Status.StartTime, run.Status.SettingsFixed = &now, new(true)
			Expect(kube.Status().Update(context.Background(), run)).To(Succeed())
			change(run)
			err := kube.Update(context.Background(), run)
			if len(words) == 0 {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			Expect(err).To(MatchError(ContainSubstring("spec.algorithm: Forbidden: ")))
			for _, word := range words {
				Expect(err).To(MatchError(ContainSubstring(word)))
			}
		},
		Entry("more steps", stepsTo(60), stepsTo(61)),
		Entry("more epochs", epochsTo(2), epochsTo(3)),
		Entry("fewer steps", stepsTo(60), stepsTo(59), "can only be raised",
			"kubectl tinker fork arithmetic --set spec.algorithm.steps="),
		Entry("fewer epochs", epochsTo(3), epochsTo(2), "can only be raised", "--set spec.algorithm.epochs="),
		Entry("epochs in place of steps", stepsTo(60), epochsTo(3), "can only be raised"),
		Entry("steps in place of epochs", epochsTo(3), func(run *v1alpha1.TrainingRun) {
			run.Spec.Algorithm.Steps, run.Spec.Algorithm.Epochs = 600, 0
		}, "can only be raised"),
		Entry("more steps of a rate that falls", falling, stepsTo(61),
			"optimizer.schedule Linear depends on them", "kubectl tinker fork arithmetic"),
		Entry("more steps, and a schedule", stepsTo(60), func(run *v1alpha1.TrainingRun) {
			falling(run)
			run.Spec.Algorithm.Steps = 61
		}, "algorithm decides the weights", "kubectl tinker fork arithmetic --set spec.algorithm.optimizer=VALUE"),
		Entry("more steps, and a seed", stepsTo(60), func(run *v1alpha1.TrainingRun) {
			run.Spec.Algorithm.Seed, run.Spec.Algorithm.Steps = 5, 61
		}, "algorithm decides the weights", "kubectl tinker fork arithmetic --set spec.algorithm.seed=VALUE"),
		Entry("another learning rate", stepsTo(60), func(run *v1alpha1.TrainingRun) {
			run.Spec.Algorithm.Optimizer.LearningRate *= 2
		}, "algorithm decides the weights", "--set spec.algorithm.optimizer.learningRate=VALUE"),
	)

	It("continue a complete run with its next attempt, and end it anew", func() {
		w := newEnv()
		w.environment()
		run := w.create(stepsTo(6), func(run *v1alpha1.TrainingRun) {
			run.Spec.TTLSecondsAfterFinished = new(int32(3600))
		})
		w.attempt(run, 1, progressOf(3, 6))
		former := w.runFile(run, 1)
		Expect(former.Algorithm().Steps).To(Equal(int64(6)))
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 1,
			Progress: progressOf(6, 6)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionComplete)).To(Equal("True Completed"))
			g.Expect(run.Status.SettingsFixed).To(HaveValue(BeTrue()))
		})

		w.change(run, stepsTo(12))
		second := w.attempt(run, 2, progressOf(6, 12))
		file := w.runFile(run, 2)
		Expect(file.Algorithm().Steps).To(Equal(int64(12)))
		Expect(file.SpecDigest).To(Equal(former.SpecDigest))
		Expect(file.Former).To(BeEmpty())
		Expect(file.KnownCheckpoints).NotTo(BeEmpty())
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionComplete)).To(Equal("False AsExpected"))
			g.Expect(run.Status.CompletionTime).To(BeNil())
			g.Expect(status.Steps(&run.Status)).To(Equal("6/12"))
			g.Expect(run.Status.State).To(Equal(v1alpha1.StateTraining))
			g.Expect(run.Status.Restarts).To(HaveValue(BeZero()))
		})
		Eventually(func() int { return len(w.jobs(v1alpha1.RoleRollout)) }).Should(Equal(1))
		w.advance(2 * time.Hour) // The time to live of the former end is over.
		w.learners.answer(second.ip, contract.HeartbeatReply{Attempt: 2, Progress: progressOf(9, 12)})
		w.eventually(run, func(g Gomega) { g.Expect(status.Steps(&run.Status)).To(Equal("9/12")) })
		w.verdict(w.learner(run.Name, 2), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 2,
			Progress: progressOf(12, 12)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionComplete)).To(Equal("True Completed"))
			g.Expect(status.Steps(&run.Status)).To(Equal("12/12"))
			g.Expect(run.Status.CompletionTime).NotTo(BeNil())
		})
	})

	It("wait while the learner makes the former ones, and follow them", func() {
		w := newEnv()
		w.environment()
		run := w.create(stepsTo(6))
		w.attempt(run, 1, progressOf(3, 6))
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.SettingsFixed).To(HaveValue(BeTrue())) })
		w.change(run, stepsTo(12))
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.PendingChanges).To(Equal([]string{"algorithm.steps"}))
			g.Expect(status.Steps(&run.Status)).To(Equal("3/6"))
		})
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 1,
			Progress: progressOf(6, 6)})
		w.attempt(run, 2, progressOf(6, 12))
		Expect(w.runFile(run, 2).Algorithm().Steps).To(Equal(int64(12)))
		Expect(run.Status.CompletionTime).To(BeNil())
		Expect(run.Status.Restarts).To(HaveValue(BeZero()))
		Expect(w.eventReasons(run)).NotTo(ContainElement("Completed"))
	})

	It("may be given to a run that drains, and to one that has failed", func() {
		w := newEnv()
		w.environment()
		run := w.create(stepsTo(6), func(run *v1alpha1.TrainingRun) { run.Spec.FailurePolicy.MaxRestarts = new(int32(0)) })
		w.attempt(run, 1, progressOf(3, 6))
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.SettingsFixed).To(HaveValue(BeTrue())) })
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.Suspend = new(true) })
		w.change(run, stepsTo(9))
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseDrained, Attempt: 1,
			Progress: progressOf(4, 6)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("True Suspended"))
		})
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.Suspend = new(false) })
		w.attempt(run, 2, progressOf(4, 9))
		Expect(w.runFile(run, 2).Algorithm().Steps).To(Equal(int64(9)))

		w.verdict(w.learner(run.Name, 2), contract.Verdict{Cause: contract.CauseCrashed, Attempt: 2, Message: "a crash",
			Progress: progressOf(4, 9)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionFailed)).To(HavePrefix("True"))
		})
		w.change(run, stepsTo(12))
		w.advance(time.Hour)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionFailed)).To(HavePrefix("True"))
			g.Expect(run.Status.Attempts).To(HaveLen(2))
		})
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.RetryGeneration = new(int32(1)) })
		w.attempt(run, 3, progressOf(4, 12))
		Expect(w.runFile(run, 3).Algorithm().Steps).To(Equal(int64(12)))
	})

	It("restart a learner that has committed no step, as every change does, and may then be fewer", func() {
		w := newEnv()
		w.environment()
		run := w.create(stepsTo(6))
		w.attempt(run, 1, progressOf(0, 6))
		w.change(run, stepsTo(4))
		w.attempt(run, 2, progressOf(0, 4))
		Expect(w.runFile(run, 2).Algorithm().Steps).To(Equal(int64(4)))
		Expect(w.runFile(run, 2).SpecDigest).To(Equal(w.runFile(run, 1).SpecDigest))
		w.verdict(w.learner(run.Name, 2), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 2,
			Progress: progressOf(4, 4)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionComplete)).To(Equal("True Completed"))
		})
	})

	It("continue a complete run on rows by further epochs, which its learner counts", func() {
		w := newEnv()
		run := w.create(supervise)
		w.attempt(run, 1, readRows(3))
		Expect(run.Status.Epochs).To(HaveValue(Equal(int64(2))))
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 1,
			Progress: readRows(12)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionComplete)).To(Equal("True Completed"))
		})
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.Algorithm.Epochs = 3 })
		more := readRows(12)
		more.Steps = 18
		w.attempt(run, 2, more)
		file := w.runFile(run, 2)
		Expect(file.Algorithm().Epochs).To(Equal(int64(3)))
		Expect(file.Contents).NotTo(BeNil(), "the rows that were trained on are pinned")
		w.eventually(run, func(g Gomega) {
			g.Expect(status.Steps(&run.Status)).To(Equal("12/18"))
			g.Expect(condition(run, v1alpha1.ConditionComplete)).To(Equal("False AsExpected"))
		})
	})
})

func epochsTo(epochs int64) func(*v1alpha1.TrainingRun) {
	return func(run *v1alpha1.TrainingRun) { run.Spec.Algorithm.Steps, run.Spec.Algorithm.Epochs = 0, epochs }
}

func falling(run *v1alpha1.TrainingRun) {
	run.Spec.Algorithm.Optimizer.Schedule = algorithm.ScheduleLinear
}
