// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"log/slog"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/internal/crds"
)

// crd reads the CRD of TrainingRuns.
func crd() *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"})
	Expect(kube.Get(context.Background(), client.ObjectKey{Name: "trainingruns.rl.tinker-operator.dev"},
		object)).To(Succeed())
	return object
}

// changeSpecFields changes the fields of spec that the API server knows.
func changeSpecFields(change func(properties map[string]any)) {
	GinkgoHelper()
	object := crd()
	version := object.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	root := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	change(root["properties"].(map[string]any)["spec"].(map[string]any)["properties"].(map[string]any))
	Expect(kube.Update(context.Background(), object)).To(Succeed())
}

func specFields() map[string]any {
	GinkgoHelper()
	version := crd().Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	fields, found, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue())
	return fields
}

var _ = Describe("The CRDs that the manager applies", Serial, func() {
	apply := func() error { return crds.Apply(context.Background(), kube, slog.New(slog.DiscardHandler)) }

	It("give the API server the fields of this release, and take none of a later one", func() {
		before := crd().Object["spec"]
		DeferCleanup(func() {
			object := crd()
			object.Object["spec"] = before
			Expect(kube.Update(context.Background(), object)).To(Succeed())
		})
		By("updating a CRD of an earlier release")
		changeSpecFields(func(fields map[string]any) { delete(fields, "ttlSecondsAfterFinished") })
		Expect(specFields()).NotTo(HaveKey("ttlSecondsAfterFinished"))
		Expect(apply()).To(Succeed())
		Expect(specFields()).To(HaveKey("ttlSecondsAfterFinished"))
		Expect(crd().GetAnnotations()).To(HaveKeyWithValue("helm.sh/resource-policy", "keep"))

		By("keeping a CRD of a later release")
		changeSpecFields(func(fields map[string]any) { fields["later"] = map[string]any{"type": "string"} })
		Expect(apply()).To(Succeed())
		Expect(specFields()).To(HaveKey("later"))

		By("refusing a CRD that is neither")
		changeSpecFields(func(fields map[string]any) { delete(fields, "ttlSecondsAfterFinished") })
		Expect(apply()).To(MatchError(And(ContainSubstring("v1alpha1.spec.later"),
			ContainSubstring("v1alpha1.spec.ttlSecondsAfterFinished"))))
		Expect(specFields()).To(HaveKey("later"))
	})
})
