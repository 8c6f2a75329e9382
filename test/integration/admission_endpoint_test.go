// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
)

const smallestEndpoint = `
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: TinkerEndpoint
metadata: {name: prod}
spec:
  baseURL: https://tinker.example.com
  apiKeySecretKeyRef: {name: tinker, key: TINKER_API_KEY}
  allowed: {namespaceSelector: {}}
`

// atEndpoint returns a patch that makes the smallest run name an endpoint; more has further fields of tinker.
func atEndpoint(more string) string {
	return "spec: {tinker: {endpointRef: {name: prod}, apiKeySecretKeyRef: null, baseURL: null" + more + "}}"
}

var _ = Describe("A run with an endpoint", func() {
	DescribeTable("is refused, with the field and the repair", refuses(smallestRun),
		Entry("neither key nor endpoint", "spec: {tinker: {apiKeySecretKeyRef: null}}", "spec.tinker",
			"give exactly one of tinker.endpointRef"),
		Entry("key and endpoint", "spec: {tinker: {baseURL: null, endpointRef: {name: prod}}}", "spec.tinker",
			"give exactly one of tinker.endpointRef"),
		Entry("an address", atEndpoint(", baseURL: 'https://evil.example.com'"), "spec.tinker", "tinker.baseURL is what the "+
			"TinkerEndpoint of tinker.endpointRef decides"),
		Entry("a proxy", atEndpoint(", proxyURL: 'http://evil:3128'"), "tinker.proxyURL is what"),
		Entry("an authority", atEndpoint(", caBundleConfigMapKeyRef: {name: a, key: b}"),
			"tinker.caBundleConfigMapKeyRef is what"),
		Entry("a client certificate", atEndpoint(", clientCertificateSecretRef: {name: a}"),
			"tinker.clientCertificateSecretRef is what"),
		Entry("a project", atEndpoint(", projectID: p"), "tinker.projectID is what"),
		Entry("a weight of 0", atEndpoint(", weight: 0"), "spec.tinker.weight", "greater than or equal to 1"),
		Entry("a weight without endpoint", "spec: {tinker: {weight: 2}}", "spec.tinker", "or give tinker.endpointRef"),
		Entry("prices", "spec: {tinker: {endpointRef: {name: prod}, apiKeySecretKeyRef: null, baseURL: null}, "+
			"budget: {usd: 5, prices: [{model: m, promptUSDPerMillion: 0, sampledUSDPerMillion: 0}]}}",
			"budget.prices cannot be set with tinker.endpointRef"),
	)

	It("is accepted, and its endpoint is fixed once a step is committed", func() {
		w := emptyEnv()
		run := w.newRun()
		run.Spec.Tinker = v1alpha1.Tinker{EndpointRef: &ref.Endpoint{Name: "prod"}, Weight: new(int32(3))}
		Expect(kube.Create(context.Background(), run)).To(Succeed())
		now := metav1.Now()
		run.Status.StartTime, run.Status.SettingsFixed = &now, new(false)
		Expect(kube.Status().Update(context.Background(), run)).To(Succeed())
		run.Spec.Tinker.EndpointRef.Name = "dev"
		Expect(kube.Update(context.Background(), run)).To(Succeed())
		run.Status.SettingsFixed = new(true)
		Expect(kube.Status().Update(context.Background(), run)).To(Succeed())
		run.Spec.Tinker.Weight = new(int32(5))
		Expect(kube.Update(context.Background(), run)).To(Succeed())
		run.Spec.Tinker.EndpointRef.Name = "prod"
		Expect(kube.Update(context.Background(), run)).To(MatchError(ContainSubstring(
			"tinker.endpointRef is fixed once a step is committed")))
	})
})

var _ = Describe("A TinkerEndpoint", func() {
	DescribeTable("is refused, with the field and the repair", refuses(smallestEndpoint),
		Entry("no address", "spec: {baseURL: null}", "spec.baseURL", "Required"),
		Entry("an address without scheme", "spec: {baseURL: tinker.example.com}", "must begin with http:// or https://"),
		Entry("no key", "spec: {apiKeySecretKeyRef: null}", "spec.apiKeySecretKeyRef", "Required"),
		Entry("nobody allowed", "spec: {allowed: null}", "spec.allowed", "Required"),
		Entry("no selector", "spec: {allowed: {namespaceSelector: null}}", "spec.allowed.namespaceSelector", "Required"),
		Entry("a password in the proxy", "spec: {proxyURL: 'http://a:b@proxy'}", "without a user name, a password"),
		Entry("a long name", "metadata: {name: a2345678901234567890123456789012345678901}", "at most 40 characters"),
		Entry("limits without a limit", "spec: {limits: {}}", "limits has no limit"),
		Entry("a rate of 0", "spec: {limits: {requestsPerSecond: 0}}", "greater than 0"),
		Entry("a budget of no dollars", "spec: {budgets: [{name: a, usd: 0, period: Month}]}", "spec.budgets[0].usd",
			"greater than 0"),
		Entry("a budget without a limit", "spec: {budgets: [{name: a, period: Month}]}", "give tokens or usd"),
		Entry("an unknown period", "spec: {budgets: [{name: a, usd: 1, period: Week}]}", "spec.budgets[0].period",
			"supported values"),
		Entry("a budget twice", "spec: {budgets: [{name: a, usd: 1, period: Month}, {name: a, usd: 2, period: Month}]}",
			"Duplicate"),
		Entry("a path that is no checkpoint", "spec: {readableCheckpoints: [{namespaces: [a], checkpoints: ['tinker://r']}]}",
			"spec.readableCheckpoints[0].checkpoints[0]"),
		Entry("a weight of 0", "spec: {weights: [{name: a, namespaceSelector: {}, weight: 0}]}",
			"spec.weights[0].weight"),
	)
})
