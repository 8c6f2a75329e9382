// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
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

// rolloutJob waits until the workers have a Job other than before, and returns the Job; before is nil if they had none.
func (w *env) rolloutJob(before *batchv1.Job) *batchv1.Job {
	GinkgoHelper()
	job := &batchv1.Job{}
	Eventually(func(g Gomega) {
		jobs := w.jobs(v1alpha1.RoleRollout)
		g.Expect(jobs).To(HaveLen(1))
		g.Expect(jobs[0].DeletionTimestamp).To(BeNil())
		if before != nil {
			g.Expect(jobs[0].UID).NotTo(Equal(before.UID), "the workers' Job is not replaced")
		}
		*job = jobs[0]
	}).Should(Succeed())
	return job
}

// learnerJob returns the only learner Job.
func (w *env) learnerJob() *batchv1.Job {
	GinkgoHelper()
	var jobs []batchv1.Job
	Eventually(func() []batchv1.Job { jobs = w.jobs(v1alpha1.RoleLearner); return jobs }).Should(HaveLen(1))
	return &jobs[0]
}

var _ = Describe("An upgrade of the manager", func() {
	It("replaces the workers when the next attempt begins, and not before", func() {
		w := newEnv()
		run, _ := w.startedRun()
		before := w.rolloutJob(nil)
		w.startManager(&managerOptions{image: "tinker-operator:next"})
		Consistently(func() string { return string(w.rolloutJob(nil).UID) }, "1s", "100ms").Should(Equal(string(before.UID)))

		w.endLearner(w.learner(run.Name, 1), 137, "")
		w.attempt(run, 2, progress(1))
		after := w.rolloutJob(before)
		Expect(after.Spec.Template.Spec.Containers[0].Image).To(Equal("tinker-operator:next"))
		Consistently(func() string { return string(w.rolloutJob(nil).UID) }, "1s", "100ms").Should(Equal(string(after.UID)))
	})

	It("replaces workers that cannot read the version of the run", func() {
		w := emptyEnv()
		w.kubelet.set(func(k *kubelet) {
			k.workerExit, k.workerMessage = contract.ExitVersion,
				"{\"msg\":\"starting\"}\nrollout: the run file has version 3, and this build reads version 1\n"
		})
		w.startManager(nil)
		w.environment()
		run := w.create()
		before := w.rolloutJob(nil)
		w.kubelet.set(func(k *kubelet) { k.workerJob = before.UID })
		Eventually(func() int32 { return w.rolloutJob(nil).Status.Failed }).Should(BeNumerically(">", 0))
		w.attempt(run, 1, progress(0))
		// The manager checks every 10 s why workers are missing, and replaces no workers that are younger than a minute.
		w.advance(15 * time.Second)
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionPodsReady)).To(Equal("False WorkersMissing VersionRefused"))
		})
		Expect(message(run, v1alpha1.ConditionPodsReady)).To(ContainSubstring("(rollout: the run file has version 3, " +
			"and this build reads version 1)"))
		w.advance(time.Minute)
		w.rolloutJob(before)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
			g.Expect(run.Status.Attempts).To(HaveLen(1))
		})
	})

	It("asks for an image of its version where the spec names another", func() {
		w := emptyEnv()
		w.kubelet.set(func(k *kubelet) { k.workerExit, k.workerMessage = contract.ExitVersion, "rollout: another version" })
		w.startManager(nil)
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) { run.Spec.Override(v1alpha1.TargetWorkers).Image = "own:1" })
		w.attempt(run, 1, contract.Progress{Phase: contract.PhaseTraining})
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionPodsReady)).To(Equal("False WorkersMissing ImageOfOtherVersion"))
		})
		before := w.rolloutJob(nil)
		w.advance(3 * time.Minute)
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionStalled)).To(Equal("True WorkersMissing ImageOfOtherVersion"))
		})
		Expect(message(run, v1alpha1.ConditionStalled)).To(ContainSubstring("Remove podOverrides[target=Workers].image"))
		Expect(w.rolloutJob(nil).UID).To(Equal(before.UID), "another Job would have the same image")
	})
})

var _ = Describe("An API key", func() {
	It("of another Secret has the learner restarted", func() {
		w := newEnv()
		run, _ := w.startedRun()
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.Tinker.APIKeySecretKeyRef.Name = "rotated" })
		pod, _ := w.startLearner(run.Name, 2)
		Expect(pod.Spec.Containers[0].Env).To(ContainElement(HaveField("ValueFrom.SecretKeyRef.Name", "rotated")))
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.Attempts[0].Number).To(BeEquivalentTo(2)) })
		Expect(run.Status.FailuresSinceCheckpoint).To(Or(BeNil(), HaveValue(BeZero())))
		Eventually(func() []string { return w.eventReasons(run) }).Should(ContainElement("APIKeyChanged"))
		Expect(w.attemptsWithJobs()).To(Equal([]string{"2"}))
	})
})

var _ = Describe("A manager key that changes", func() {
	It("gives learner and workers new credentials, one after the other", func() {
		w := newEnv()
		run, _ := w.startedRun()
		before, learnerBefore := w.rolloutJob(nil), w.learnerJob()
		w.startManager(&managerOptions{key: bytes.Repeat([]byte{8}, 32)})
		w.attempt(run, 2, progress(1))
		learnerAfter, after := w.learnerJob(), w.rolloutJob(before)
		name := desired.CredentialsOf(learnerAfter)
		Expect(name).NotTo(Equal(desired.CredentialsOf(learnerBefore)))
		Expect(desired.CredentialsOf(after)).To(Equal(name))
		secret := &corev1.Secret{}
		Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: name}, secret)).To(Succeed())
		want, err := contract.DeriveCredentials(bytes.Repeat([]byte{8}, 32), string(run.UID))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(secret.Data[contract.TokenKey])).To(Equal(want.Token))
		Expect(run.Status.FailuresSinceCheckpoint).To(Or(BeNil(), HaveValue(BeZero())))
		Eventually(func() []string { return w.eventReasons(run) }).Should(ContainElement("ManagerKeyChanged"))
		Consistently(func() string { return string(w.rolloutJob(nil).UID) }, "1s", "100ms").Should(Equal(string(after.UID)))
		Expect(w.attemptsWithJobs()).To(Equal([]string{"2"}))
	})
})
