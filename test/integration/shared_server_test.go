// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// onSharedServer makes an environment whose server runs once for each run.
func onSharedServer(env *v1alpha1.RewardEnvironment) {
	env.Spec.Dataset, env.Spec.Reward = nil, nil
	env.Spec.ORS = &v1alpha1.ORSEnvironment{Server: &v1alpha1.ORSServer{
		ServerImage: environment.ServerImage{Image: "world:dev", Shared: true}}}
}

// servers lists the Deployments of a run's servers.
func (w *env) servers(run *v1alpha1.TrainingRun) []appsv1.Deployment {
	GinkgoHelper()
	var list appsv1.DeploymentList
	Expect(kube.List(context.Background(), &list, client.InNamespace(w.namespace),
		client.MatchingLabels(desired.SharedLabels(run)))).To(Succeed())
	return list.Items
}

// replicas returns a function that lists the replicas that the Deployments of a run's servers ask for.
func (w *env) replicas(run *v1alpha1.TrainingRun) func() []int32 {
	return func() []int32 {
		var replicas []int32
		for _, d := range w.servers(run) {
			replicas = append(replicas, *d.Spec.Replicas)
		}
		return replicas
	}
}

// withDeployments returns a user with the generated role, the chart's rules for shared servers, and more rules.
func (w *env) withDeployments(more ...rbacv1.PolicyRule) *envtest.AuthenticatedUser {
	GinkgoHelper()
	ctx, name := context.Background(), "manager-"+w.namespace
	user, err := controlPlane.AddUser(envtest.User{Name: name}, nil)
	Expect(err).NotTo(HaveOccurred())
	rules := append(generatedRole().Rules, rbacv1.PolicyRule{
		APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "create",
			"patch", "delete"},
	}, rbacv1.PolicyRule{
		APIGroups: []string{"networking.k8s.io"}, Resources: []string{"networkpolicies"},
		Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
	})
	rules = append(rules, more...)
	Expect(kube.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "manager"},
		Rules: rules})).To(Succeed())
	Expect(kube.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "manager"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})).To(Succeed())
	return user
}

var _ = Describe("A shared environment server", func() {
	It("runs once from start to end, not while the run is suspended, and with no more rights than the chart gives",
		func() {
			w := emptyEnv()
			as := w.withDeployments().Config()
			as.QPS = -1
			w.startManager(&managerOptions{as: as, sharedServers: true})
			w.environment(onSharedServer)
			run := w.create()
			w.attempt(run, 1, progress(7))
			Eventually(w.replicas(run)).Should(Equal([]int32{1}))
			service := &corev1.Service{}
			Eventually(func() error {
				return kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: desired.ServiceName(run) +
					"-server-8080"}, service)
			}).Should(Succeed())
			Expect(service.OwnerReferences).To(HaveLen(1))
			Expect(service.OwnerReferences[0].Kind).To(Equal("Deployment"), "so that it is deleted with the server")
			Eventually(func() int { return len(w.jobs(v1alpha1.RoleRollout)) }).Should(Equal(1))
			worker := w.jobs(v1alpha1.RoleRollout)[0].Spec.Template.Spec
			Expect(worker.InitContainers).To(BeEmpty())
			Expect(worker.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: contract.SharedServersVariable,
				Value: desired.ServiceName(run)}))

			deleted := w.servers(run)[0]
			Expect(kube.Delete(context.Background(), &deleted)).To(Succeed())
			Eventually(func() bool {
				servers := w.servers(run)
				return len(servers) == 1 && servers[0].UID != deleted.UID
			}).Should(BeTrue(), "a server that somebody deletes is run again")

			w.change(run, suspend)
			w.eventually(run, func(g Gomega) {
				g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("Unknown Draining"))
			})
			Consistently(w.replicas(run), "1s", "100ms").Should(Equal([]int32{1}), "episodes need it until the state is saved")
			w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(7)})
			Eventually(w.replicas(run)).Should(Equal([]int32{0}))

			w.change(run, resume)
			w.attempt(run, 2, progress(7))
			Eventually(w.replicas(run)).Should(Equal([]int32{1}))
			w.verdict(w.learner(run.Name, 2), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 2,
				Progress: progress(60)})
			Eventually(w.replicas(run)).Should(BeEmpty())
		})

	It("follows the environment of the run and podOverrides[target=Workers], and workers await it", func() {
		w := emptyEnv()
		as := w.withDeployments().Config()
		as.QPS = -1
		w.startManager(&managerOptions{as: as, sharedServers: true})
		env := w.environment(onSharedServer)
		run := w.create()
		w.attempt(run, 1, contract.Progress{Phase: contract.PhaseOpening})
		Eventually(func() int { return len(w.jobs(v1alpha1.RoleRollout)) }).Should(Equal(1))
		Eventually(w.replicas(run)).Should(Equal([]int32{1}))
		// The specs have no controller of Deployments.
		observe := func(status appsv1.DeploymentStatus) {
			GinkgoHelper()
			server := w.servers(run)[0]
			server.Status = status
			server.Status.ObservedGeneration = server.Generation
			Expect(kube.Status().Update(context.Background(), &server)).To(Succeed())
		}
		observe(appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1})
		serves := func(image string) func(Gomega) {
			return func(g Gomega) {
				servers := w.servers(run)
				g.Expect(servers).To(HaveLen(1))
				g.Expect(servers[0].Spec.Template.Spec.Containers[0].Image).To(Equal(image))
			}
		}

		Eventually(func() error {
			if err := kube.Get(context.Background(), client.ObjectKeyFromObject(env), env); err != nil {
				return err
			}
			env.Spec.ORS.Server.Image = "world:v2"
			return kube.Update(context.Background(), env)
		}).Should(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(env), env)).To(Succeed())
			g.Expect(env.Status.ProbedGeneration).To(HaveValue(Equal(env.Generation)))
		}).Should(Succeed())
		former := w.jobs(v1alpha1.RoleRollout)[0].UID
		w.change(run, halveLearningRate)
		w.attempt(run, 2, progress(1))
		Expect(w.runFile(run, 2).Fixed.Environments[0].Definition.ORS.Server.Image).To(Equal("world:v2"))
		Eventually(serves("world:v2")).Should(Succeed(),
			"the server is the one that the digest of the environment stands for")
		workers := func() bool {
			jobs := w.jobs(v1alpha1.RoleRollout)
			return len(jobs) == 1 && jobs[0].UID != former && jobs[0].DeletionTimestamp == nil
		}
		Consistently(workers, "1s", "100ms").Should(BeFalse(), "the former server may still take sessions")
		observe(appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1})
		Eventually(workers).Should(BeTrue())

		w.change(run, func(run *v1alpha1.TrainingRun) {
			run.Spec.Override(v1alpha1.TargetWorkers).ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
		})
		Eventually(func() []corev1.LocalObjectReference {
			return w.servers(run)[0].Spec.Template.Spec.ImagePullSecrets
		}).Should(HaveLen(1))
		w.verdict(w.learner(run.Name, 2), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 2,
			Progress: progress(60)})
		Eventually(w.replicas(run)).Should(BeEmpty())
	})

	It("is ended by a manager that may run none", func() {
		w := emptyEnv()
		as := w.withDeployments().Config()
		as.QPS = -1
		w.startManager(&managerOptions{as: as, sharedServers: true})
		w.environment(onSharedServer)
		run := w.create()
		w.attempt(run, 1, progress(7))
		Eventually(w.replicas(run)).Should(Equal([]int32{1}))
		w.startManager(nil)
		Eventually(w.replicas(run)).Should(BeEmpty())
	})

	It("is refused by the name of the chart's value where the manager may not run it", func() {
		w := newEnv()
		w.environment(onSharedServer)
		run := w.create()
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False EnvironmentNotUsable SharedServersDisabled"))
		})
		Expect(message(run, v1alpha1.ConditionAccepted)).To(
			ContainSubstring("Set the chart's value environmentServers.shared to true"))
		Expect(w.attemptsWithJobs()).To(BeEmpty())
	})
})
