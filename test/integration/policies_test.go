// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const policies = "../../config/samples/policies"

// permitted is added to the smallest run if the policies of config/samples/policies are in force.
const permitted = `
metadata: {labels: {kueue.x-k8s.io/queue-name: blue}}
spec:
  tinker: {baseURL: http://tinkersim.tinker-operator-system}
  budget: {usd: 20}
  artifacts: {claimName: runs}
`

const permittedEnvironment = `
metadata: {labels: {kueue.x-k8s.io/queue-name: blue}}
`

// dryRun validates an object with patches at the API server, and returns the output of kubectl.
func dryRun(namespace, object string, patches ...string) (string, error) {
	GinkgoHelper()
	for _, patch := range patches {
		data, err := yaml.Marshal(merged(object, patch))
		Expect(err).NotTo(HaveOccurred())
		object = string(data)
	}
	file := filepath.Join(GinkgoT().TempDir(), "object.yaml")
	Expect(os.WriteFile(file, []byte(object), 0o600)).To(Succeed())
	output, err := kubectl(namespace, "create", "--dry-run=server", "-f", file)
	GinkgoWriter.Printf("%s\n%s", object, output)
	return output, err
}

var _ = Describe("The policies of config/samples/policies", Ordered, ContinueOnFailure, func() {
	var w *env
	BeforeAll(func() {
		w = emptyEnv()
		for _, name := range []string{"runs.yaml", "environments.yaml", "queue.yaml"} {
			output, err := kubectl("default", "apply", "-f", filepath.Join(policies, name))
			Expect(err).NotTo(HaveOccurred(), output)
			DeferCleanup(func() { _, _ = kubectl("default", "delete", "-f", filepath.Join(policies, name)) })
		}
		namespace := &corev1.Namespace{}
		Expect(kube.Get(context.Background(), types.NamespacedName{Name: w.namespace}, namespace)).To(Succeed())
		namespace.Labels["rl.tinker-operator.dev/policy"] = "team"
		Expect(kube.Update(context.Background(), namespace)).To(Succeed())
		Eventually(func() error { // The API server reads policies after a while.
			_, err := dryRun(w.namespace, smallestEnvironment)
			if err == nil {
				return nil
			}
			_, err = dryRun(w.namespace, smallestRun)
			return err
		}).WithPolling(time.Second).ShouldNot(Succeed())
	})

	It("have no expression that the API server's type check doubts", func() {
		Eventually(func(g Gomega) {
			var list admissionv1.ValidatingAdmissionPolicyList
			g.Expect(kube.List(context.Background(), &list)).To(Succeed())
			g.Expect(list.Items).To(HaveLen(3))
			for _, policy := range list.Items {
				g.Expect(policy.Status.TypeChecking).NotTo(BeNil(), policy.Name)
				g.Expect(policy.Status.TypeChecking.ExpressionWarnings).To(BeEmpty(), policy.Name)
			}
		}).WithPolling(time.Second).Should(Succeed())
	})

	It("permit the runs and environments of a team", func() {
		_, err := dryRun(w.namespace, smallestRun, permitted)
		Expect(err).NotTo(HaveOccurred())
		_, err = dryRun(w.namespace, smallestEnvironment, permittedEnvironment)
		Expect(err).NotTo(HaveOccurred())
	})

	It("permit a run that names a TinkerEndpoint, whose budgets are the platform's", func() {
		_, err := dryRun(w.namespace, smallestRun, permitted, atEndpoint(""), "spec: {budget: null}")
		Expect(err).NotTo(HaveOccurred())
		output, err := dryRun(w.namespace, smallestRun, permitted, atEndpoint(""), "spec: {model: {name: Qwen/Qwen3-32B}}")
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("use one of tinkersim/byte-136k, Qwen/Qwen3-8B"))
	})

	It("bind namespaces with the label alone", func() {
		_, err := dryRun("default", smallestRun)
		Expect(err).NotTo(HaveOccurred())
	})

	It("let a run from before be changed outside of its spec, and be deleted", func() {
		run := w.newRun()
		namespace := &corev1.Namespace{}
		Expect(kube.Get(context.Background(), types.NamespacedName{Name: w.namespace}, namespace)).To(Succeed())
		delete(namespace.Labels, "rl.tinker-operator.dev/policy")
		Expect(kube.Update(context.Background(), namespace)).To(Succeed())
		Eventually(func() error { return kube.Create(context.Background(), run) }).WithPolling(time.Second).Should(Succeed())
		namespace.Labels["rl.tinker-operator.dev/policy"] = "team"
		Expect(kube.Update(context.Background(), namespace)).To(Succeed())
		Eventually(func() error {
			_, err := dryRun(w.namespace, smallestRun, "metadata: {name: another}")
			return err
		}).WithPolling(time.Second).ShouldNot(Succeed())
		before := run.DeepCopy()
		run.Finalizers = append(run.Finalizers, "example.org/kept")
		Expect(kube.Patch(context.Background(), run, client.MergeFrom(before))).To(Succeed())
		before = run.DeepCopy()
		run.Spec.Rollouts.Workers = new(int32(100))
		Expect(kube.Patch(context.Background(), run, client.MergeFrom(before))).NotTo(Succeed())
		run.Finalizers = nil
		Expect(kube.Patch(context.Background(), before, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		Expect(kube.Delete(context.Background(), run)).To(Succeed())
	})

	DescribeTable("refuse runs, with the field and the repair",
		func(patch string, words string) {
			output, err := dryRun(w.namespace, smallestRun, permitted, patch)
			Expect(err).To(HaveOccurred())
			Expect(output).To(ContainSubstring(words))
		},
		Entry("a model", "spec: {model: {name: Qwen/Qwen3-32B}}", "use one of tinkersim/byte-136k, Qwen/Qwen3-8B"),
		Entry("an endpoint", "spec: {tinker: {baseURL: http://attacker.example}}",
			"spec.tinker.baseURL is not an endpoint"),
		Entry("a proxy", "spec: {tinker: {proxyURL: http://attacker.example}}", "spec.tinker has a proxy"),
		Entry("an authority", "spec: {tinker: {caBundleConfigMapKeyRef: {name: a, key: b}}}", "spec.tinker has a proxy"),
		Entry("another key", "spec: {tinker: {apiKeySecretKeyRef: {name: mine}}}", "use tinker"),
		Entry("no budget", "spec: {budget: null}", "give at most 50"),
		Entry("a budget without dollars", "spec: {budget: {usd: null, tokens: 5}}", "give at most 50"),
		Entry("a large budget", "spec: {budget: {usd: 1000}}", "give at most 50"),
		Entry("prices",
			"spec: {budget: {prices: [{promptUSDPerMillion: 0, sampledUSDPerMillion: 0, trainedUSDPerMillion: 0}]}}",
			"spec.budget.prices"),
		Entry("workers", "spec: {rollouts: {workers: 9}}", "spec.rollouts.workers is above 8"),
		Entry("an image", "spec: {podOverrides: [{target: Workers, image: attacker.example/x}]}",
			"an image of another registry"),
		Entry("variables of a Secret", "spec: {podOverrides: [{target: Workers, envFrom: [{secretRef: {name: tinker}}]}]}",
			"initContainers, envFrom"),
		Entry("a service account", "spec: {podOverrides: [{target: All, serviceAccountName: admin}]}",
			"initContainers, envFrom"),
		Entry("a variable of a Secret", "spec: {podOverrides: [{target: All, env: [{name: A, "+
			"valueFrom: {secretKeyRef: {name: tinker, key: b}}}]}]}", "variables from other objects"),
		Entry("a proxy of pods",
			"spec: {podOverrides: [{target: All, env: [{name: https_proxy, value: http://attacker}]}]}",
			"variables from other objects"),
		Entry("a Secret's volume",
			"spec: {podOverrides: [{target: Workers, volumes: [{name: a, secret: {secretName: tinker}}]}]}",
			"mounts a Secret"),
		Entry("a priority", "spec: {podOverrides: [{target: All, priorityClassName: system-node-critical}]}",
			"a priority of the system"),
		Entry("the key for a tracker", "spec: {tracking: {wandb: {project: a, baseURL: http://attacker.example, "+
			"apiKeySecretKeyRef: {name: tinker, key: TINKER_API_KEY}}}}", "spec.tracking sends the Tinker key"),
		Entry("the key for a store", "spec: {artifacts: {claimName: null, url: 's3://a/b', secretRef: {name: tinker}}}",
			"spec.artifacts.secretRef"),
		Entry("the key for the hub", "spec: {model: {tokenizer: {repository: a/b, "+
			"tokenSecretKeyRef: {name: tinker, key: b}}}}", "spec.model.tokenizer sends"),
		Entry("no queue", "metadata: {labels: null}", "the label kueue.x-k8s.io/queue-name is missing"),
	)

	const code = "reward: {exactMatch: null, python: {code: 'def reward(row, reply): return 1.0'}}"
	const key = "{secretKeyRef: {name: tinker, key: TINKER_API_KEY}}"
	DescribeTable("refuse environments, with the field and the repair",
		func(spec string, words string) {
			output, err := dryRun(w.namespace, smallestEnvironment, permittedEnvironment, "spec: {"+spec+"}")
			Expect(err).To(HaveOccurred())
			Expect(output).To(ContainSubstring(words))
		},
		Entry("an image of a server", "dataset: null, reward: null, ors: {server: {image: attacker.example/x}}",
			"an image of another registry"),
		Entry("an image of code", code+", execution: {image: attacker.example/x}", "an image of another registry"),
		Entry("the key for a server", "dataset: null, reward: null, ors: {server: {image: registry.example/x, "+
			"env: [{name: A, valueFrom: "+key+"}]}}", "has the Tinker key"),
		Entry("the key for code", code+", execution: {env: [{name: A, valueFrom: "+key+"}]}", "has the Tinker key"),
		Entry("the key for sessions", "dataset: null, reward: null, ors: {url: 'http://a.example', "+
			"secrets: [{name: a, secretKeyRef: {name: tinker, key: b}}]}", "spec.ors.secrets sends"),
		Entry("the key for a hosted server", "dataset: null, reward: null, ors: {name: a/b, "+
			"apiKeySecretKeyRef: {name: tinker, key: b}}", "spec.ors.apiKeySecretKeyRef sends"),
		Entry("the key for a judge", "reward: {exactMatch: null, rubric: {judge: {openAI: {model: a, "+
			"baseURL: 'http://attacker.example', apiKeySecretKeyRef: {name: tinker, key: b}}}}}", "a judge would receive"),
		Entry("the key for the hub", "dataset: {arithmetic: null, hub: {repository: a/b, tokenSecretKeyRef: "+
			"{name: tinker, key: b}}, prompt: $(q), splits: [{name: train, source: a.jsonl}]}", "spec.dataset.hub sends"),
		Entry("init containers", "pod: {initContainers: [{name: a, image: registry.example/x}]}",
			"spec.pod has initContainers"),
		Entry("a variable of a Secret", "pod: {env: [{name: A, valueFrom: "+key+"}]}", "spec.pod has variables"),
		Entry("a Secret's volume", "pod: {volumes: [{name: a, secret: {secretName: tinker}}]}", "spec.pod mounts"),
	)
})
