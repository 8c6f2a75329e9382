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
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// runFile reads the run file of an attempt.
func (w *env) runFile(run *v1alpha1.TrainingRun, attempt int32) contract.RunFile {
	GinkgoHelper()
	config := &corev1.ConfigMap{}
	Eventually(func() error {
		return kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace,
			Name: desired.RunFileName(run, attempt)}, config)
	}).Should(Succeed())
	file, err := contract.DecodeRunFile([]byte(config.Data[contract.RunFileName]))
	Expect(err).NotTo(HaveOccurred())
	return file
}

// progressWith returns a progress with capabilities of the run's own endpoint.
func (w *env) progressWith(run *v1alpha1.TrainingRun, step int64, ignored ...string) contract.Progress {
	GinkgoHelper()
	fixed := w.runFile(run, 1).Fixed
	p := progress(step)
	p.Capabilities = &contract.Capabilities{BaseURL: fixed.BaseURL, Model: fixed.Model.Name,
		Supported: []string{"adam.beta1", "loss.ppo"}, Ignored: ignored}
	return p
}

var _ = Describe("What the endpoint does", func() {
	It("is found once, shown, and handed on", func() {
		w := newEnv()
		run, first := w.startedRun()
		Expect(w.runFile(run, 1).Capabilities).To(BeNil())
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: w.progressWith(run, 7, "seed")})
		w.advance(11 * time.Second)
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.Capabilities).NotTo(BeNil())
			g.Expect(run.Status.Capabilities.Ignored).To(Equal([]string{"seed"}))
		})
		Expect(run.Status.Capabilities.Supported).To(Equal([]string{"adam.beta1", "loss.ppo"}))
		Expect(condition(run, v1alpha1.ConditionAccepted)).To(Equal("True Accepted"))
		Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring("ignores the seeds"))

		w.endLearner(w.learner(run.Name, 1), 2, "panic: oh")
		w.attempt(run, 2, progress(7))
		known := w.runFile(run, 2).Capabilities
		Expect(known).NotTo(BeNil())
		Expect(known.Ignored).To(Equal([]string{"seed"}))
		Expect(known.Supported).To(Equal([]string{"adam.beta1", "loss.ppo"}))
		Expect(run.Status.Capabilities).NotTo(BeNil(), "a report without capabilities does not remove those in the status")
	})

	DescribeTable("is shared with other runs", func(age time.Duration, change func(*v1alpha1.TrainingRun), isShared bool) {
		w := newEnv()
		run, first := w.startedRun()
		file := w.runFile(run, 1)
		Expect(file.SharedCapabilities).To(BeNil(), "no other run has checked the endpoint")
		Expect(file.Connection).NotTo(BeEmpty())
		checkedAt := w.clock.now().Add(-age).UTC().Truncate(time.Second)
		p := w.progressWith(run, 7, "ttl")
		p.Capabilities.Supported = append(p.Capabilities.Supported, contract.CapabilityGradientSum)
		p.Capabilities.CheckedAt, p.Capabilities.ClientVersion, p.Capabilities.Connection = checkedAt.Format(time.RFC3339),
			"v1", file.Connection
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: p})
		w.advance(11 * time.Second)
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.Capabilities).NotTo(BeNil())
			g.Expect(run.Status.Capabilities.CheckedAt).NotTo(BeNil())
		})
		Expect(run.Status.Capabilities.CheckedAt.Time).To(BeTemporally("==", checkedAt))
		w.awaitReconciles() // The manager has the status in its cache.

		second := w.create(func(r *v1alpha1.TrainingRun) { r.Name = "second" }, change)
		pod, ip := w.startLearner(second.Name, 1)
		Expect(pod.Name).NotTo(BeEmpty())
		given := w.runFile(second, 1)
		Expect(given.Capabilities).To(BeNil(), "the run itself has found nothing")
		if !isShared {
			Expect(given.SharedCapabilities).To(BeNil())
			return
		}
		from := &contract.SharedCheck{Name: run.Name, CheckedAt: checkedAt.Format(time.RFC3339)}
		Expect(given.SharedCapabilities).To(Equal(&contract.Capabilities{
			BaseURL: given.Fixed.BaseURL, Model: given.Fixed.Model.Name, Supported: []string{"adam.beta1", "loss.ppo"},
			ClientVersion: "v1", Connection: given.Connection, SharedFrom: from,
		}))

		known := *given.SharedCapabilities
		known.CheckedAt = w.clock.now().UTC().Format(time.RFC3339)
		found := progress(0)
		found.Capabilities = &known
		w.learners.answer(ip, contract.HeartbeatReply{Attempt: 1, Progress: found})
		w.eventually(second, func(g Gomega) {
			g.Expect(second.Status.Capabilities).NotTo(BeNil())
			g.Expect(second.Status.Capabilities.SharedFrom).NotTo(BeNil())
		})
		Expect(second.Status.Capabilities.SharedFrom.Name).To(Equal(run.Name))
		Expect(second.Status.Capabilities.SharedFrom.CheckedAt.Time).To(BeTemporally("==", checkedAt))
		w.endLearner(w.learner(second.Name, 1), 2, "panic: oh")
		w.attempt(second, 2, progress(0))
		again := w.runFile(second, 2)
		Expect(again.SharedCapabilities).To(BeNil(), "the run knows the endpoint itself by now")
		Expect(again.Capabilities).To(Equal(&known))
	},
		Entry("within a day", 23*time.Hour, func(*v1alpha1.TrainingRun) {}, true),
		Entry("not after a day", 24*time.Hour, func(*v1alpha1.TrainingRun) {}, false),
		Entry("not over another proxy", time.Hour, func(
			r *v1alpha1.TrainingRun) {
			r.Spec.Tinker.ProxyURL = "http://proxy:3128"
		}, false),
		Entry("not with another Secret", time.Hour,
			func(r *v1alpha1.TrainingRun) { r.Spec.Tinker.APIKeySecretKeyRef.Name = "other" }, false),
		Entry("not at another address", time.Hour, func(
			r *v1alpha1.TrainingRun) {
			r.Spec.Tinker.BaseURL = "http://elsewhere"
		}, false),
	)

	DescribeTable("refuses a run at its first attempt", func(code problem.Code, text string) {
		w := newEnv()
		w.environment()
		run := w.create()
		pod, _ := w.startLearner(run.Name, 1)
		w.verdict(pod, contract.Verdict{Cause: contract.CauseConfigRejected, Reason: code, Message: text,
			Attempt: 1})
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False " + shows(code)))
			g.Expect(coded(run, v1alpha1.ConditionFailed)).To(Equal("True " + shows(code)))
			g.Expect(coded(run, v1alpha1.ConditionStalled)).To(Equal("True " + shows(code)))
		})
		Expect(message(run, v1alpha1.ConditionAccepted)).To(Equal(text))
		Expect(run.Status.Attempts).To(HaveLen(1))
		Expect(run.Status.FailuresSinceCheckpoint).To(BeNil())
		Eventually(func() []string { return w.eventReasons(run) }).Should(ContainElement("UnsupportedByEndpoint"))
		Consistently(w.attemptsWithJobs, "1s", "100ms").Should(Equal([]string{"1"}))
	},
		Entry("that sets what it ignores", problem.UnsupportedByEndpoint,
			"The endpoint does not honour algorithm.optimizer.gradClipNorm (ignored): set it to 0"),
		Entry("that needs an optimizer which it forgets", problem.OptimizerNotRestored,
			"The endpoint does not restore the optimizer: set failurePolicy.requireOptimizerState to false"),
	)

	It("is reported where it forgets the optimizer and may", func() {
		w := newEnv()
		run, first := w.startedRun(func(run *v1alpha1.TrainingRun) {
			run.Spec.FailurePolicy.RequireOptimizerState = new(false)
		})
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1,
			Progress: w.progressWith(run, 7, "optimizer_restore")})
		w.advance(11 * time.Second)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionReady)).To(Equal("True Progressing"))
			g.Expect(message(run, v1alpha1.ConditionProgressing)).To(ContainSubstring("Adam starts from zero"))
		})
		Eventually(func() []string { return w.eventReasons(run) }).Should(ContainElement("OptimizerNotRestored"))

		w.endLearner(w.learner(run.Name, 1), 2, "panic: oh")
		cold := progress(7)
		cold.FromStep, cold.ColdOptimizer = 7, true
		w.attempt(run, 2, cold)
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.Attempts[0].ColdOptimizer).To(HaveValue(BeTrue())) })
		Expect(run.Status.Attempts[1].ColdOptimizer).To(BeNil())
	})
})
