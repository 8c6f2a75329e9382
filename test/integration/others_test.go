// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

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

// setSuspend sets a Job's suspend, as a queue does.
func (w *env) setSuspend(role string, suspend bool) {
	GinkgoHelper()
	job := w.jobs(role)[0]
	patch := client.MergeFrom(job.DeepCopy())
	job.Spec.Suspend = new(suspend)
	Expect(kube.Patch(context.Background(), &job, patch)).To(Succeed())
}

func (w *env) isSuspended(role string) func() bool {
	return func() bool {
		jobs := w.jobs(role)
		return len(jobs) == 1 && jobs[0].Spec.Suspend != nil && *jobs[0].Spec.Suspend
	}
}

var _ = Describe("A Job that another controller suspends", func() {
	It("is left alone where it is the workers'", func() {
		w := newEnv()
		run, _ := w.startedRun()
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
		})
		w.setSuspend(v1alpha1.RoleRollout, true)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("False JobSuspended"))
		})
		_, err := kubectl(w.namespace, "scale", "trun", run.Name, "--replicas=3")
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() int32 { return *w.jobs(v1alpha1.RoleRollout)[0].Spec.Parallelism }).Should(BeEquivalentTo(3))
		Consistently(w.isSuspended(v1alpha1.RoleRollout), "1s", "50ms").Should(BeTrue())
		w.setSuspend(v1alpha1.RoleRollout, false)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
		})
	})

	It("does not count against the learner's deadline", func() {
		w := newEnv()
		w.environment()
		run := w.create()
		w.learner(run.Name, 1)
		w.setSuspend(v1alpha1.RoleLearner, true)
		suspended := func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("False JobSuspended"))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
		}
		// The API server dates the deletion of the pod by its own clock, which is behind the manager's afterwards.
		w.eventually(run, suspended)
		w.advance(16 * time.Minute)
		w.eventually(run, suspended)
		w.advance(24 * time.Hour)
		Consistently(w.attemptsWithJobs, "1s", "50ms").Should(Equal([]string{"1"}))
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.FailurePolicy.StartDeadlineSeconds = new(int32(360000)) })
		w.setSuspend(v1alpha1.RoleLearner, false)
		w.attempt(run, 1, progress(1))
	})

	It("stays and is waited for after its learner has run, and the run continues once it is resumed", func() {
		w := newEnv()
		run, _ := w.trainingRun(3)
		job := w.jobs(v1alpha1.RoleLearner)[0].UID
		w.setSuspend(v1alpha1.RoleLearner, true)
		suspended := func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("False JobSuspended"))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
			g.Expect(run.Status.Attempts[0].Reason).To(Equal("JobSuspended"))
		}
		w.eventually(run, suspended)
		for range 3 {
			w.advance(8 * time.Hour)
			w.eventually(run, suspended)
		}
		w.startManager(nil)
		w.advance(time.Minute)
		Consistently(func(g Gomega) {
			g.Expect(w.jobs(v1alpha1.RoleLearner)).To(HaveLen(1))
			g.Expect(w.jobs(v1alpha1.RoleLearner)[0].UID).To(Equal(job))
			g.Expect(*w.jobs(v1alpha1.RoleLearner)[0].Spec.Suspend).To(BeTrue())
		}, "1s", "50ms").Should(Succeed())
		w.eventually(run, suspended)
		Expect(run.Status.Attempts).To(HaveLen(1))
		Expect(w.isSuspended(v1alpha1.RoleRollout)()).To(BeFalse(), "the workers' Job is as its controller has it")

		w.setSuspend(v1alpha1.RoleLearner, false)
		w.attempt(run, 2, progress(3))
		Expect(*run.Status.Restarts).To(BeZero())
		Expect(run.Status.FailuresSinceCheckpoint).To(Or(BeNil(), HaveValue(BeZero())))
	})

	It("is replaced where it is resumed while its learner drains", func() {
		w := newEnv()
		run, _ := w.trainingRun(3)
		first := w.learner(run.Name, 1)
		w.kubelet.set(func(k *kubelet) { k.holdDeleted = true })
		w.setSuspend(v1alpha1.RoleLearner, true)
		Eventually(func(g Gomega) {
			g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(first), first)).To(Succeed())
			g.Expect(first.DeletionTimestamp).NotTo(BeNil())
		}).Should(Succeed())
		w.setSuspend(v1alpha1.RoleLearner, false)
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.Attempts).To(HaveLen(2))
			g.Expect(run.Status.Attempts[1].Reason).To(Equal("JobSuspended"))
		})
		w.kubelet.set(func(k *kubelet) { k.holdDeleted = false })
		w.attempt(run, 2, progress(4))
		Expect(*run.Status.Restarts).To(BeZero())
	})
})

var _ = Describe("Pods of a suspended run", func() {
	It("are deleted before the run is Suspended", func() {
		w := newEnv()
		run, _ := w.startedRun()
		var workers corev1.PodList
		Eventually(func(g Gomega) {
			g.Expect(kube.List(context.Background(), &workers, client.InNamespace(w.namespace),
				client.MatchingLabels{v1alpha1.LabelRole: v1alpha1.RoleRollout})).To(Succeed())
			g.Expect(workers.Items).To(HaveLen(2))
		}).Should(Succeed())
		// A pod that is bound to a node exists until its kubelet has ended it.
		w.kubelet.set(func(k *kubelet) { k.holdDeleted = true })
		DeferCleanup(func() { w.kubelet.set(func(k *kubelet) { k.holdDeleted = false }) })
		for i := range workers.Items {
			Expect(bind(context.Background(), &workers.Items[i])).To(Succeed())
		}
		w.change(run, suspend)
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(3)})
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.Attempts[0].Cause).To(Equal("Drained")) })
		Consistently(func(g Gomega) {
			g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("Unknown Draining"))
		}, "1s", "50ms").Should(Succeed())
		w.kubelet.set(func(k *kubelet) { k.holdDeleted = false })
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("True Suspended"))
		})
	})
})

var _ = Describe("A copy of the learner's Job", func() {
	It("does not concern the run", func() {
		w := newEnv()
		run, first := w.startedRun()
		duplicate := desired.LearnerJob(run, 1, "link", desired.Settings{Image: "x"})
		duplicate.Name = "debug"
		Expect(kube.Create(context.Background(), duplicate)).To(Succeed())
		var pods corev1.PodList
		Eventually(func(g Gomega) {
			g.Expect(kube.List(context.Background(), &pods, client.InNamespace(w.namespace),
				client.MatchingLabels{batchv1.JobNameLabel: "debug"})).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(1))
		}).Should(Succeed())
		w.endLearner(&pods.Items[0], 1, "panic")
		Expect(w.touch(run)).To(Succeed())
		Consistently(func(g Gomega) {
			g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
			g.Expect(run.Status.Attempts).To(HaveLen(1))
			g.Expect(run.Status.Attempts[0].CompletionTime).To(BeNil())
		}, "1s", "50ms").Should(Succeed())
		service := &corev1.Service{}
		Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: desired.ServiceName(run)},
			service)).To(Succeed())
		Expect(service.Spec.Selector).To(HaveKeyWithValue(batchv1.JobNameLabel, desired.LearnerJobName(run, 1)))
		Expect(first.name).To(HavePrefix(desired.LearnerJobName(run, 1)))
	})
})
