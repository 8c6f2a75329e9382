// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

var _ = Describe("An init container of a learner that fails", func() {
	It("is reported, does not count as a restart, and is run again until it succeeds", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) {
			*run.Spec.Override(v1alpha1.TargetLearner) = v1alpha1.PodOverrides{
				InitContainers: []v1alpha1.InitContainer{{Name: "fetch", Image: "fetch:1", Resources: corev1.ResourceRequirements{
					Claims: []corev1.ResourceClaim{{Name: "device"}},
				}}},
				ResourceClaims: []corev1.PodResourceClaim{{Name: "device", ResourceClaimTemplateName: new("device")}},
			}
		})
		for attempt := int32(1); attempt <= 6; attempt++ {
			pod := w.learner(run.Name, attempt)
			Expect(pod.Spec.InitContainers).To(HaveLen(1))
			Expect(pod.Spec.InitContainers[0].Resources.Claims).To(HaveLen(1), "the API server keeps the claim")
			Expect(pod.Spec.ResourceClaims).To(HaveLen(1))
			pod.Status.Phase = corev1.PodFailed
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "fetch: no route"},
			}}}
			Expect(kube.Status().Update(context.Background(), pod)).To(Succeed())
			w.awaitEnd(run, attempt)
			w.eventually(run, func(g Gomega) {
				g.Expect(coded(run, v1alpha1.ConditionReady)).To(Equal("False PodInvalid InitContainerFailed"))
				g.Expect(message(run, v1alpha1.ConditionReady)).To(ContainSubstring(
					`("fetch" exited with code 1; its log ends: fetch: no route). Correct podOverrides[target=Learner].initContainers`))
			})
			w.advance(40 * time.Second)
			w.awaitReconciles()
			Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
			Expect(run.Status.Attempts[0].CompletionTime).NotTo(BeNil(), "the next attempt waits")
			w.advance(6 * time.Second)
		}
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionStalled)).To(Equal("True PodInvalid InitContainerFailed"))
		})
		Expect(run.Status.FailuresSinceCheckpoint).To(Or(BeNil(), HaveValue(BeZero())))
		w.attempt(run, 7, progress(1))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
			g.Expect(condition(run, v1alpha1.ConditionReady)).To(Equal("True Progressing"))
		})
	})
})
