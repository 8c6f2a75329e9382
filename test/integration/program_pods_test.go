// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// inPods makes an environment whose reward runs in pods of its own.
func inPods(env *v1alpha1.RewardEnvironment) {
	env.Spec.Reward = &environment.Reward{RewardRule: environment.RewardRule{
		Python: &environment.Python{Source: environment.Source{Code: "def reward(row, reply):\n    return 1.0\n"}}}}
	env.Spec.Execution = &v1alpha1.Execution{
		FunctionImage: environment.FunctionImage{Image: "own:1", Placement: environment.PlacementPods},
		Pods:          &v1alpha1.ExecutionPods{Replicas: 2},
	}
}

// programs lists the Deployments of a run's programs.
func (w *env) programs(run *v1alpha1.TrainingRun) []appsv1.Deployment {
	GinkgoHelper()
	var list appsv1.DeploymentList
	Expect(kube.List(context.Background(), &list, client.InNamespace(w.namespace),
		client.MatchingLabels(desired.ProgramLabels(run)))).To(Succeed())
	return list.Items
}

var _ = Describe("A program with pods of its own", func() {
	It("runs from start to end, not while the run is suspended, and with no more rights than the chart gives", func() {
		w := emptyEnv()
		as := w.withDeployments().Config()
		as.QPS = -1
		w.startManager(&managerOptions{as: as, sharedServers: true})
		w.environment(inPods)
		run := w.create()
		w.attempt(run, 1, progress(7))
		replicas := func() []int32 {
			var replicas []int32
			for _, d := range w.programs(run) {
				replicas = append(replicas, *d.Spec.Replicas)
			}
			return replicas
		}
		Eventually(replicas).Should(Equal([]int32{2}))
		key := client.ObjectKeyFromObject(&w.programs(run)[0])
		policy := func() error { return kube.Get(context.Background(), key, &networkingv1.NetworkPolicy{}) }
		Expect(policy()).To(Succeed(), "it exists before the pods")
		Eventually(func() error { return kube.Get(context.Background(), key, &corev1.Service{}) }).Should(Succeed())
		container := w.programs(run)[0].Spec.Template.Spec.Containers[0]
		for _, variable := range container.Env {
			if variable.ValueFrom == nil {
				continue
			}
			secret := &corev1.Secret{}
			Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace,
				Name: variable.ValueFrom.SecretKeyRef.Name}, secret)).To(Succeed())
			Expect(secret.Data).To(HaveKey(variable.ValueFrom.SecretKeyRef.Key))
		}
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).NotTo(HavePrefix("True"))
		})
		Expect(kube.Delete(context.Background(), &networkingv1.NetworkPolicy{ObjectMeta: w.programs(run)[0].ObjectMeta})).
			To(Succeed())
		Eventually(policy).Should(Succeed(), "a policy that somebody deletes is made again")

		w.change(run, suspend)
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(7)})
		Eventually(replicas).Should(Equal([]int32{0}))
		w.change(run, resume)
		w.attempt(run, 2, progress(7))
		Eventually(replicas).Should(Equal([]int32{2}))
		w.verdict(w.learner(run.Name, 2), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 2,
			Progress: progress(60)})
		Eventually(replicas).Should(BeEmpty())
		Eventually(policy).ShouldNot(Succeed())
	})

	It("is refused by the name of the chart's value where the manager may not run it", func() {
		w := newEnv()
		w.environment(inPods)
		run := w.create()
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False EnvironmentNotUsable ProgramPodsDisabled"))
		})
		Expect(w.attemptsWithJobs()).To(BeEmpty())
	})

	DescribeTable("is refused by the API server", func(change func(*v1alpha1.RewardEnvironment), message string) {
		env := &v1alpha1.RewardEnvironment{}
		env.Namespace, env.Name = "default", "refused"
		env.Spec.Dataset = &environment.Dataset{Arithmetic: &environment.ArithmeticData{}}
		inPods(env)
		change(env)
		Expect(kube.Create(context.Background(), env, client.DryRunAll)).To(MatchError(ContainSubstring(message)))
	},
		Entry("with requirements and no network", func(env *v1alpha1.RewardEnvironment) {
			env.Spec.Execution.Requirements = []environment.Requirement{"sympy==1.13.3"}
		}, "requirements need pods.network: Open"),
		Entry("beside workers", func(env *v1alpha1.RewardEnvironment) {
			env.Spec.Execution.Placement = environment.PlacementWorker
		}, "pods needs placement: Pods"),
	)

	It("runs an agent", func() {
		env := &v1alpha1.RewardEnvironment{}
		env.Namespace, env.Name = "default", "agent-in-pods"
		env.Spec.Dataset = &environment.Dataset{Arithmetic: &environment.ArithmeticData{}}
		inPods(env)
		env.Spec.Interaction = &environment.Interaction{Agent: &environment.Agent{Command: []string{"agent"}}}
		Expect(kube.Create(context.Background(), env, client.DryRunAll)).To(Succeed())
	})
})
