// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

var _ = Describe("The lifecycle of a run", func() {
	It("goes from a manifest to Complete, and records events", func() {
		w := newEnv()
		env := w.environment()
		Eventually(func(g Gomega) {
			g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(env), env)).To(Succeed())
			g.Expect(describe(env.Status.Conditions, v1alpha1.ConditionReady)).To(Equal("True Probed"))
		}).Should(Succeed())
		Expect(*env.Status.Tasks).To(BeEquivalentTo(1000))
		Expect(env.Status.Splits).To(HaveLen(2))
		Expect(env.Status.Digest).To(HaveLen(64))
		Expect(*env.Status.CanaryReward).To(Equal(1.0))

		run := w.create()
		first := w.attempt(run, 1, contract.Progress{Phase: contract.PhaseOpening})
		Expect(run.Status.State).To(Equal(v1alpha1.StatePreparing))
		Expect(run.Status.StartTime).NotTo(BeNil())
		Expect(run.Status.WorkerSelector).To(Equal(
			"rl.tinker-operator.dev/run=arithmetic,rl.tinker-operator.dev/role=rollout"))

		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(20)})
		w.advance(11 * time.Second)
		w.eventually(run, func(g Gomega) {
			g.Expect(status.Steps(&run.Status)).To(Equal("20/60"))
			g.Expect(run.Status.State).To(Equal(v1alpha1.StateTraining))
			g.Expect(condition(run, v1alpha1.ConditionReady)).To(Equal("True Progressing"))
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("True Progressing"))
			g.Expect(message(run, v1alpha1.ConditionProgressing)).To(ContainSubstring("continues from status.latestCheckpoint"))
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
			g.Expect(condition(run, v1alpha1.ConditionAccepted)).To(Equal("True Accepted"))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
		})
		Expect(*run.Status.Metric("env/all/reward/total")).To(Equal(0.7125))
		Expect(*run.Status.Metric("test/pass@1")).To(Equal(0.7812))
		Expect(status.Latest(&run.Status).Step).To(BeEquivalentTo(20))
		Expect(*run.Status.Workers).To(BeEquivalentTo(2))
		Expect(*run.Status.Usage.SampledTokens).To(BeEquivalentTo(2000))
		Expect(status.Latest(&run.Status).Lineage).To(Equal("ababababab"))

		pod := w.learner(run.Name, 1)
		w.verdict(pod, contract.Verdict{Cause: contract.CauseCompleted, Attempt: 1, Progress: progress(60)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionComplete)).To(Equal("True Completed"))
		})
		Expect(condition(run, v1alpha1.ConditionReady)).To(Equal("True Completed"))
		Expect(condition(run, v1alpha1.ConditionFailed)).To(Equal("False AsExpected"))
		Expect(run.Status.State).To(Equal(v1alpha1.StateSucceeded))
		Expect(run.Status.CompletionTime).NotTo(BeNil())
		Expect(status.Steps(&run.Status)).To(Equal("60/60"))
		Expect(run.Status.Attempts).To(HaveLen(1))
		Expect(run.Status.Attempts[0].Cause).To(Equal("Completed"))
		Eventually(func() int { return len(w.jobs(v1alpha1.RoleRollout)) }).Should(BeZero(), "workers of a finished run")
		Expect(w.attemptsWithJobs()).To(Equal([]string{"1"}), "the last learner stays for its log")
		Eventually(func() []string { return w.eventReasons(run) }).Should(ContainElements("AttemptStarted", "CheckpointSaved",
			"AttemptEnded", "Completed"))
	})

	It("evaluates without training, again after a learner that was lost", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) {
			run.Spec.Mode, run.Spec.Environments, run.Spec.Algorithm = v1alpha1.ModeEvaluate, nil, nil
			run.Spec.InitFrom = &v1alpha1.InitFrom{Checkpoint: "tinker://other:train:0/sampler_weights/000060"}
			run.Spec.Evaluation = &v1alpha1.Evaluation{Environments: []v1alpha1.EvaluationEnvironment{{
				EnvironmentUse: v1alpha1.EnvironmentUse{Name: "arithmetic", Sampling: playing.Sampling{MaxTokens: 16},
					EnvironmentRef: &v1alpha1.EnvironmentRef{Name: "arithmetic"}},
				SamplesPerTask: new(int32(4)), PassAt: []int32{1, 4},
			}}}
		})
		w.attempt(run, 1, contract.Progress{Phase: contract.PhaseEvaluating, WorkersSeen: 2,
			Lineage: strings.Repeat("ab", 32)})
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.State).To(Equal(v1alpha1.StateEvaluating))
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("True Progressing"))
			g.Expect(message(run, v1alpha1.ConditionProgressing)).To(HaveSuffix("A new attempt evaluates again."))
		})
		Expect(run.Status.Steps).To(BeNil())
		Expect(status.Steps(&run.Status)).To(BeEmpty())
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseCrashed, Attempt: 1, Message: "a crash"})
		w.awaitEnd(run, 1)
		w.clock.advance(time.Minute)
		w.attempt(run, 2, contract.Progress{Phase: contract.PhaseEvaluating, WorkersSeen: 2,
			Lineage: strings.Repeat("ab", 32)})
		low, high := 0.25, 0.75
		w.verdict(w.learner(run.Name, 2), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 2,
			Progress: contract.Progress{
				Phase: contract.PhaseDone, Metrics: map[string]float64{"test/pass@1": 0.5}, EvaluatedStep: new(int64(0)),
				Environments: []contract.EnvironmentMetrics{{Name: "arithmetic", PassAt1: new(0.5), Evaluation: []contract.Estimate{
					{Name: "pass@1", Value: 0.5, Low: &low, High: &high}, {Name: "judge_acc", Value: 0.25},
				}}},
			}})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionComplete)).To(Equal("True Completed"))
		})
		Expect(run.Status.State).To(Equal(v1alpha1.StateSucceeded))
		Expect(status.Steps(&run.Status)).To(BeEmpty())
		Expect(*run.Status.Metric("test/pass@1")).To(Equal(0.5))
		Expect(run.Status.Environments[0].Evaluation).To(Equal([]v1alpha1.Estimate{
			{Name: "pass@1", Value: 0.5, Low: &low, High: &high}, {Name: "judge_acc", Value: 0.25},
		}))
	})

	It("gives the pods what they are meant to have", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) { run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "runs"} })
		pod := w.learner(run.Name, 1)
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.Attempts).To(HaveLen(1)) })
		config := &corev1.ConfigMap{}
		Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: desired.RunFileName(run, 1)},
			config)).To(Succeed())
		file, err := contract.DecodeRunFile([]byte(config.Data[contract.RunFileName]))
		Expect(err).NotTo(HaveOccurred())
		Expect(file.Attempt).To(BeEquivalentTo(1))
		Expect(file.Run.UID).To(BeEquivalentTo(run.UID))
		Expect(file.Fixed.Environments[0].Splits).To(Equal([]contract.Split{{Name: "train", Shuffle: true, Tasks: 900}}))
		Expect(file.Evaluation.Environments[0].Splits).To(Equal([]contract.Split{{Name: "test", Tasks: 100}}))
		Expect(file.ArtifactsDir).To(Equal("/artifacts"))
		Expect(*config.Immutable).To(BeTrue())
		Expect(*pod.Spec.AutomountServiceAccountToken).To(BeFalse())
		Expect(*pod.Spec.TerminationGracePeriodSeconds).To(BeEquivalentTo(180))
		Expect(pod.Spec.RestartPolicy).To(Equal(corev1.RestartPolicyNever))

		service := &corev1.Service{}
		Eventually(func() error {
			return kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: desired.ServiceName(run)},
				service)
		}).Should(Succeed())
		Expect(service.Spec.Selector).To(Equal(desired.Service(run, 1).Spec.Selector))
		Expect(service.Spec.ClusterIP).NotTo(Equal(corev1.ClusterIPNone))
	})

	It("does not start before its environment is ready, and then at once", func() {
		w := newEnv()
		run := w.create()
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False EnvironmentNotUsable EnvironmentNotFound"))
			g.Expect(coded(run, v1alpha1.ConditionStalled)).To(Equal("True EnvironmentNotUsable EnvironmentNotFound"))
		})
		Expect(message(run, v1alpha1.ConditionAccepted)).To(
			ContainSubstring(`lacks a RewardEnvironment that the run uses ("arithmetic")`))
		Expect(run.Status.State).To(Equal(v1alpha1.StatePending))
		Expect(w.attemptsWithJobs()).To(BeEmpty())

		w.kubelet.set(func(k *kubelet) { k.holdProbes = true })
		w.environment()
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False EnvironmentNotUsable EnvironmentProbing"))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
		})
		w.kubelet.set(func(k *kubelet) { k.holdProbes = false })
		w.learner(run.Name, 1)
	})
})
