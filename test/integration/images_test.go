// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// lacksImage writes to the pods with the labels, as the kubelet does, that their image cannot be pulled.
func (w *env) lacksImage(container string, pods int, labels client.MatchingLabels) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var list corev1.PodList
		g.Expect(kube.List(context.Background(), &list, client.InNamespace(w.namespace), labels)).To(Succeed())
		g.Expect(list.Items).To(HaveLen(pods))
		for i := range list.Items {
			list.Items[i].Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff",
					Message: "Back-off"}},
			}}
			g.Expect(kube.Status().Update(context.Background(), &list.Items[i])).To(Succeed())
		}
	}).Should(Succeed())
}

var _ = Describe("An image that cannot be pulled", func() {
	It("is pulled for another learner, which costs no restart", func() {
		w := newEnv()
		w.environment()
		run := w.create()
		for _, attempt := range []string{"1", "2"} {
			w.lacksImage(desired.LearnerContainer, 1, client.MatchingLabels{
				v1alpha1.LabelRun: run.Name, v1alpha1.LabelRole: v1alpha1.RoleLearner, v1alpha1.LabelAttempt: attempt,
			})
			w.advance(time.Minute)
		}
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("True ImagePullFailed"))
			g.Expect(run.Status.Attempts[0].Number).To(BeEquivalentTo(3))
		})
		w.attempt(run, 3, progress(1))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
		})
		Expect(run.Status.Attempts).To(HaveLen(2))
		Expect(run.Status.Attempts[1].Count).To(BeEquivalentTo(2))
		Expect(*run.Status.FailuresSinceCheckpoint).To(BeZero())
	})

	It("is pulled for other workers, where none can work", func() {
		w := newEnv()
		w.kubelet.set(func(k *kubelet) { k.holdWorkers = true })
		run, _ := w.startedRun()
		before := w.rolloutJob(nil)
		w.lacksImage(desired.RolloutContainer, 2, client.MatchingLabels{v1alpha1.LabelRun: run.Name,
			v1alpha1.LabelRole: v1alpha1.RoleRollout})
		w.advance(time.Minute)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("False ImagePullFailed"))
		})
		w.kubelet.set(func(k *kubelet) { k.holdWorkers = false })
		w.rolloutJob(before)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
		})
		Expect(run.Status.Attempts).To(HaveLen(1))
	})

	It("is pulled for another probe", func() {
		w := newEnv()
		w.kubelet.set(func(k *kubelet) { k.holdProbes = true })
		env := w.environment()
		w.lacksImage(desired.ProbeContainer, 1, client.MatchingLabels{v1alpha1.LabelRole: v1alpha1.RoleProbe})
		awaitProbed(env, "False ProbeNotStarting")
		first := w.jobs(v1alpha1.RoleProbe)[0]
		w.clock.advance(time.Minute)
		Eventually(func(g Gomega) {
			var known v1alpha1.RewardEnvironment
			g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(env), &known)).To(Succeed())
			known.Labels = map[string]string{"reconcile": time.Now().Format("150405.000")}
			g.Expect(kube.Update(context.Background(), &known)).To(Succeed())
			jobs := w.jobs(v1alpha1.RoleProbe)
			g.Expect(jobs).To(HaveLen(1))
			g.Expect(jobs[0].UID).NotTo(Equal(first.UID))
		}).Should(Succeed(), "the probe is not replaced")
		w.kubelet.set(func(k *kubelet) { k.holdProbes = false })
		awaitProbed(env, "True Probed")
	})
})

var _ = Describe("Workers whose API key is refused", func() {
	It("are replaced within a minute, and their key is named", func() {
		w := newEnv()
		run, _ := w.startedRun(func(run *v1alpha1.TrainingRun) { run.Spec.Rollouts.Workers = new(int32(1)) })
		before := w.rolloutJob(nil)
		w.kubelet.set(func(k *kubelet) { k.workerExit, k.workerJob = contract.ExitKeyRefused, before.UID })
		Expect(kube.DeleteAllOf(context.Background(), &corev1.Pod{}, client.InNamespace(w.namespace),
			client.MatchingLabels(before.Spec.Template.Labels))).To(Succeed())
		after := &batchv1.Job{}
		w.eventually(run, func(g Gomega) {
			jobs := w.jobs(v1alpha1.RoleRollout)
			g.Expect(jobs).To(HaveLen(1))
			g.Expect(jobs[0].UID).NotTo(Equal(before.UID), "the workers' Job is not replaced")
			*after = jobs[0]
		})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
		})
		Expect(run.Status.Attempts).To(HaveLen(1))
		Expect(w.eventReasons(run)).NotTo(ContainElement("Failed"))
		Expect(w.rolloutJob(nil).UID).To(Equal(after.UID))
	})

	It("are started again by their Job where others work, which is not replaced", func() {
		w := newEnv()
		run, _ := w.startedRun(func(run *v1alpha1.TrainingRun) { run.Spec.Rollouts.Workers = new(int32(2)) })
		job := w.rolloutJob(nil)
		byIndex := func(g Gomega) map[string]corev1.Pod {
			var list corev1.PodList
			g.Expect(kube.List(context.Background(), &list, client.InNamespace(w.namespace),
				client.MatchingLabels(job.Spec.Template.Labels))).To(Succeed())
			running := map[string]corev1.Pod{}
			for _, pod := range list.Items {
				if pod.Status.Phase == corev1.PodRunning {
					running[pod.Annotations[batchv1.JobCompletionIndexAnnotation]] = pod
				}
			}
			return running
		}
		var before map[string]corev1.Pod
		Eventually(func(g Gomega) {
			before = byIndex(g)
			g.Expect(before).To(HaveLen(2))
		}).Should(Succeed())
		refused := before["0"]
		Expect(terminate(context.Background(), &refused, desired.RolloutContainer, contract.ExitKeyRefused, "refused",
			time.Now())).To(Succeed())
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
		})
		// The Job controller starts another pod ten seconds after the first failure of an index. It reads the Secret again.
		Eventually(func(g Gomega) {
			after := byIndex(g)
			g.Expect(after).To(HaveLen(2))
			g.Expect(after["0"].UID).NotTo(Equal(refused.UID))
			g.Expect(after["1"].UID).To(Equal(before["1"].UID))
		}, "24s").Should(Succeed(), "a key that is refused is read again within a minute: the worker ends after 36 seconds")
		Expect(w.rolloutJob(nil).UID).To(Equal(job.UID))
		Expect(run.Status.Attempts).To(HaveLen(1))
	})
})
