// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// awaitProbed waits for the environment's condition Ready.
func awaitProbed(env *v1alpha1.RewardEnvironment, want string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(env), env)).To(Succeed())
		g.Expect(describe(env.Status.Conditions, v1alpha1.ConditionReady)).To(Equal(want))
	}).Should(Succeed())
}

var _ = Describe("A RewardEnvironment", func() {
	It("is probed once for a definition, and anew when it changes", func() {
		w := newEnv()
		env := w.environment()
		awaitProbed(env, "True Probed")
		digest := env.Status.Digest
		Consistently(func() int { return len(w.jobs(v1alpha1.RoleProbe)) }, "300ms", "30ms").Should(Equal(1))
		w.kubelet.set(func(k *kubelet) { k.holdProbes = true })
		env.Spec.Dataset.Arithmetic.MaxOperand = 9
		Expect(kube.Update(context.Background(), env)).To(Succeed())
		awaitProbed(env, "Unknown Probing")
		w.kubelet.set(func(k *kubelet) { k.holdProbes = false })
		awaitProbed(env, "True Probed")
		Expect(env.Status.Digest).NotTo(Equal(digest))
		Expect(*env.Status.ObservedGeneration).To(Equal(env.Generation))
		Eventually(func() int { return len(w.jobs(v1alpha1.RoleProbe)) }).Should(Equal(1), "the old probe goes")
	})

	It("that is down is probed again after a while, and says so meanwhile", func() {
		w := newEnv()
		w.kubelet.set(func(k *kubelet) {
			k.probe = contract.ProbeResult{Reason: "EnvironmentFault", Message: "the server answers 503"}
		})
		env := w.environment()
		awaitProbed(env, "False Unavailable")
		Expect(env.Status.Conditions[0].Message).To(Equal("The environment failed (the server answers 503). Repair " +
			"the server or the program that the message names. The environment is probed again by itself."))
		Consistently(func() int { return len(w.jobs(v1alpha1.RoleProbe)) }, "300ms", "30ms").Should(Equal(1))
		w.kubelet.set(func(k *kubelet) { k.probe = goodProbe() })
		w.advance(2 * time.Minute)
		awaitProbed(env, "True Probed")
	})

	It("that cannot work is not probed again", func() {
		w := newEnv()
		w.kubelet.set(func(k *kubelet) {
			k.probe = contract.ProbeResult{Reason: "Invalid", Message: "the verifier grades nonsense as right"}
		})
		env := w.environment()
		awaitProbed(env, "False SpecInvalid")
		w.advance(time.Hour)
		Consistently(func() int { return len(w.jobs(v1alpha1.RoleProbe)) }, "300ms", "30ms").Should(Equal(1))
	})

	It("may change under a run, which keeps what it has pinned", func() {
		w := newEnv()
		run, _ := w.startedRun()
		pinned := run.Status.Environments[0].Digest
		env := &v1alpha1.RewardEnvironment{}
		Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "arithmetic"},
			env)).To(Succeed())
		env.Spec.Dataset.Arithmetic.MaxOperand = 9
		Expect(kube.Update(context.Background(), env)).To(Succeed())
		w.endLearner(w.learner(run.Name, 1), 1, "")
		w.learner(run.Name, 2)
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.Attempts).To(HaveLen(2)) })
		Expect(run.Status.Environments[0].Digest).To(Equal(pinned))
		config := &corev1.ConfigMap{}
		Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: desired.RunFileName(run, 2)},
			config)).To(Succeed())
		file, err := contract.DecodeRunFile([]byte(config.Data[contract.RunFileName]))
		Expect(err).NotTo(HaveOccurred())
		Expect(file.Fixed.Environments[0].Definition.Dataset.Arithmetic.MaxOperand).To(BeEquivalentTo(99))
	})

	It("that changed stops a run only when its files are missing too", func() {
		w := newEnv()
		run, _ := w.startedRun()
		env := &v1alpha1.RewardEnvironment{}
		Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "arithmetic"},
			env)).To(Succeed())
		env.Spec.Dataset.Arithmetic.MaxOperand = 9
		Expect(kube.Update(context.Background(), env)).To(Succeed())
		awaitProbed(env, "True Probed")
		Expect(kube.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace(w.namespace),
			client.MatchingLabels{v1alpha1.LabelRun: run.Name})).To(Succeed())
		w.endLearner(w.learner(run.Name, 1), 1, "")
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False EnvironmentNotUsable EnvironmentChanged"))
		})
		env.Spec.Dataset.Arithmetic.MaxOperand = 99
		Eventually(func() error {
			Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(env), env)).To(Succeed())
			env.Spec.Dataset.Arithmetic.MaxOperand = 99
			return kube.Update(context.Background(), env)
		}).Should(Succeed())
		w.learner(run.Name, 2)
	})

	It("without the split that a run asks for is reported", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) {
			run.Spec.Environments[0].Splits = []v1alpha1.Split{{Name: "validation"}}
		})
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False EnvironmentNotUsable SplitNotFound"))
		})
		Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring("it has test, train"))
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.Environments[0].Splits = nil })
		w.learner(run.Name, 1)
	})
})

var _ = Describe("initFrom.runRef", func() {
	fromOther := func(step *int64) func(*v1alpha1.TrainingRun) {
		return func(run *v1alpha1.TrainingRun) {
			run.Name = "fork"
			run.Spec.InitFrom = &v1alpha1.InitFrom{RunRef: &v1alpha1.RunCheckpoint{Name: "arithmetic", Step: step},
				Optimizer: v1alpha1.OptimizerRestore}
		}
	}

	It("waits for the checkpoint, then starts from it", func() {
		w := newEnv()
		source, first := w.startedRun()
		run := w.create(fromOther(new(int64(20))))
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False SourceNotUsable InitFromNotReady"))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
		})
		w.learners.answer(first.ip, heartbeatAt(20))
		w.eventually(source, func(g Gomega) { g.Expect(status.Steps(&source.Status)).To(Equal("20/60")) })
		w.learner(run.Name, 1)
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.StartTime).NotTo(BeNil()) })
		config := &corev1.ConfigMap{}
		Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: desired.RunFileName(run, 1)},
			config)).To(Succeed())
		file, err := contract.DecodeRunFile([]byte(config.Data[contract.RunFileName]))
		Expect(err).NotTo(HaveOccurred())
		Expect(*file.Fixed.InitFrom).To(Equal(contract.InitFrom{Checkpoint: "tinker://model/weights/s000020",
			RestoreOptimizer: true}))
	})

	It("waits for the completion of the run where it says so", func() {
		w := newEnv()
		source, first := w.startedRun()
		run := w.create(fromOther(nil), func(run *v1alpha1.TrainingRun) {
			run.Spec.InitFrom.RunRef.When = v1alpha1.WhenComplete
		})
		w.learners.answer(first.ip, heartbeatAt(20))
		w.eventually(source, func(g Gomega) { g.Expect(status.Steps(&source.Status)).To(Equal("20/60")) })
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False SourceNotUsable InitFromNotComplete"))
			g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring(
				`The run of initFrom is not complete yet, and initFrom.runRef.when is Complete ("arithmetic").`))
		})
		w.awaitReconciles()
		Expect(run.Status.StartTime).To(BeNil(), "the other run has a checkpoint, and is not complete")
		w.verdict(w.learner(source.Name, 1), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 1,
			Progress: progress(60)})
		w.learner(run.Name, 1)
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.StartTime).NotTo(BeNil()) })
	})

	It("of a run that does not exist is reported", func() {
		w := newEnv()
		w.environment()
		run := w.create(fromOther(nil))
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False SourceNotUsable InitFromNotFound"))
			g.Expect(coded(run, v1alpha1.ConditionReady)).To(Equal("False SourceNotUsable InitFromNotFound"))
		})
		Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring("Correct initFrom.runRef"))
	})
})
