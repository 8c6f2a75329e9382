// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// after returns a change that names a run, and the run from whose weights it begins.
func after(name, source string, when v1alpha1.RunRefWhen) func(*v1alpha1.TrainingRun) {
	return func(run *v1alpha1.TrainingRun) {
		run.Name = name
		if source != "" {
			run.Spec.InitFrom = &v1alpha1.InitFrom{Optimizer: v1alpha1.OptimizerReset,
				RunRef: &v1alpha1.RunCheckpoint{Name: source, When: when}}
		}
	}
}

var _ = Describe("A chain of runs", func() {
	It("goes from rows to reinforcement learning by one manifest, over deaths in both", func() {
		w := newEnv()
		w.environment()
		rl := w.create(after("rl", "sft", v1alpha1.WhenComplete))
		w.eventually(rl, func(g Gomega) {
			g.Expect(coded(rl, v1alpha1.ConditionAccepted)).To(HaveSuffix("InitFromNotFound"))
		})
		sft := w.create(supervise, after("sft", "", ""))
		w.attempt(sft, 1, readRows(3))
		w.eventually(rl, func(g Gomega) {
			g.Expect(coded(rl, v1alpha1.ConditionAccepted)).To(HaveSuffix("InitFromNotComplete"))
		})
		w.verdict(w.learner("sft", 1), contract.Verdict{Cause: contract.CauseCrashed, Attempt: 1, Message: "a crash",
			Progress: readRows(3)})
		w.attempt(sft, 2, readRows(6))
		w.verdict(w.learner("sft", 2), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 2,
			Progress: readRows(12)})
		w.attempt(rl, 1, progress(1))
		last := w.runFile(rl, 1).Fixed.InitFrom.Checkpoint
		Expect(last).To(Equal(readRows(12).Checkpoints[0].State))
		w.verdict(w.learner("rl", 1), contract.Verdict{Cause: contract.CauseCrashed, Attempt: 1, Message: "a crash",
			Progress: progress(1)})
		Expect(kube.Delete(context.Background(), sft)).To(Succeed())
		w.attempt(rl, 2, progress(1))
		Expect(w.runFile(rl, 2).Fixed.InitFrom.Checkpoint).To(Equal(last))
	})

	It("says that runs wait for each other, and continues once that is repaired", func() {
		w := newEnv()
		w.environment()
		first := w.create(after("a", "c", v1alpha1.WhenAvailable))
		w.create(after("b", "a", v1alpha1.WhenComplete))
		last := w.create(after("c", "b", v1alpha1.WhenAvailable))
		w.eventually(last, func(g Gomega) {
			g.Expect(coded(last, v1alpha1.ConditionAccepted)).To(HaveSuffix("InitFromCycle"))
			g.Expect(message(last, v1alpha1.ConditionAccepted)).To(ContainSubstring("c, b, a, c"))
			g.Expect(message(last, v1alpha1.ConditionAccepted)).To(ContainSubstring("Remove initFrom of one of them"))
		})
		w.change(first, func(run *v1alpha1.TrainingRun) { run.Spec.InitFrom = nil })
		w.attempt(first, 1, progress(1))
	})

	It("names a first run that has failed or was deleted, with the repair", func() {
		w := newEnv()
		w.environment()
		first := w.create(after("first", "", ""), func(run *v1alpha1.TrainingRun) {
			run.Spec.FailurePolicy.MaxRestarts = new(int32(0))
		})
		next := w.create(after("next", "first", v1alpha1.WhenComplete))
		w.attempt(first, 1, progress(1))
		w.verdict(w.learner("first", 1), contract.Verdict{Cause: contract.CauseCrashed, Attempt: 1, Message: "a crash",
			Progress: progress(1)})
		w.eventually(next, func(g Gomega) {
			g.Expect(coded(next, v1alpha1.ConditionAccepted)).To(HaveSuffix("InitFromFailed"))
			g.Expect(message(next, v1alpha1.ConditionAccepted)).To(ContainSubstring("spec.retryGeneration"))
		})
		Expect(kube.Delete(context.Background(), first)).To(Succeed())
		w.eventually(next, func(g Gomega) {
			g.Expect(coded(next, v1alpha1.ConditionAccepted)).To(HaveSuffix("InitFromNotFound"))
			g.Expect(message(next, v1alpha1.ConditionAccepted)).To(ContainSubstring("set initFrom.checkpoint"))
		})
	})
})
