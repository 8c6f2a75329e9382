// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

var errCrashed = errors.New("the manager has crashed")

// failAt starts a manager that blocks when it first reaches a point, until it is stopped. It writes nothing
// while it is blocked, like a manager that was killed. The channel that failAt returns is closed once it is blocked.
func (w *env) failAt(point string) chan struct{} {
	GinkgoHelper()
	died := make(chan struct{})
	w.startManager(&managerOptions{fault: func(at string) error {
		if at != point {
			return nil
		}
		close(died)
		<-w.stopping
		return errCrashed
	}})
	return died
}

// blindClient has a cache that never shows Jobs, like a cache with a delayed watch.
type blindClient struct {
	client.Client
	blind *atomic.Bool
}

func (b blindClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, jobs := list.(*batchv1.JobList); jobs && b.blind.Load() {
		return nil
	}
	return b.Client.List(ctx, list, options...)
}

var _ = Describe("A manager that crashes", func() {
	It("at attempt.written leaves a lost attempt, and never makes its Job later", func() {
		w := emptyEnv()
		died := w.failAt("attempt.written")
		w.environment()
		run := w.create()
		Eventually(died).Should(BeClosed())
		w.stop()
		Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
		Expect(run.Status.Attempts).To(HaveLen(1))
		Expect(run.Status.StartTime).NotTo(BeNil())
		Expect(w.attemptsWithJobs()).To(BeEmpty())

		w.startManager(nil)
		w.attempt(run, 2, progress(0))
		Expect(run.Status.Attempts[1].Cause).To(Equal("Disrupted"))
		Expect(run.Status.FailuresSinceCheckpoint).To(Or(BeNil(), HaveValue(BeZero())))
		Consistently(w.attemptsWithJobs, "500ms", "50ms").Should(Equal([]string{"2"}))
	})

	It("at job.created is followed by one that continues with the same attempt", func() {
		w := emptyEnv()
		died := w.failAt("job.created")
		w.environment()
		run := w.create()
		Eventually(died).Should(BeClosed())
		w.stop()
		Expect(w.attemptsWithJobs()).To(Equal([]string{"1"}))
		w.startManager(nil)
		w.attempt(run, 1, progress(0))
		Consistently(w.attemptsWithJobs, "500ms", "50ms").Should(Equal([]string{"1"}))
		Eventually(func() int { return len(w.jobs(v1alpha1.RoleRollout)) }).Should(Equal(1),
			"the next manager creates what is missing")
	})

	It("deletes a Job of a dead attempt that lands late", func() {
		w := newEnv()
		run, _ := w.startedRun()
		w.endLearner(w.learner(run.Name, 1), 75, "")
		w.attempt(run, 2, progress(0))
		Eventually(w.attemptsWithJobs).Should(Equal([]string{"2"}))
		late := desired.LearnerJob(run, 1, "link", desired.Settings{Image: "x"})
		Expect(kube.Create(context.Background(), late)).To(Succeed())
		Eventually(w.attemptsWithJobs).Should(Equal([]string{"2"}))
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.Attempts).To(HaveLen(2)) })
	})
})

var _ = Describe("A manager whose watch of Jobs is delayed", func() {
	It("asks the API server and does not start a second learner", func() {
		w := emptyEnv()
		var blind atomic.Bool
		blind.Store(true)
		w.startManager(&managerOptions{newClient: func(c *rest.Config, o client.Options) (client.Client, error) {
			inner, err := client.New(c, o)
			return blindClient{Client: inner, blind: &blind}, err
		}})
		// Probes need their Jobs to be seen; the environment is ready before the blindness matters.
		blind.Store(false)
		env := w.environment()
		Eventually(func(g Gomega) {
			g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(env), env)).To(Succeed())
			g.Expect(describe(env.Status.Conditions, v1alpha1.ConditionReady)).To(Equal("True Probed"))
		}).Should(Succeed())
		blind.Store(true)
		run := w.create()
		w.attempt(run, 1, progress(1))
		for range 5 {
			w.advance(time.Minute)
		}
		Consistently(w.attemptsWithJobs, "1s", "50ms").Should(Equal([]string{"1"}))
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.Attempts).To(HaveLen(1)) })
	})
})

// frozenClient shows learners' pods as they were, once it has some, like a cache with an interrupted watch.
type frozenClient struct {
	client.Client
	pods *atomic.Pointer[corev1.PodList]
}

func (f frozenClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if pods, ok := list.(*corev1.PodList); ok && f.pods.Load() != nil {
		f.pods.Load().DeepCopyInto(pods)
		return nil
	}
	return f.Client.List(ctx, list, options...)
}

var _ = Describe("A manager whose watch of pods is interrupted", func() {
	It("does not end the attempt of a learner that has started meanwhile", func() {
		w := emptyEnv()
		var frozen atomic.Pointer[corev1.PodList]
		w.startManager(&managerOptions{newClient: func(c *rest.Config, o client.Options) (client.Client, error) {
			inner, err := client.New(c, o)
			return frozenClient{Client: inner, pods: &frozen}, err
		}})
		w.environment()
		run := w.create()
		pod := w.learner(run.Name, 1)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("False Starting"))
		})
		frozen.Store(&corev1.PodList{Items: []corev1.Pod{*pod}})
		_, ip := w.startLearner(run.Name, 1)
		w.learners.answer(ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(1)})
		w.advance(16 * time.Minute)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
		})
		Expect(run.Status.Attempts).To(HaveLen(1))
		Expect(w.attemptsWithJobs()).To(Equal([]string{"1"}))
	})
})

var _ = Describe("A verdict that is lost", func() {
	It("is given again by the next attempt", func() {
		w := newEnv()
		run, _ := w.startedRun()
		w.stop()
		// The learner completes and its Job is deleted while no manager looks.
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 1,
			Progress: progress(60)})
		job := w.jobs(v1alpha1.RoleLearner)[0]
		Expect(kube.Delete(context.Background(), &job, client.PropagationPolicy("Background"))).To(Succeed())
		Eventually(w.attemptsWithJobs).Should(BeEmpty())
		Eventually(func() error {
			_, err := kubectl(w.namespace, "wait", "--for=delete", "pod", "-l", v1alpha1.LabelRole+"=learner", "--timeout=10s")
			return err
		}).Should(Succeed())
		w.startManager(nil)
		w.attempt(run, 2, progress(60))
		Expect(run.Status.Attempts[1].Cause).To(Equal("Disrupted"))
		w.verdict(w.learner(run.Name, 2), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 2,
			Progress: progress(60)})
		w.eventually(run, func(g Gomega) { g.Expect(condition(run, v1alpha1.ConditionComplete)).To(Equal("True Completed")) })
	})
})

var _ = Describe("A learner of an earlier attempt that still runs", func() {
	It("receives the newest attempt", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.kubelet.set(func(k *kubelet) { k.holdDeleted = true })
		DeferCleanup(func() { w.kubelet.set(func(k *kubelet) { k.holdDeleted = false }) })
		w.markDisrupted(w.learner(run.Name, 1), "DeletionByTaintManager", "False")
		w.attempt(run, 2, progress(0))
		Eventually(func() int32 {
			requests := w.learners.received(first.ip)
			return requests[len(requests)-1].Attempt
		}).Should(BeEquivalentTo(2))
	})
})
