// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// managerWith returns the configuration of a user who has these rules in the namespace.
func (w *env) managerWith(rules []rbacv1.PolicyRule) *rest.Config {
	GinkgoHelper()
	ctx := context.Background()
	user, err := controlPlane.AddUser(envtest.User{Name: "manager-" + w.namespace}, nil)
	Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "manager"}, Rules: rules}
	Expect(kube.Create(ctx, role)).To(Succeed())
	Expect(kube.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "manager"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "manager-" + w.namespace}},
	})).To(Succeed())
	as := user.Config()
	as.QPS = -1
	return as
}

// deleteNamespace deletes the namespace. Learner and workers end as they do when their pods are deleted.
func (w *env) deleteNamespace(run *v1alpha1.TrainingRun) {
	GinkgoHelper()
	ctx := context.Background()
	w.kubelet.set(func(k *kubelet) { k.holdDeleted = true })
	Expect(kube.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})).To(Succeed())
	var pods corev1.PodList
	Eventually(func(g Gomega) {
		g.Expect(kube.List(ctx, &pods, client.InNamespace(w.namespace), client.HasLabels{v1alpha1.LabelRun})).To(Succeed())
		for i := range pods.Items {
			g.Expect(pods.Items[i].DeletionTimestamp).NotTo(BeNil())
		}
	}).Should(Succeed())
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Labels[v1alpha1.LabelRole] == v1alpha1.RoleLearner {
			w.verdict(pod, contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(2)})
		} else {
			// A worker that is not bound to a node yet is gone at once.
			Expect(client.IgnoreNotFound(terminate(ctx, pod, desired.RolloutContainer, 75, "", w.clock.now()))).To(Succeed())
		}
	}
	w.kubelet.set(func(k *kubelet) { k.holdDeleted = false })
}

func (w *env) namespaceGone() bool {
	err := kube.Get(context.Background(), client.ObjectKey{Name: w.namespace}, &corev1.Namespace{})
	return apierrors.IsNotFound(err)
}

// namespaceLimit is how long a namespace may take to go. The namespace controller asks again after pauses that grow
// with the pods' grace, so a busy machine takes far longer than an idle one.
const namespaceLimit = "5m"

var _ = Describe("A namespace that is deleted with a run in it", func() {
	It("is gone, and its run gets no other attempt", func() {
		w := newEnv()
		run, _ := w.trainingRun(1)
		w.deleteNamespace(run)
		Eventually(w.namespaceGone, namespaceLimit, "100ms").Should(BeTrue(), "the namespace exists")
		for _, version := range w.statuses.since(0) {
			Expect(version.Status.Attempts).To(Or(BeEmpty(), HaveLen(1)))
			Expect(condition(version, v1alpha1.ConditionStalled)).To(Or(BeEmpty(), Equal("False AsExpected")))
		}
	})

	It("is gone where the manager may not read namespaces", func() {
		w := emptyEnv()
		rules := slices.DeleteFunc(generatedRole().Rules,
			func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "namespaces") })
		w.startManager(&managerOptions{as: w.managerWith(rules)})
		run, _ := w.trainingRun(1)
		w.deleteNamespace(run)
		Eventually(w.namespaceGone, namespaceLimit, "100ms").Should(BeTrue(), "the namespace exists")
		for _, version := range w.statuses.since(0) {
			Expect(condition(version, v1alpha1.ConditionStalled)).To(Or(BeEmpty(), Equal("False AsExpected")))
		}
	})
})
