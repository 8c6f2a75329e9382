// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

var _ = Describe("Code in a ConfigMap", func() {
	const one, two = "def reward(row, reply): return 1", "def reward(row, reply): return 2"

	look := func(env *v1alpha1.RewardEnvironment, label string) {
		GinkgoHelper()
		patch := client.MergeFrom(env.DeepCopy())
		env.Labels = map[string]string{"look": label}
		Expect(kube.Patch(context.Background(), env, patch)).To(Succeed())
	}

	It("is waited for, kept by runs that have begun, and probed again when it changes", func() {
		w := newEnv()
		ctx := context.Background()
		env := w.environment(func(env *v1alpha1.RewardEnvironment) {
			env.Spec.Reward = &environment.Reward{RewardRule: environment.RewardRule{Python: &environment.Python{
				Source: environment.Source{ConfigMapKeyRef: &ref.ConfigMapKey{Name: "functions", Key: "own"}}}}}
			env.Spec.Execution = &v1alpha1.Execution{FunctionImage: environment.FunctionImage{Image: "own:1"}}
		})
		awaitProbed(env, "False Unavailable")
		Expect(env.Status.Conditions[0].Message).To(And(ContainSubstring("spec.reward.python.configMapKeyRef"),
			ContainSubstring(`ConfigMap "functions" does not exist`), ContainSubstring("Create the ConfigMap")))
		Expect(w.jobs(v1alpha1.RoleProbe)).To(BeEmpty())
		run := w.create()

		By("creating it")
		functions := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "functions"},
			Data: map[string]string{"own": one}}
		Expect(kube.Create(ctx, functions)).To(Succeed())
		look(env, "created")
		awaitProbed(env, "True Probed")
		first := env.Status.DeepCopy()
		Expect(first.Code).To(HaveExactElements(HaveField("Function", "reward.python")))
		w.learner(run.Name, 1)
		Expect(w.runFile(run, 1).Fixed.Environments[0].Definition.Reward.Python.Source).To(Equal(
			environment.Source{Code: one}))

		By("changing it")
		functions.Data["own"] = two
		Expect(kube.Update(ctx, functions)).To(Succeed())
		look(env, "changed")
		Eventually(func(g Gomega) {
			g.Expect(kube.Get(ctx, client.ObjectKeyFromObject(env), env)).To(Succeed())
			g.Expect(env.Status.Code).NotTo(Equal(first.Code))
			g.Expect(env.Status.Digest).NotTo(Equal(first.Digest))
		}).Should(Succeed())
		awaitProbed(env, "True Probed")
		Expect(w.runFile(run, 1).Fixed.Environments[0].Definition.Reward.Python.Code).To(Equal(one))
		config := w.jobs(v1alpha1.RoleProbe)[0]
		stored := &corev1.ConfigMap{}
		Expect(kube.Get(ctx, client.ObjectKeyFromObject(&config), stored)).To(Succeed())
		Expect(*stored.Immutable).To(BeTrue())
		Expect(stored.Data).To(ContainElement(ContainSubstring(two)))

		By("starting another run at the moment of a change")
		functions.Data["own"] = one
		Expect(kube.Update(ctx, functions)).To(Succeed())
		other := w.create(func(run *v1alpha1.TrainingRun) { run.Name = "other" })
		look(env, "back")
		w.learner(other.Name, 1)
		file := w.runFile(other, 1)
		Expect(file.Fixed.Environments[0].Definition.Reward.Python.Code).To(Equal(one))
		Expect(kube.Get(ctx, client.ObjectKeyFromObject(env), env)).To(Succeed())
		Expect(file.Fixed.Environments[0].Digest).To(Equal(env.Status.Digest))
		Expect(contract.FormatVersion).To(Equal(file.Version))
	})
})
