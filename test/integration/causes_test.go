// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	apitracking "github.com/tinker-operator/tinker-operator/api/v1alpha1/tracking"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// markDisrupted marks a pod as the Kubernetes controllers do before they delete it, and deletes it.
func (w *env) markDisrupted(pod *corev1.Pod, reason string, ready corev1.ConditionStatus) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason},
			{Type: corev1.PodReady, Status: ready},
		}
		g.Expect(kube.Status().Update(context.Background(), pod)).To(Succeed())
	}).Should(Succeed())
	Expect(kube.Delete(context.Background(), pod)).To(Succeed())
}

var _ = Describe("The end of an attempt", func() {
	// ends runs an attempt to step 7, ends it, and checks its cause, the failures that it counts as, and that the next
	// one begins.
	ends := func(cause contract.Cause, failures int32, end func(w *env, pod *corev1.Pod)) {
		GinkgoHelper()
		w := newEnv()
		run, first := w.startedRun()
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(7)})
		w.advance(11 * time.Second)
		w.eventually(run, func(g Gomega) { g.Expect(status.Steps(&run.Status)).To(Equal("7/60")) })
		end(w, w.learner(run.Name, 1))
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.Attempts).To(HaveLen(2))
			g.Expect(run.Status.Attempts[1].Cause).To(Equal(string(cause)))
		})
		Expect(*run.Status.Attempts[1].ToStep).To(BeEquivalentTo(7))
		if failures == 0 {
			Expect(run.Status.FailuresSinceCheckpoint).To(Or(BeNil(), HaveValue(BeZero())))
		} else {
			Expect(*run.Status.FailuresSinceCheckpoint).To(Equal(failures))
		}
		Expect(*run.Status.Restarts).To(BeEquivalentTo(1))
		w.attempt(run, 2, progress(7))
		if failures == 0 {
			Eventually(w.attemptsWithJobs).Should(Equal([]string{"2"}), "Jobs of earlier attempts are deleted")
		} else {
			Consistently(w.attemptsWithJobs, "300ms", "50ms").Should(ConsistOf("1", "2"), "the Job of a crash stays for its log")
		}
		service := &corev1.Service{}
		Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: desired.ServiceName(run)},
			service)).To(Succeed())
		Expect(service.Spec.Selector).To(HaveKeyWithValue(v1alpha1.LabelAttempt, "2"))
		Expect(w.jobs(v1alpha1.RoleRollout)).To(HaveLen(1), "the workers run on")
	}

	It("is Crashed for an exit without a verdict, and counts", func() {
		ends(contract.CauseCrashed, 1, func(w *env, pod *corev1.Pod) { w.endLearner(pod, 2, "panic: oh") })
	})
	It("is Unknown for exit 0 without a verdict: a complete Job completes no run", func() {
		ends(contract.CauseUnknown, 1, func(w *env, pod *corev1.Pod) { w.endLearner(pod, 0, "") })
	})
	It("is OOMKilled when the kernel says so, and counts", func() {
		ends(contract.CauseOOMKilled, 1, func(w *env, pod *corev1.Pod) {
			Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(pod), pod)).To(Succeed())
			pod.Status.Phase = corev1.PodFailed
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "learner", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"},
			}}}
			Expect(kube.Status().Update(context.Background(), pod)).To(Succeed())
		})
	})
	It("is Disrupted when the pod is deleted, and costs nothing", func() {
		ends(contract.CauseDisrupted, 0, func(_ *env,
			pod *corev1.Pod) {
			Expect(kube.Delete(context.Background(), pod)).To(Succeed())
		})
	})
	It("is Disrupted when the pod is preempted, and costs nothing", func() {
		ends(contract.CauseDisrupted, 0, func(w *env, pod *corev1.Pod) {
			w.markDisrupted(pod, "PreemptionByScheduler", corev1.ConditionTrue)
		})
	})
	It("is NodeLost when the node is silent, while the pod still is there", func() {
		ends(contract.CauseNodeLost, 0, func(w *env, pod *corev1.Pod) {
			w.kubelet.set(func(k *kubelet) { k.holdDeleted = true })
			w.markDisrupted(pod, "DeletionByTaintManager", corev1.ConditionFalse)
			Eventually(func() error { return kube.Get(context.Background(), client.ObjectKeyFromObject(pod), pod) }).Should(
				Succeed())
			DeferCleanup(func() { w.kubelet.set(func(k *kubelet) { k.holdDeleted = false }) })
		})
	})
	It("is Drained when the learner was asked to end, and costs nothing", func() {
		ends(contract.CauseDrained, 0, func(w *env, pod *corev1.Pod) {
			w.verdict(pod, contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(7)})
		})
	})
	It("is Disrupted when somebody deletes the Job", func() {
		ends(contract.CauseDisrupted, 0, func(w *env, pod *corev1.Pod) {
			job := w.jobs(v1alpha1.RoleLearner)[0]
			Expect(kube.Delete(context.Background(), &job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(
				Succeed())
		})
	})
	It("is Fenced when the learner saw a higher attempt", func() {
		ends(contract.CauseFenced, 0, func(w *env, pod *corev1.Pod) {
			w.verdict(pod, contract.Verdict{Cause: contract.CauseFenced, Attempt: 1, Progress: progress(7)})
		})
	})
	It("is Stalled by the learner's own fresh words, and costs nothing", func() {
		ends(contract.CauseStalled, 0, func(w *env, pod *corev1.Pod) {
			w.learners.answer(w.learner("arithmetic", 1).Status.PodIP, contract.HeartbeatReply{Attempt: 1, Progress: progress(7),
				SecondsSinceProgress: 3601})
		})
	})

	It("is StartTimeout when the learner does not run in time", func() {
		w := newEnv()
		w.environment()
		run := w.create()
		w.learner(run.Name, 1)
		w.advance(901 * time.Second)
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.Attempts).To(HaveLen(2))
			g.Expect(run.Status.Attempts[1].Cause).To(Equal("StartTimeout"))
		})
		Expect(run.Status.FailuresSinceCheckpoint).To(BeNil())
		Eventually(w.attemptsWithJobs).Should(Equal([]string{"2"}))
	})

	It("waits for a draining pod on a node that answers", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.kubelet.set(func(k *kubelet) { k.holdDeleted = true })
		pod := w.learner(run.Name, 1)
		Expect(kube.Delete(context.Background(), pod)).To(Succeed())
		Consistently(func() []string { return w.attemptsWithJobs() }, "1s", "100ms").Should(Equal([]string{"1"}))
		w.learners.silence(first.ip)
		w.verdict(pod, contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(3)})
		w.kubelet.set(func(k *kubelet) { k.holdDeleted = false })
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.Attempts).To(HaveLen(2))
			g.Expect(run.Status.Attempts[1].Cause).To(Or(Equal("Drained"), Equal("Disrupted")))
		})
	})

	It("never follows from a learner that merely does not answer", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.learners.silence(first.ip)
		w.advance(time.Hour)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("Unknown Unreachable"))
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("Unknown Unreachable"))
		})
		w.advance(24 * time.Hour)
		Consistently(func() []string { return w.attemptsWithJobs() }, "1s", "100ms").Should(Equal([]string{"1"}))
	})

	It("never follows from an outage upstream", func() {
		w := newEnv()
		run, first := w.startedRun()
		for _, code := range []problem.Code{
			problem.Throttled, problem.PaymentRequired, problem.PausedCapacity, problem.PausedRateLimit,
			problem.EndpointUnreachable, problem.EndpointFailing,
		} {
			w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(1),
				Problems: []problem.Problem{{Code: code}}, SecondsSinceProgress: 99999})
			w.advance(11 * time.Second)
			want := "False " + problem.Lookup(code).Reason + " " + string(code)
			if code == problem.Throttled {
				want = "True EndpointBusy Throttled"
			}
			w.eventually(run, func(g Gomega) { g.Expect(coded(run, v1alpha1.ConditionProgressing)).To(Equal(want)) })
			Expect(message(run, v1alpha1.ConditionProgressing)).To(ContainSubstring("endpoint"))
		}
		Expect(run.Status.Attempts).To(HaveLen(1))
	})
})

var _ = Describe("An environment that no worker can play", func() {
	It("is named with its evidence and the repair, costs no attempt, and recovers by itself", func() {
		w := newEnv()
		run, first := w.startedRun()
		reply := contract.HeartbeatReply{
			Attempt: 1, Progress: progress(1), SecondsSinceProgress: 99999,
			Problems: []problem.Problem{{Code: problem.EnvironmentUnavailable, Evidence: `"arithmetic"`}},
			Unavailable: []contract.UnavailableEnvironment{{Name: "arithmetic",
				Problem: "POST /create_session: connection refused"}},
		}
		w.learners.answer(first.ip, reply)
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False EnvironmentNotUsable ServersUnavailable"))
			g.Expect(coded(run, v1alpha1.ConditionProgressing)).To(Equal("False EnvironmentNotUsable EnvironmentUnavailable"))
		})
		Expect(message(run, v1alpha1.ConditionAccepted)).To(And(
			ContainSubstring(`("arithmetic": `), ContainSubstring("connection refused"),
			ContainSubstring("the run waits for it"), ContainSubstring("Repair the server")))

		reply.Problems, reply.Unavailable[0].Skipped = nil, true
		w.learners.answer(first.ip, reply)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("True Progressing"))
			g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring("trains on its other environments"))
		})

		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(2)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionAccepted)).To(Equal("True Accepted"))
		})
		Expect(run.Status.Attempts).To(HaveLen(1))
	})
})

var _ = Describe("What ends a run", func() {
	It("is refused configuration, with the verdict's own reason and repair", func() {
		for reason, want := range map[string]string{
			"ModelUnknown": "ModelUnknown", "NoUsableCheckpoint": "NoUsableCheckpoint",
			"SomethingNew": "UnknownProblem",
		} {
			w := newEnv()
			run, _ := w.startedRun()
			w.verdict(w.learner(run.Name, 1), contract.Verdict{
				Cause: contract.CauseConfigRejected, Reason: problem.Code(reason), Message: "Do this about it.", Attempt: 1,
				Progress: progress(2),
			})
			w.eventually(run, func(g Gomega) { g.Expect(condition(run, v1alpha1.ConditionFailed)).To(Equal("True " + want)) })
			told := "Do this about it."
			if want == "UnknownProblem" {
				told = "A program of another version reports a problem that this version of the operator does not know " +
					"(SomethingNew: Do this about it.)."
			}
			Expect(message(run, v1alpha1.ConditionFailed)).To(Equal(told))
			Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("True " + want))
			Expect(run.Status.State).To(Equal(v1alpha1.StateFailed))
			Expect(run.Status.Attempts).To(HaveLen(1))
		}
	})

	It("is a used-up restart budget at one step, and retry continues the run", func() {
		w := newEnv()
		run, _ := w.startedRun(func(run *v1alpha1.TrainingRun) { run.Spec.FailurePolicy.MaxRestarts = new(int32(2)) })
		for attempt := int32(1); attempt <= 3; attempt++ {
			if attempt > 1 {
				w.advance(time.Minute)
				w.attempt(run, attempt, progress(0))
			}
			w.endLearner(w.learner(run.Name, attempt), 1, "")
			w.awaitEnd(run, attempt)
		}
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionFailed)).To(Equal("True RestartsExhausted NoProgress"))
		})
		Expect(message(run, v1alpha1.ConditionFailed)).To(ContainSubstring("at step 0"))
		started := run.Status.StartTime
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.RetryGeneration = new(int32(1)) })
		w.attempt(run, 4, progress(1))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionFailed)).To(Equal("False AsExpected"))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
			g.Expect(run.Status.CompletionTime).To(BeNil())
		})
		Expect(*run.Status.ObservedRetryGeneration).To(BeEquivalentTo(1))
		Expect(run.Status.StartTime).To(Equal(started))
		lower := run.DeepCopy()
		lower.Spec.RetryGeneration = new(int32(0))
		Expect(kube.Update(context.Background(), lower)).To(MatchError(ContainSubstring("can only grow")))
	})

	It("is not a refused key: the run waits for another", func() {
		w := newEnv()
		run, _ := w.startedRun()
		refuse := func(attempt int32) {
			w.verdict(w.learner(run.Name, attempt), contract.Verdict{
				Cause: contract.CauseUpstream, Reason: "KeyRefused", Message: "401", Attempt: attempt,
				Progress: contract.Progress{Phase: contract.PhaseOpening},
			})
			w.awaitEnd(run, attempt)
			w.eventually(run, func(g Gomega) {
				g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("False KeyRefused"))
				g.Expect(condition(run, v1alpha1.ConditionReady)).To(Equal("False KeyRefused"))
				switch {
				case attempt <= 2:
					g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"),
						"the grace period is two minutes")
				case attempt >= 4:
					g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("True KeyRefused"))
				}
			})
		}
		workers := w.rolloutJob(nil)
		for attempt := int32(1); attempt <= 8; attempt++ {
			refuse(attempt)
			Consistently(func() []string { return w.attemptsWithJobs() }, "300ms",
				"100ms").Should(Equal([]string{fmt.Sprint(attempt)}))
			Expect(w.rolloutJob(nil).UID).To(Equal(workers.UID), "a wait makes no workers")
			w.advance(46 * time.Second)
		}
		w.attempt(run, 9, progress(3))
		replaced := w.rolloutJob(workers)
		Expect(replaced.Annotations[v1alpha1.AnnotationRunFile]).To(HaveSuffix("-9"),
			"workers have the key that their pods began with")
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
			g.Expect(run.Status.Attempts).To(HaveLen(2))
		})
		Expect(run.Status.Attempts[1].Count).To(BeEquivalentTo(8))
		Expect(condition(run, v1alpha1.ConditionFailed)).To(Equal("False AsExpected"))
	})

	It("is a used-up restart budget, which a new step's checkpoint refills", func() {
		w := newEnv()
		run, _ := w.startedRun(func(run *v1alpha1.TrainingRun) {
			run.Spec.FailurePolicy.MaxRestarts = new(int32(1))
			run.Spec.Checkpoints.Rolling.EverySteps = new(int64(10))
		})
		at := func(step, checkpoint int64) contract.Progress {
			p := progress(step)
			p.Checkpoints[0] = contract.Checkpoint{Step: checkpoint, State: "tinker://model/weights/c", Attempt: 1}
			return p
		}
		// crash runs an attempt to a step with a checkpoint, and crashes it there.
		crash := func(attempt int32, p contract.Progress) {
			if attempt > 1 {
				w.attempt(run, attempt, p)
			}
			w.learners.answer(w.learner(run.Name, attempt).Status.PodIP, contract.HeartbeatReply{Attempt: attempt, Progress: p})
			w.eventually(run, func(g Gomega) { g.Expect(*run.Status.Step).To(Equal(p.Step)) })
			w.endLearner(w.learner(run.Name, attempt), 1, "")
			w.eventually(run, func(g Gomega) {
				g.Expect(run.Status.Attempts[len(run.Status.Attempts)-int(attempt)].Cause).To(Equal("Crashed"))
			})
		}
		crash(1, at(1, 0))
		Expect(*run.Status.FailuresSinceCheckpoint).To(BeEquivalentTo(1))
		crash(2, at(12, 10))
		Expect(*run.Status.FailuresSinceCheckpoint).To(BeEquivalentTo(1), "the one before the checkpoint is forgotten")
		crash(3, at(14, 10))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionFailed)).To(Equal("True RestartsExhausted"))
		})
	})
})

var _ = Describe("A learner that cannot start", func() {
	waitingFor := func(reason, words string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "learner", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason,
				Message: words}},
		}}}}
	}
	DescribeTable("is reported with its cause and the repair",
		func(pod *corev1.Pod, code problem.Code, repair string) {
			w := newEnv()
			w.environment()
			run := w.create()
			found := w.learner(run.Name, 1)
			found.Status.Phase = corev1.PodPending
			found.Status.ContainerStatuses, found.Status.Conditions = pod.Status.ContainerStatuses,
				slices.Clone(pod.Status.Conditions)
			found.Status.InitContainerStatuses = pod.Status.InitContainerStatuses
			for i := range found.Status.Conditions {
				found.Status.Conditions[i].LastTransitionTime = metav1.NewTime(w.clock.now())
			}
			Expect(kube.Status().Update(context.Background(), found)).To(Succeed())
			w.advance(11 * time.Second)
			w.eventually(run, func(g Gomega) {
				g.Expect(coded(run, v1alpha1.ConditionPodsReady)).To(Equal("False " + shows(code)))
				g.Expect(coded(run, v1alpha1.ConditionReady)).To(Equal("False " + shows(code)))
				g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
			})
			Expect(run.Status.Attempts).To(HaveLen(1))
			w.advance(3 * time.Minute)
			w.eventually(run, func(g Gomega) {
				g.Expect(coded(run, v1alpha1.ConditionStalled)).To(Equal("True " + shows(code)))
				g.Expect(coded(run, v1alpha1.ConditionReady)).To(Equal("False " + shows(code)))
			})
			Expect(strings.ReplaceAll(message(run, v1alpha1.ConditionPodsReady), w.namespace,
				"NS")).To(ContainSubstring(repair))
		},
		Entry("a missing Secret", waitingFor("CreateContainerConfigError", `secret "tinker" not found`),
			problem.SecretNotFound,
			`("tinker" in namespace "NS"). Create the Secret, or correct tinker.apiKeySecretKeyRef.`),
		Entry("a missing key", waitingFor("CreateContainerConfigError",
			`couldn't find key TINKER_API_KEY in Secret ns/tinker`), problem.SecretKeyNotFound,
			`(key "TINKER_API_KEY" of Secret "tinker"). Add the key to the Secret, or correct tinker.apiKeySecretKeyRef.`),
		Entry("an image that cannot be pulled", waitingFor("ImagePullBackOff", `Back-off pulling image "x"`),
			problem.ImagePullFailed,
			`An image cannot be pulled ("tinker-operator:test"). Repair the registry, or correct podOverrides[target=Learner].image`),
		Entry("a sidecar that fails again and again",
			&corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
				Name: "proxy", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3,
					Message: "proxy: no route"}},
			}}}}, problem.InitContainerFailed,
			`("proxy" exited with code 3; its log ends: proxy: no route). Correct podOverrides[target=Learner].initContainers`),
		Entry("a pod that fits nowhere", &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
			Message: `persistentvolumeclaim "runs" not found`,
		}}}}, problem.ClaimNotFound,
			`("runs" in namespace "NS"). Create the claim, or correct podOverrides[target=Learner].volumes.`),
	)
})

var _ = Describe("A tracking service that refuses the run", func() {
	It("is named with the repair, stops nothing, and recovers by itself", func() {
		w := newEnv()
		run, first := w.startedRun(func(run *v1alpha1.TrainingRun) {
			run.Spec.Tracking = &apitracking.Tracking{WandB: &apitracking.WandB{
				Project: "p", APIKeySecretKeyRef: ref.SecretKey{Name: "missing", Key: "K"},
			}}
		})
		reply := contract.HeartbeatReply{Attempt: 1, Progress: progress(1), Tracking: []tracking.Problem{
			{Service: "wandb", Reason: "KeyMissing", Message: "The Secret does not exist: create it"},
		}}
		w.learners.answer(first.ip, reply)
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionRecording)).To(Equal("False TrackerRefused KeyMissing"))
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("True Progressing"))
			g.Expect(condition(run, v1alpha1.ConditionReady)).To(Equal("True Progressing"))
		})
		Expect(message(run, v1alpha1.ConditionRecording)).To(Equal("wandb: The Secret does not exist: create it. The run " +
			"continues meanwhile."))

		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(2)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionRecording)).To(Equal("True Recording"))
		})
		Expect(run.Status.Attempts).To(HaveLen(1))
	})
})
