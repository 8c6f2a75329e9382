// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

var _ = Describe("Workers that crash", func() {
	It("are reported with the end of their log, until they run", func() {
		w := emptyEnv()
		w.kubelet.set(func(k *kubelet) {
			k.workerExit, k.workerMessage = 1, "{\"msg\":\"starting\"}\nrollout: opening /var/spill: no space left (key "+
				"tml-abcdef0123456789)\n"
		})
		w.startManager(nil)
		w.environment()
		run := w.create()
		w.attempt(run, 1, contract.Progress{Phase: contract.PhaseTraining})
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionPodsReady)).To(Equal("False WorkersMissing WorkersCrashed"))
			g.Expect(coded(run, v1alpha1.ConditionProgressing)).To(Equal("False WorkersMissing WorkersCrashed"))
		})
		for _, kind := range []string{v1alpha1.ConditionPodsReady, v1alpha1.ConditionProgressing,
			v1alpha1.ConditionReady} {
			Expect(message(run, kind)).To(And(
				MatchRegexp(`pod "arithmetic-\w+-rollout-\d-\w+" exited with code 1`),
				ContainSubstring("its log ends: rollout: opening /var/spill: no space left"), Not(ContainSubstring("abcdef"))),
				kind)
		}
		Eventually(func() []string { return w.eventReasons(run) }).Should(ContainElement("WorkersMissing"))
		w.kubelet.set(func(k *kubelet) { k.workerExit = 0 })
		Eventually(func(g Gomega) {
			g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
		}, "3m").Should(Succeed(), "the Job controller tries again within a minute")
	})
})

var _ = Describe("A learner that crashes", func() {
	It("is reported with the end of its log until a checkpoint is saved, and its Job stays until the next attempt ends",
		func() {
			w := newEnv()
			run, _ := w.startedRun()
			crash := func(attempt int32, why string) {
				w.endLearner(w.learner(run.Name, attempt), 2,
					"starting\npanic: "+why+"\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:3 +0x1d\n")
			}
			crash(1, "index out of range")
			w.attempt(run, 2, contract.Progress{Phase: contract.PhaseOpening})
			w.eventually(run, func(g Gomega) {
				g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("True Progressing"))
				g.Expect(message(run, v1alpha1.ConditionReady)).To(
					Equal("The run makes progress. A new attempt continues from status.latestCheckpoint or a newer state. Attempt 1 " +
						"ended (Crashed): The learner exited with code 2; its log ends: panic: index out of range"))
			})
			Expect(w.attemptsWithJobs()).To(ConsistOf("1", "2"))

			crash(2, "again")
			w.eventually(run, func(g Gomega) {
				g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("False BackingOff"))
			})
			for _, kind := range []string{v1alpha1.ConditionPodsReady, v1alpha1.ConditionProgressing,
				v1alpha1.ConditionReady} {
				Expect(message(run, kind)).To(ContainSubstring("Attempt 2 ended (Crashed): The learner exited with code 2; its "+
					"log ends: panic: again"), kind)
			}
			Eventually(w.attemptsWithJobs).Should(Equal([]string{"2"}))

			w.clock.advance(time.Minute)
			Expect(w.touch(run)).To(Succeed())
			w.attempt(run, 3, progress(1))
			w.eventually(run, func(g Gomega) {
				g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("True Progressing"))
				g.Expect(message(run, v1alpha1.ConditionProgressing)).To(And(HavePrefix("The run makes progress."),
					Not(ContainSubstring("Crashed"))))
			})
			Expect(w.attemptsWithJobs()).To(ConsistOf("2", "3"))
		})
})
