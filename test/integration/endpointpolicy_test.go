// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// These are three ways in which the author of a run could send the key of a Secret in the namespace elsewhere.
const (
	sendsKeyToItsAddress = "spec: {tinker: {baseURL: 'http://10.88.0.254:19999'}}"
	sendsKeyByTracking   = "spec: {tracking: {wandb: {project: x, baseURL: 'http://10.88.0.254:19999', " +
		"apiKeySecretKeyRef: {name: tinker, key: TINKER_API_KEY}}}}"
	givesKeyToServer = "spec: {dataset: null, reward: null, ors: {server: {image: 'tinker-operator:dev', " +
		"command: [/tinkersim], env: [{name: STOLEN, valueFrom: {secretKeyRef: {name: tinker, key: TINKER_API_KEY}}}]}}}"
)

var _ = Describe("The policy of the chart for endpoints", Ordered, ContinueOnFailure, func() {
	var w *env
	BeforeAll(func() {
		w = emptyEnv()
		file := filepath.Join(GinkgoT().TempDir(), "policy.yaml")
		Expect(os.WriteFile(file, command("go", "tool", "-modfile=hack/tools/go.mod", "helm", "template", "platform",
			"charts/tinker-operator", "--show-only", "templates/endpointpolicy.yaml", "--set",
			"endpoints.policy.enabled=true,endpoints.policy.namespaceSelector.matchLabels.keys=platform"), 0o600)).To(Succeed())
		output, err := kubectl("default", "apply", "-f", file)
		Expect(err).NotTo(HaveOccurred(), output)
		DeferCleanup(func() { _, _ = kubectl("default", "delete", "-f", file) })
		namespace := &corev1.Namespace{}
		Expect(kube.Get(context.Background(), types.NamespacedName{Name: w.namespace}, namespace)).To(Succeed())
		namespace.Labels["keys"] = "platform"
		Expect(kube.Update(context.Background(), namespace)).To(Succeed())
		Eventually(func() error { // The API server reads policies after a while.
			if _, err := dryRun(w.namespace, smallestEnvironment, givesKeyToServer); err == nil {
				return nil
			}
			_, err = dryRun(w.namespace, smallestRun)
			return err
		}).WithPolling(time.Second).ShouldNot(Succeed())
	})

	It("has no expression that the API server's type check doubts", func() {
		Eventually(func(g Gomega) {
			for _, name := range []string{"platform-default-endpoints-runs", "platform-default-endpoints-environments"} {
				policy := &admissionv1.ValidatingAdmissionPolicy{}
				g.Expect(kube.Get(context.Background(), types.NamespacedName{Name: name}, policy)).To(Succeed())
				g.Expect(policy.Status.TypeChecking).NotTo(BeNil(), name)
				g.Expect(policy.Status.TypeChecking.ExpressionWarnings).To(BeEmpty(), name)
			}
		}).Should(Succeed())
	})

	DescribeTable("refuses what took a key", func(object, patch, words string) {
		output, err := dryRun(w.namespace, object, patch)
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring(words))
		_, err = dryRun("default", object, patch)
		Expect(err).NotTo(HaveOccurred(), "other namespaces are left alone")
	},
		Entry("by the address of the run", smallestRun, sendsKeyToItsAddress, "give tinker.endpointRef in place of"),
		Entry("by a tracking service", smallestRun, sendsKeyByTracking, "give tinker.endpointRef in place of"),
		Entry("by the server of an environment", smallestEnvironment, givesKeyToServer, "environments of this namespace get "+
			"no Secrets"),
		Entry("by the probe of an environment", smallestEnvironment, "spec: {pod: {env: [{name: STOLEN, valueFrom: "+
			"{secretKeyRef: {name: tinker, key: K}}}]}}", "probes of this namespace get no Secrets"),
	)

	It("leaves runs alone that had a key of their own before", func() {
		namespace := &corev1.Namespace{}
		setKeys := func(to string) {
			Expect(kube.Get(context.Background(), types.NamespacedName{Name: w.namespace}, namespace)).To(Succeed())
			namespace.Labels["keys"] = to
			Expect(kube.Update(context.Background(), namespace)).To(Succeed())
		}
		setKeys("own")
		Eventually(func() error { _, err := dryRun(w.namespace, smallestRun); return err }).Should(Succeed())
		run := w.create()
		setKeys("platform")
		Eventually(func() error { _, err := dryRun(w.namespace, smallestRun, "metadata: {name: b}"); return err },
			time.Minute).ShouldNot(Succeed())
		w.change(run, suspend)
		Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
		run.Spec.Tinker.BaseURL = "http://10.88.0.254:19999"
		Expect(kube.Update(context.Background(), run)).To(MatchError(ContainSubstring("give tinker.endpointRef")))
		Expect(kube.Delete(context.Background(), run)).To(Succeed())
		Eventually(func() error { return kube.Get(context.Background(), client.ObjectKeyFromObject(run), run) }).
			ShouldNot(Succeed())
	})

	It("permits runs with an endpoint, and environments without Secrets", func() {
		output, err := dryRun(w.namespace, smallestRun, atEndpoint(""))
		Expect(err).NotTo(HaveOccurred(), output)
		output, err = dryRun(w.namespace, smallestEnvironment)
		Expect(err).NotTo(HaveOccurred(), output)
	})
})

var _ = Describe("The policy of the chart for labels", Ordered, ContinueOnFailure, func() {
	const prefixed = "platform.example.com/cost-center"
	var w *env
	label := func(key, value string) string { return "metadata: {labels: {" + key + ": " + value + "}}" }
	setNamespace := func(change func(labels map[string]string)) {
		GinkgoHelper()
		namespace := &corev1.Namespace{}
		Expect(kube.Get(context.Background(), types.NamespacedName{Name: w.namespace}, namespace)).To(Succeed())
		change(namespace.Labels)
		Expect(kube.Update(context.Background(), namespace)).To(Succeed())
	}
	BeforeAll(func() {
		w = emptyEnv()
		file := filepath.Join(GinkgoT().TempDir(), "labels.yaml")
		Expect(os.WriteFile(file, command("go", "tool", "-modfile=hack/tools/go.mod", "helm", "template", "platform",
			"charts/tinker-operator", "--show-only", "templates/labelpolicy.yaml", "--set",
			`endpoints.labels.ofNamespace={team,platform.example.com/cost-center}`, "--set",
			"endpoints.labels.namespaceSelector.matchLabels.budgets=yes"), 0o600)).To(Succeed())
		output, err := kubectl("default", "apply", "-f", file)
		Expect(err).NotTo(HaveOccurred(), output)
		DeferCleanup(func() { _, _ = kubectl("default", "delete", "-f", file) })
		setNamespace(func(labels map[string]string) {
			labels["budgets"], labels["team"], labels[prefixed] = "yes", "a", "17"
		})
		Eventually(func() error { // The API server reads policies after a while.
			_, err := dryRun(w.namespace, smallestRun, atEndpoint(""))
			return err
		}).WithPolling(time.Second).ShouldNot(Succeed())
	})

	It("has no expression that the API server's type check doubts", func() {
		Eventually(func(g Gomega) {
			policy := &admissionv1.ValidatingAdmissionPolicy{}
			g.Expect(kube.Get(context.Background(), types.NamespacedName{Name: "platform-default-endpoints-labels"},
				policy)).To(Succeed())
			g.Expect(policy.Status.TypeChecking).NotTo(BeNil())
			g.Expect(policy.Status.TypeChecking.ExpressionWarnings).To(BeEmpty())
		}).Should(Succeed())
	})

	DescribeTable("refuses a run whose labels are not those of its namespace", func(words string, patches ...string) {
		output, err := dryRun(w.namespace, smallestRun, append(patches, atEndpoint(""))...)
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring(words))
		output, err = dryRun("default", smallestRun, append(patches, atEndpoint(""))...)
		Expect(err).NotTo(HaveOccurred(), "other namespaces are left alone: %s", output)
		output, err = dryRun(w.namespace, smallestRun, patches...)
		Expect(err).NotTo(HaveOccurred(), "runs with a key of their own are left alone: %s", output)
	},
		Entry("another value", "the label team of a run is the label of its namespace: give metadata.labels.team: a",
			label("team", "b"), label(prefixed, `"17"`)),
		Entry("an empty value", "give metadata.labels.team: a", label("team", `""`), label(prefixed, `"17"`)),
		Entry("no label", "the label platform.example.com/cost-center of a run is the label of its namespace: give "+
			"metadata.labels.platform.example.com/cost-center: 17", label("team", "a")),
	)

	It("permits the labels of the namespace, and no change of them", func() {
		w.environment()
		run := w.create(w.named, func(run *v1alpha1.TrainingRun) {
			run.Name, run.Labels = "labelled", map[string]string{"team": "a", prefixed: "17", "mine": "x"}
		})
		update := func(change func(labels map[string]string)) error {
			Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
			change(run.Labels)
			return kube.Update(context.Background(), run)
		}
		Expect(update(func(labels map[string]string) { labels["mine"] = "y" })).To(Succeed())
		Expect(update(func(labels map[string]string) { labels["team"] = "b" })).To(
			MatchError(ContainSubstring("give metadata.labels.team: a")))
		Expect(update(func(labels map[string]string) { delete(labels, "team") })).To(
			MatchError(ContainSubstring("give metadata.labels.team: a")))

		By("changing the label of the namespace")
		setNamespace(func(labels map[string]string) { delete(labels, "team") })
		Eventually(func() error { // The API server reads namespaces after a while, too.
			return update(func(labels map[string]string) { labels["team"] = "b" })
		}).WithPolling(time.Second).Should(MatchError(ContainSubstring("remove the label team")))
		w.change(run, suspend) // A run can still be suspended, and deleted.
		Eventually(func() error {
			return update(func(labels map[string]string) { delete(labels, "team") })
		}).WithPolling(time.Second).Should(Succeed())
		output, err := dryRun(w.namespace, smallestRun, label("team", "a"), label(prefixed, `"17"`), atEndpoint(""))
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("its namespace lacks it: remove the label team"))
		output, err = dryRun(w.namespace, smallestRun, label(prefixed, `"17"`), atEndpoint(""))
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(kube.Delete(context.Background(), run)).To(Succeed())
	})

	It("looks at a run that names an endpoint later", func() {
		setNamespace(func(labels map[string]string) { labels["team"] = "a" })
		run := w.create(func(run *v1alpha1.TrainingRun) { run.Name, run.Labels = "own", map[string]string{"team": "b"} })
		Eventually(func() error {
			Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
			w.named(run)
			return kube.Update(context.Background(), run, client.DryRunAll)
		}).WithPolling(time.Second).Should(MatchError(ContainSubstring("give metadata.labels.team: a")))
	})
})

// creators returns a file with the chart's policies for creators, rendered for an API server with the given versions.
func creators(versions ...string) string {
	GinkgoHelper()
	arguments := []string{"tool", "-modfile=hack/tools/go.mod", "helm", "template", "platform", "charts/tinker-operator",
		"--show-only", "templates/creators.yaml", "--set", "endpoints.creators=true"}
	for _, version := range versions {
		arguments = append(arguments, "--api-versions", version)
	}
	file := filepath.Join(GinkgoT().TempDir(), "creators.yaml")
	Expect(os.WriteFile(file, command("go", arguments...), 0o600)).To(Succeed())
	return file
}

var _ = Describe("The policies of the chart for creators", Ordered, ContinueOnFailure, func() {
	const forged = "metadata: {annotations: {rl.tinker-operator.dev/creator: bob}}"
	own := strings.ReplaceAll(forged, "bob", "alice")
	asAlice := func(verb string, arguments ...string) (string, error) {
		return kubectl("default", append([]string{verb, "--as=alice", "--as-group=system:masters"}, arguments...)...)
	}
	create := func(patches ...string) (string, error) {
		object := smallestRun
		for _, patch := range patches {
			data, err := yaml.Marshal(merged(object, patch))
			Expect(err).NotTo(HaveOccurred())
			object = string(data)
		}
		file := filepath.Join(GinkgoT().TempDir(), "run.yaml")
		Expect(os.WriteFile(file, []byte(object), 0o600)).To(Succeed())
		return asAlice("create", "--dry-run=server", "-o=jsonpath={.metadata.annotations}", "-f", file)
	}

	It("refuses an annotation that names somebody else, where the API server cannot write it", func() {
		file := creators()
		output, err := kubectl("default", "apply", "-f", file)
		Expect(err).NotTo(HaveOccurred(), output)
		DeferCleanup(func() { _, _ = kubectl("default", "delete", "-f", file) })
		Eventually(func(g Gomega) { // The API server reads policies after a while.
			output, err := create(forged)
			g.Expect(err).To(HaveOccurred())
			g.Expect(output).To(ContainSubstring("names another user than the one who creates the run"))
		}).WithPolling(time.Second).Should(Succeed())
		output, err = create()
		Expect(err).NotTo(HaveOccurred(), output)
		output, err = create(own)
		Expect(err).NotTo(HaveOccurred(), output)
		Eventually(func(g Gomega) {
			policy := &admissionv1.ValidatingAdmissionPolicy{}
			g.Expect(kube.Get(context.Background(), types.NamespacedName{Name: "platform-default-creators"},
				policy)).To(Succeed())
			g.Expect(policy.Status.TypeChecking).NotTo(BeNil())
			g.Expect(policy.Status.TypeChecking.ExpressionWarnings).To(BeEmpty())
		}).Should(Succeed())
	})

	It("has the API server write the annotation, and keep it", func() {
		w := emptyEnv()
		file := creators("admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")
		output, err := kubectl("default", "apply", "-f", file)
		Expect(err).NotTo(HaveOccurred(), output)
		DeferCleanup(func() { _, _ = kubectl("default", "delete", "-f", file) })
		for _, patches := range [][]string{nil, {forged}} {
			Eventually(func(g Gomega) {
				output, err := create(patches...)
				g.Expect(err).NotTo(HaveOccurred(), output)
				g.Expect(output).To(ContainSubstring(`"rl.tinker-operator.dev/creator":"alice"`))
			}).WithPolling(time.Second).Should(Succeed())
		}
		run := w.create()
		Expect(run.Annotations).To(HaveKey(v1alpha1.AnnotationCreator))
		creator := run.Annotations[v1alpha1.AnnotationCreator]
		for _, to := range []string{`"bob"`, "null"} {
			_, _ = kubectl(w.namespace, "patch", "trainingrun", run.Name, "--type=merge", "-p",
				`{"metadata":{"annotations":{"rl.tinker-operator.dev/creator":`+to+`}}}`)
			Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
			Expect(run.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationCreator, creator))
		}
	})
})
