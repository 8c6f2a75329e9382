// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

var _ = Describe("A manager whose CRDs are deleted", Serial, func() {
	names := []string{"trainingruns", "rewardenvironments", "tinkerendpoints"}

	It("goes on when they are back, without a restart", func() {
		w := emptyEnv()
		w.startManager(&managerOptions{endpoints: []string{w.namespace}})
		w.startedRun()
		DeferCleanup(func() {
			_, err := envtest.InstallCRDs(apiConfig, envtest.CRDInstallOptions{
				Paths: []string{filepath.Join("..", "..", "config", "crd", "bases")}})
			Expect(err).NotTo(HaveOccurred())
		})
		for _, name := range names {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
				Kind: "CustomResourceDefinition"})
			object.SetName(name + ".rl.tinker-operator.dev")
			Expect(kube.Delete(context.Background(), object)).To(Succeed())
			Eventually(func() bool {
				return apierrors.IsNotFound(kube.Get(context.Background(), client.ObjectKeyFromObject(object), object))
			}).Should(BeTrue())
		}
		Eventually(func() error {
			return kube.List(context.Background(), &v1alpha1.TrainingRunList{})
		}).Should(Satisfy(func(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }))
		Eventually(func() []string { return w.attemptsWithJobs() }).Should(BeEmpty(), "Jobs go with their runs")
		Consistently(w.stopping, 3*time.Second).ShouldNot(BeClosed())

		_, err := envtest.InstallCRDs(apiConfig, envtest.CRDInstallOptions{
			Paths: []string{filepath.Join("..", "..", "config", "crd", "bases")}})
		Expect(err).NotTo(HaveOccurred())
		w.startedRun()
	})
})
