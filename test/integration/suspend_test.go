// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

func suspend(run *v1alpha1.TrainingRun) { run.Spec.Suspend = new(true) }
func resume(run *v1alpha1.TrainingRun)  { run.Spec.Suspend = new(false) }

var _ = Describe("Suspend", func() {
	It("drains by heartbeat, has no pods, and continues with the next attempt", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(30)})
		w.advance(11 * time.Second)
		w.eventually(run, func(g Gomega) { g.Expect(status.Steps(&run.Status)).To(Equal("30/60")) })
		w.change(run, suspend)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("Unknown Draining"))
			g.Expect(run.Status.State).To(Equal(v1alpha1.StateDraining))
		})
		Eventually(func() contract.Desired {
			requests := w.learners.received(first.ip)
			return requests[len(requests)-1].Desired
		}).Should(Equal(contract.DesiredDrain))
		Expect(w.attemptsWithJobs()).To(Equal([]string{"1"}), "nothing is deleted before the state is saved")
		Expect(w.jobs(v1alpha1.RoleRollout)).To(HaveLen(1))

		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(31)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("True Suspended"))
		})
		Expect(condition(run, v1alpha1.ConditionReady)).To(Equal("True Suspended"))
		Expect(run.Status.State).To(Equal(v1alpha1.StateSuspended))
		Expect(status.Steps(&run.Status)).To(Equal("31/60"))
		Expect(w.attemptsWithJobs()).To(BeEmpty())
		Expect(w.jobs(v1alpha1.RoleRollout)).To(BeEmpty())

		w.change(run, resume)
		w.attempt(run, 2, progress(31))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("False AsExpected"))
		})
		Expect(run.Status.Attempts[1].Cause).To(Equal("Drained"))
		Eventually(func() int { return len(w.jobs(v1alpha1.RoleRollout)) }).Should(Equal(1))
		Eventually(func() []string { return w.eventReasons(run) }).Should(ContainElements("Draining", "Suspended", "Resumed"))
	})

	It("takes a learner that does not answer down by its Job", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.learners.silence(first.ip)
		w.change(run, suspend)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("Unknown Draining"))
		})
		w.advance(time.Minute)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("True Suspended"))
		})
		// The manager's clock is ahead of the API server's here, which makes the deletion look overdue.
		Expect(run.Status.Attempts[0].Cause).To(Or(Equal("Disrupted"), Equal("NodeLost")))
		Expect(run.Status.FailuresSinceCheckpoint).To(Or(BeNil(), HaveValue(BeZero())))
	})

	It("names the silent node that keeps it from being complete, and a resumed run has workers again", func() {
		w := newEnv()
		run, _ := w.startedRun()
		pods := func() []corev1.Pod {
			var list corev1.PodList
			role := client.MatchingLabels{v1alpha1.LabelRole: v1alpha1.RoleRollout}
			Expect(kube.List(context.Background(), &list, client.InNamespace(w.namespace), role)).To(Succeed())
			return list.Items
		}
		Eventually(pods).Should(HaveLen(2))
		Eventually(func() corev1.PodPhase { return pods()[0].Status.Phase }).Should(Equal(corev1.PodRunning))
		lost := pods()[0]
		Expect(bind(context.Background(), &lost)).To(Succeed())
		w.kubelet.set(func(k *kubelet) { k.holdDeleted = true })
		DeferCleanup(func() { w.kubelet.set(func(k *kubelet) { k.holdDeleted = false }) })
		w.change(run, suspend)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("Unknown Draining"))
		})
		learner := w.learner(run.Name, 1)
		w.verdict(learner, contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(31)})
		Eventually(func() *metav1.Time { return w.jobs(v1alpha1.RoleRollout)[0].DeletionTimestamp }).ShouldNot(BeNil())
		former := w.jobs(v1alpha1.RoleRollout)[0].UID
		w.advance(10 * time.Minute)
		w.eventually(run, func(g Gomega) {
			g.Expect(message(run, v1alpha1.ConditionSuspended)).To(ContainSubstring("pod %q on node %q", lost.Name, "node"))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("True Draining"))
		})

		w.change(run, resume)
		Eventually(func(g Gomega) {
			jobs := w.jobs(v1alpha1.RoleRollout)
			g.Expect(jobs).To(HaveLen(1))
			g.Expect(jobs[0].UID).NotTo(Equal(former))
			g.Expect(jobs[0].DeletionTimestamp).To(BeNil())
		}).Should(Succeed(), "the run has workers, though a pod of the former ones never ends")
		w.attempt(run, 2, progress(31))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
		})
	})

	It("stops a learner that never ran at once", func() {
		w := newEnv()
		w.environment()
		run := w.create()
		w.learner(run.Name, 1)
		w.change(run, suspend)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("True Suspended"))
		})
		Expect(run.Status.Attempts[0].Cause).To(Equal("Drained"))
	})

	It("keeps a run that was created suspended from starting", func() {
		w := newEnv()
		w.environment()
		run := w.create(suspend)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("True Suspended"))
		})
		Expect(run.Status.StartTime).To(BeNil())
		Expect(w.attemptsWithJobs()).To(BeEmpty())
		w.change(run, resume)
		w.learner(run.Name, 1)
	})
})

var _ = Describe("The workers", func() {
	It("follow kubectl scale, to nothing and back", func() {
		w := newEnv()
		run, _ := w.startedRun()
		job := func() []any {
			jobs := w.jobs(v1alpha1.RoleRollout)
			if len(jobs) != 1 {
				return nil
			}
			return []any{*jobs[0].Spec.Parallelism, *jobs[0].Spec.Completions, *jobs[0].Spec.Suspend}
		}
		Eventually(job).Should(Equal([]any{int32(2), int32(2), false}))
		output, err := kubectl(w.namespace, "scale", "trun", run.Name, "--replicas=4")
		Expect(err).NotTo(HaveOccurred(), output)
		Eventually(job).Should(Equal([]any{int32(4), int32(4), false}))
		w.advance(11 * time.Second)
		w.eventually(run, func(g Gomega) {
			g.Expect(*run.Status.Workers).To(BeEquivalentTo(4))
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
		})
		output, err = kubectl(w.namespace, "scale", "trun", run.Name, "--replicas=0")
		Expect(err).NotTo(HaveOccurred(), output)
		Eventually(job).Should(Equal([]any{int32(1), int32(1), true}), "suspended: completions of 0 would complete it")
		w.advance(11 * time.Second)
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionPodsReady)).To(Equal("False WorkersMissing ScaledToZero"))
		})
		output, err = kubectl(w.namespace, "scale", "trun", run.Name, "--replicas=1")
		Expect(err).NotTo(HaveOccurred(), output)
		Eventually(job).Should(Equal([]any{int32(1), int32(1), false}))
	})

	It("are replaced when their pods are changed, and only then", func() {
		w := newEnv()
		run, _ := w.startedRun()
		before := w.jobs(v1alpha1.RoleRollout)[0].UID
		w.change(run, func(run *v1alpha1.TrainingRun) {
			run.Spec.Override(v1alpha1.TargetLearner).NodeSelector = map[string]string{"pool": "a"}
		})
		Consistently(func() bool { return w.jobs(v1alpha1.RoleRollout)[0].UID == before }, "500ms", "50ms").Should(BeTrue())
		w.change(run, func(run *v1alpha1.TrainingRun) {
			run.Spec.Override(v1alpha1.TargetWorkers).NodeSelector = map[string]string{"pool": "a"}
		})
		Eventually(func(g Gomega) {
			jobs := w.jobs(v1alpha1.RoleRollout)
			g.Expect(jobs).To(HaveLen(1))
			g.Expect(jobs[0].UID).NotTo(Equal(before))
			g.Expect(jobs[0].Spec.Template.Spec.NodeSelector).To(HaveKeyWithValue("pool", "a"))
		}).Should(Succeed())
		Expect(w.attemptsWithJobs()).To(Equal([]string{"1"}), "the learner runs on")
	})
})

var _ = Describe("The end of the object", func() {
	It("takes everything with it when it is deleted", func() {
		w := newEnv()
		run, _ := w.startedRun()
		Expect(kube.Delete(context.Background(), run)).To(Succeed())
		Eventually(func() string {
			output, err := kubectl(w.namespace, "get", "jobs,pods,services,configmaps,secrets", "-o", "name", "-l",
				v1alpha1.LabelRun)
			Expect(err).NotTo(HaveOccurred(), output)
			return output
		}).Should(BeEmpty())
	})

	It("comes ttlSecondsAfterFinished after the run's end, and not before", func() {
		w := newEnv()
		run, _ := w.startedRun(func(run *v1alpha1.TrainingRun) { run.Spec.TTLSecondsAfterFinished = new(int32(600)) })
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 1,
			Progress: progress(60)})
		w.eventually(run, func(g Gomega) { g.Expect(condition(run, v1alpha1.ConditionComplete)).To(Equal("True Completed")) })
		w.advance(590 * time.Second)
		Consistently(func() error { return kube.Get(context.Background(), client.ObjectKeyFromObject(run), run) }, "500ms",
			"50ms").Should(Succeed())
		w.advance(time.Minute)
		w.stop()
		w.startManager(nil) // A manager that starts looks at every run.
		Eventually(func() bool {
			return apierrors.IsNotFound(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run))
		}).Should(BeTrue())
	})
})

var _ = Describe("A budget that is reached", func() {
	It("suspends the run at a saved state, and raising it continues", func() {
		w := newEnv()
		run, first := w.startedRun(func(run *v1alpha1.TrainingRun) {
			run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "runs"}
			run.Spec.Budget = &v1alpha1.Budget{Tokens: new(int64(100))}
		})
		below, reached := progress(30), progress(31)
		below.Usage = contract.Usage{SampledTokens: 60, ReferenceTokens: 39}
		reached.Usage = contract.Usage{SampledTokens: 60, ReferenceTokens: 40}
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: below})
		w.eventually(run, func(g Gomega) {
			g.Expect(status.Steps(&run.Status)).To(Equal("30/60"))
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("False AsExpected"))
		})

		w.verdict(w.learner(run.Name, 1), contract.Verdict{
			Cause: contract.CauseDrained, Reason: v1alpha1.ReasonBudgetReached, Attempt: 1, Progress: reached,
		})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("True BudgetReached"))
		})
		Expect(message(run, v1alpha1.ConditionSuspended)).To(And(
			ContainSubstring("budget.tokens (100) is reached: 100 tokens are used"), ContainSubstring("Raise the limit")))
		Expect(run.Status.State).To(Equal(v1alpha1.StateSuspended))
		Expect(w.attemptsWithJobs()).To(BeEmpty())
		Expect(w.jobs(v1alpha1.RoleRollout)).To(BeEmpty())

		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.Budget.Tokens = new(int64(1000)) })
		w.attempt(run, 2, reached)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("False AsExpected"))
		})
		Expect(*run.Status.Restarts).To(BeZero())
	})
})

var _ = Describe("A budget in dollars of a model without a price", func() {
	It("is refused before the run begins, with the repair", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) {
			run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "runs"}
			run.Spec.Budget = &v1alpha1.Budget{USD: new(10.0)}
		})
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False SpecInvalid PriceUnknown"))
			g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring("Add the price to budget.prices"))
		})
		w.change(run, func(run *v1alpha1.TrainingRun) {
			run.Spec.Budget.Prices = []v1alpha1.ModelPrice{{Model: run.Spec.Model.Name, SampledUSDPerMillion: 1}}
		})
		w.eventually(run, func(g Gomega) { g.Expect(condition(run, v1alpha1.ConditionAccepted)).To(Equal("True Accepted")) })
	})
})
