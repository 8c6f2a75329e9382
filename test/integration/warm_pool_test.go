// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// installSandboxes adds the CRDs of agent-sandbox's module to the API server.
func installSandboxes() []*apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	output, err := exec.Command(filepath.Join("..", "..", "hack", "agent-sandbox", "sandbox"), "crds").Output()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	installed, err := envtest.InstallCRDs(apiConfig, envtest.CRDInstallOptions{
		Paths: []string{strings.TrimSpace(string(output))}, ErrorIfPathMissing: true, MaxTime: 2 * time.Minute})
	Expect(err).NotTo(HaveOccurred())
	return installed
}

// claimRules are the chart's rules for warm pools.
var claimRules = []rbacv1.PolicyRule{
	{APIGroups: []string{"extensions.agents.x-k8s.io"}, Resources: []string{"sandboxclaims"},
		Verbs: []string{"get", "list", "watch", "create", "delete"}},
	{APIGroups: []string{"extensions.agents.x-k8s.io"}, Resources: []string{"sandboxwarmpools", "sandboxtemplates"},
		Verbs: []string{"get"}},
}

// inWarmPool makes an environment whose reward runs in pods of the warm pool python.
func inWarmPool(env *v1alpha1.RewardEnvironment) {
	inPods(env)
	env.Spec.Execution.Image = ""
	env.Spec.Execution.Pods.WarmPoolRef = &v1alpha1.WarmPoolRef{Name: "python"}
}

// createPool creates the pool that the repository has, and returns its template.
func (w *env) createPool() *unstructured.Unstructured {
	GinkgoHelper()
	manifests, err := os.ReadFile(filepath.Join("..", "..", "hack", "agent-sandbox", "pool.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var first *unstructured.Unstructured
	for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(document, object)).To(Succeed())
		object.SetNamespace(w.namespace)
		Expect(kube.Create(context.Background(), object)).To(Succeed())
		if first == nil {
			first = object
		}
	}
	return first
}

// claims lists the claims of a run.
func (w *env) claims(run *v1alpha1.TrainingRun) []unstructured.Unstructured {
	GinkgoHelper()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(desired.PoolsVersion.WithKind(desired.ClaimKind + "List"))
	Expect(kube.List(context.Background(), &list, client.InNamespace(w.namespace),
		client.MatchingLabels(desired.ProgramLabels(run)))).To(Succeed())
	return list.Items
}

// claimed counts the claims of a run.
func (w *env) claimed(run *v1alpha1.TrainingRun) func() int {
	return func() int { return len(w.claims(run)) }
}

// answerClaims sets the condition Ready of each claim of a run, as the controller of agent-sandbox does.
func (w *env) answerClaims(run *v1alpha1.TrainingRun, ready, reason, message string) {
	GinkgoHelper()
	for _, claim := range w.claims(run) {
		claim.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready,
			"reason": reason, "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}}
		Expect(kube.Status().Update(context.Background(), &claim)).To(Succeed())
	}
}

var _ = Describe("A program with pods of a warm pool", Ordered, func() {
	var installed []*apiextensionsv1.CustomResourceDefinition
	poolReady := func(w *env, env *v1alpha1.RewardEnvironment, want string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			w.clock.advance(time.Second)
			g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(env), env)).To(Succeed())
			g.Expect(describe(env.Status.Conditions, v1alpha1.ConditionReady) + " " +
				string(status.CodeOf(env.Status.Codes, v1alpha1.ConditionReady))).To(Equal(want))
		}).Should(Succeed())
	}

	It("waits for agent-sandbox, for its pool and for the runner in it, and says so", func() {
		w := emptyEnv()
		as := w.withDeployments(claimRules...).Config()
		as.QPS = -1
		w.startManager(&managerOptions{as: as, sharedServers: true, warmPools: true})
		env := w.environment(inWarmPool)
		poolReady(w, env, "False WarmPoolNotUsable WarmPoolsMissing")
		installed = installSandboxes()
		poolReady(w, env, "False WarmPoolNotUsable WarmPoolNotFound")
		template := w.createPool()
		poolReady(w, env, "True Probed ")
		pods := template.Object["spec"].(map[string]any)["podTemplate"].(map[string]any)["spec"].(map[string]any)
		pods["volumes"] = pods["volumes"].([]any)[:2]
		delete(pods["containers"].([]any)[0].(map[string]any), "volumeMounts")
		Expect(kube.Update(context.Background(), template)).To(Succeed())
		poolReady(w, env, "False WarmPoolNotUsable WarmPoolUnfit")
		run := w.create()
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False EnvironmentNotUsable EnvironmentNotReady"))
			g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring("program-token"))
		})
	})
	AfterAll(func() {
		if installed != nil {
			removeKueue(installed)
		}
	})

	It("has claims from start to end, not while the run is suspended, and no more rights than the chart gives", func() {
		w := emptyEnv()
		as := w.withDeployments(claimRules...).Config()
		as.QPS = -1
		w.startManager(&managerOptions{as: as, sharedServers: true, warmPools: true})
		w.createPool()
		env := w.environment(inWarmPool)
		poolReady(w, env, "True Probed ")
		run := w.create()
		w.attempt(run, 1, progress(7))
		Eventually(w.claimed(run)).Should(Equal(2))
		claim := w.claims(run)[0]
		name, found, err := unstructured.NestedString(claim.Object, "spec", "additionalPodMetadata", "labels",
			v1alpha1.LabelPoolProgram)
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(BeTrue())
		key := client.ObjectKey{Namespace: w.namespace, Name: name}
		policy := func() error { return kube.Get(context.Background(), key, &networkingv1.NetworkPolicy{}) }
		service := func() error { return kube.Get(context.Background(), key, &corev1.Service{}) }
		Expect(policy()).To(Succeed(), "it exists before the claims")
		Expect(service()).To(Succeed(), "it exists before the claims")
		Expect(w.programs(run)).To(BeEmpty())
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionPodsReady)).To(Equal("False WorkersMissing ClaimsNotReady"))
		})
		w.answerClaims(run, "False", "DependenciesNotReady", "Pod exists with phase: Pending")
		w.eventually(run, func(g Gomega) {
			g.Expect(message(run, v1alpha1.ConditionPodsReady)).To(ContainSubstring("Pod exists with phase: Pending"))
		})
		w.answerClaims(run, "True", "DependenciesReady", "Pod is Ready")
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(HavePrefix("True"))
		})

		w.change(run, suspend)
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(7)})
		Eventually(w.claimed(run)).Should(BeZero())
		w.change(run, resume)
		w.attempt(run, 2, progress(7))
		Eventually(w.claimed(run)).Should(Equal(2))
		w.verdict(w.learner(run.Name, 2), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 2,
			Progress: progress(60)})
		Eventually(w.claimed(run)).Should(BeZero())
		Eventually(policy).ShouldNot(Succeed())
		Eventually(service).ShouldNot(Succeed())
		w.stop()
	})

	DescribeTable("is refused by the API server", func(change func(*v1alpha1.RewardEnvironment), message string) {
		env := &v1alpha1.RewardEnvironment{}
		env.Namespace, env.Name = "default", "refused"
		inWarmPool(env)
		change(env)
		Expect(kube.Create(context.Background(), env, client.DryRunAll)).To(MatchError(ContainSubstring(message)))
	},
		Entry("with an image", func(env *v1alpha1.RewardEnvironment) { env.Spec.Execution.Image = "own:1" },
			"those of its SandboxTemplate"),
		Entry("with resources", func(env *v1alpha1.RewardEnvironment) {
			env.Spec.Execution.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		}, "those of its SandboxTemplate"),
		Entry("with variables", func(env *v1alpha1.RewardEnvironment) {
			env.Spec.Execution.Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
		}, "those of its SandboxTemplate"),
		Entry("with a runtime class", func(env *v1alpha1.RewardEnvironment) {
			env.Spec.Execution.Pods.RuntimeClassName = "gvisor"
		}, "those of its SandboxTemplate"),
		Entry("with a node selector", func(env *v1alpha1.RewardEnvironment) {
			env.Spec.Execution.Pods.NodeSelector = map[string]string{"a": "b"}
		}, "those of its SandboxTemplate"),
	)
})
