// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// apply applies the smallest run with a patch by kubectl, and returns the output of kubectl.
func apply(namespace, patch string) (string, error) {
	GinkgoHelper()
	data, err := yaml.Marshal(merged(smallestRun, patch))
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(GinkgoT().TempDir(), "run.yaml")
	Expect(os.WriteFile(file, data, 0o600)).To(Succeed())
	output, err := kubectl(namespace, "apply", "-f", file)
	GinkgoWriter.Printf("%s\n$ kubectl apply -f run.yaml\n%s", patch, output)
	return output, err
}

// These are mistakes of new users. A mistake that a spec shows by itself is refused; a mistake that depends on
// something else becomes a condition.
var _ = Describe("A mistake of a user", func() {
	DescribeTable("is refused by kubectl apply, with the field and the repair",
		func(patch string, words ...string) {
			output, err := apply("default", patch)
			Expect(err).To(HaveOccurred(), output)
			for _, w := range words {
				Expect(output).To(ContainSubstring(w))
			}
		},
		Entry("a field in lower case", "spec: {environments: [{name: arithmetic, groupsize: 8, groupSize: null, sampling: "+
			"{maxTokens: 16}}]}",
			`unknown field "spec.environments[0].groupsize"`),
		Entry("a field in snake case", "spec: {algorithm: {learning_rate: 1}}",
			`unknown field "spec.algorithm.learning_rate"`),
		Entry("a group of one", environments("groupSize: 1, sampling: {maxTokens: 16}"), "spec.environments[0].groupSize",
			"groupSize must be at least 2"),
		Entry("a learning rate as text, as YAML 1.1 reads 4e-5", "spec: {algorithm: {optimizer: {learningRate: '4e-5'}}}",
			"spec.algorithm.optimizer.learningRate", "must be of type number"),
		Entry("steps and epochs", "spec: {algorithm: {epochs: 3}}", "spec.algorithm", "give exactly one of steps and epochs"),
		Entry("neither steps nor epochs", "spec: {algorithm: {steps: null}}", "spec.algorithm",
			"give exactly one of steps and epochs"),
		Entry("a lag without clipping", "spec: {algorithm: {lag: 1}}", "spec.algorithm",
			"set loss.name to PPO, CISPO or GSPO, or lag to 0"),
		Entry("no limit of a reply", environments("groupSize: 8"), "spec.environments[0]", "sampling.maxTokens is needed"),
		Entry("another temperature", environments("groupSize: 8, sampling: {maxTokens: 16, temperature: 0.7}"),
			"spec.environments[0]", "accept that with sampling.allowBiased: true"),
		Entry("initFrom without optimizer", "spec: {initFrom: {checkpoint: 'tinker://r/weights/n'}}", "spec",
			"initFrom.optimizer is needed to train"),
		Entry("initFrom of another store", "spec: {initFrom: {checkpoint: 's3://bucket/x', optimizer: Reset}}",
			"spec.initFrom.checkpoint", "a checkpoint path is tinker://RUN/weights/NAME"),
		Entry("a name that is too long", "metadata: {name: "+strings.Repeat("a", 41)+"}",
			"metadata.name must have at most 40 characters", "shorten or rename it"),
	)

	DescribeTable("is accepted, and a condition names the cause and the repair",
		func(patch, kind, reason string, words ...string) {
			w := newEnv()
			awaitProbed(w.environment(), "True Probed")
			output, err := apply(w.namespace, patch)
			Expect(err).NotTo(HaveOccurred(), output)
			run := &v1alpha1.TrainingRun{}
			run.Namespace, run.Name = w.namespace, "arithmetic"
			w.eventually(run, func(g Gomega) {
				g.Expect(condition(run, kind)).To(Equal("False " + reason))
				g.Expect(condition(run, v1alpha1.ConditionReady)).To(Equal("False " + reason))
			})
			output, err = kubectl(w.namespace, "get", "trainingruns", "-o", "wide")
			Expect(err).NotTo(HaveOccurred(), output)
			GinkgoWriter.Printf("$ kubectl get trainingruns -o wide\n%s%s: %s\n", output, kind, message(run, kind))
			Expect(output).To(ContainSubstring(reason))
			for _, words := range words {
				Expect(message(run, kind)).To(ContainSubstring(words))
			}
		},
		Entry("a misspelt model", "spec: {model: {name: Qwen/Qwen3-8b}}", v1alpha1.ConditionAccepted,
			v1alpha1.ReasonModelUnknown, "did you mean Qwen/Qwen3-8B?", "Correct model.name"),
		Entry("a misspelt environment", "spec: {environments: [{name: arithmetik, groupSize: 8, sampling: {maxTokens: 16}}]}",
			v1alpha1.ConditionAccepted, v1alpha1.ReasonEnvironmentNotUsable,
			`lacks a RewardEnvironment that the run uses ("arithmetik")`, "Create the RewardEnvironment, or correct environmentRef."),
		Entry("initFrom of a run that does not exist", "spec: {initFrom: {runRef: {name: nope}, optimizer: Restore}}",
			v1alpha1.ConditionAccepted, v1alpha1.ReasonSourceNotUsable,
			`TrainingRun "nope" does not exist in this namespace). Correct initFrom.runRef, or set initFrom.checkpoint.`),
	)

	DescribeTable("is what the learner finds at the endpoint, and a condition names the cause and the repair",
		func(code problem.Code, evidence, reason string, words ...string) {
			w := newEnv()
			run, first := w.startedRun()
			w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1,
				Progress: contract.Progress{Phase: contract.PhaseOpening},
				Problems: []problem.Problem{{Code: code, Evidence: evidence}}, SecondsSinceProgress: 60})
			w.advance(3 * time.Minute)
			w.eventually(run, func(g Gomega) {
				g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("False " + reason))
			})
			for _, words := range words {
				Expect(message(run, v1alpha1.ConditionProgressing)).To(ContainSubstring(words))
			}
		},
		Entry("a refused key", problem.KeyRefused, "POST http://tinkersim/api/v1/create_session: status 401: Invalid API key",
			v1alpha1.ReasonKeyRefused,
			"Put a valid key into the Secret of tinker.apiKeySecretKeyRef", "status 401"),
		Entry("another host", problem.EndpointUnreachable,
			"POST http://tinkersim.nowhere/api/v1/create_session: no such host",
			v1alpha1.ReasonEndpointUnreachable,
			"Check tinker.baseURL", "no such host"),
		Entry("a private authority", problem.EndpointAuthorityUnknown,
			"POST /api/v1/client/config got no answer: tls: failed to verify certificate: x509: certificate signed by "+
				"unknown authority", v1alpha1.ReasonEndpointNotTinker,
			"is signed by an unknown authority. POST", "name the ConfigMap in tinker.caBundleConfigMapKeyRef"),
		Entry("a known model that the endpoint does not offer", problem.ModelUnknown,
			"The endpoint does not know the model Qwen/Qwen3-8B: serve it there, or choose another model.name",
			v1alpha1.ReasonModelUnknown, "does not know the model Qwen/Qwen3-8B", "continues by itself"),
		Entry("samples that the model's context cannot hold", problem.ContextTooShort,
			"environments[e].sampling.maxTokens is 4096, but the context of m has 4096 tokens at this endpoint",
			v1alpha1.ReasonUnsupportedByEndpoint, "sampling.maxTokens is 4096", "then continues by itself"),
	)
})

var _ = Describe("Defaults of the chart for pods", func() {
	It("let a probe, a learner and workers pass a quota that asks for limits", func() {
		w := emptyEnv()
		limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
		w.startManager(&managerOptions{pods: v1alpha1.PodOverrides{Resources: corev1.ResourceRequirements{Limits: limits}}})
		w.quota(corev1.ResourceLimitsCPU, "10")
		awaitProbed(w.environment(), "True Probed")
		run := w.create()
		w.attempt(run, 1, progress(1))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
		})
		var pods corev1.PodList
		Expect(kube.List(context.Background(), &pods, client.InNamespace(w.namespace),
			client.HasLabels{v1alpha1.LabelRole})).To(Succeed())
		Expect(pods.Items).NotTo(BeEmpty())
		for _, pod := range pods.Items {
			Expect(pod.Spec.Containers[0].Resources.Limits).To(HaveKeyWithValue(corev1.ResourceCPU, limits[corev1.ResourceCPU]),
				pod.Name)
		}
	})
})
