// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// kubelet stands for all nodes of a namespace. By itself it runs workers, answers probes with a good result, and ends
// pods that are deleted; the spec decides what becomes of learners.
type kubelet struct {
	namespace string

	mu sync.Mutex
	// probe is the result of probes.
	probe contract.ProbeResult
	// holdWorkers leaves workers pending, holdProbes leaves probes pending.
	holdWorkers, holdProbes bool
	// workerExit makes workers end at once with this exit code and message. If workerJob is given, only its workers end.
	workerExit    int32
	workerMessage string
	workerJob     types.UID
	// holdDeleted leaves deleted pods alone, as a silent node does.
	holdDeleted bool
	addresses   int
}

// goodProbe returns the result of the built-in environment's probe.
func goodProbe() contract.ProbeResult {
	reward := 1.0
	return contract.ProbeResult{OK: true, CanaryReward: &reward, Splits: []contract.ProbeSplit{{Name: "test", Tasks: 100},
		{Name: "train", Tasks: 900}}}
}

func startKubelet(namespace string) *kubelet {
	k := &kubelet{namespace: namespace, probe: goodProbe()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			k.round(ctx)
			time.Sleep(30 * time.Millisecond)
		}
	}()
	DeferCleanup(func() { cancel(); <-done })
	return k
}

// set changes the behavior of the kubelet.
func (k *kubelet) set(change func(*kubelet)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(k)
}

// round looks at all pods once. Its errors come from races, which the next round settles.
func (k *kubelet) round(ctx context.Context) {
	var pods corev1.PodList
	if err := kube.List(ctx, &pods, client.InNamespace(k.namespace)); err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range pods.Items {
		pod := &pods.Items[i]
		role := pod.Labels[v1alpha1.LabelRole]
		switch {
		case pod.DeletionTimestamp != nil && !k.holdDeleted:
			_ = kube.Delete(ctx, pod, client.GracePeriodSeconds(0))
		case pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodPending:
		case role == v1alpha1.RoleRollout && k.workerExit != 0 && k.exits(pod):
			_ = terminate(ctx, pod, desired.RolloutContainer, k.workerExit, k.workerMessage, time.Now())
		case role == v1alpha1.RoleRollout && !k.holdWorkers:
			_ = run(ctx, pod, desired.RolloutContainer, "10.1.0.1", time.Now())
		case role == v1alpha1.RoleProbe && !k.holdProbes:
			message, err := contract.EncodeProbeResult(k.probe)
			if err == nil {
				_ = terminate(ctx, pod, desired.ProbeContainer, 0, string(message), time.Now())
			}
		}
	}
}

// exits reports whether a worker ends at once.
func (k *kubelet) exits(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return k.workerJob == "" || owner != nil && owner.UID == k.workerJob
}

// address returns a new address for a pod.
func (k *kubelet) address() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.addresses++
	return fmt.Sprintf("10.0.%d.%d", k.addresses/250, k.addresses%250+1)
}

// bind binds a pod to a node, so that only a kubelet can delete it.
func bind(ctx context.Context, pod *corev1.Pod) error {
	return kube.SubResource("binding").Create(ctx, pod,
		&corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "node"}})
}

func run(ctx context.Context, pod *corev1.Pod, container, ip string, at time.Time) error {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady,
		Status: corev1.ConditionTrue})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: container, Ready: true, Started: new(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}},
	}}
	return kube.Status().Update(ctx, pod)
}

func terminate(ctx context.Context, pod *corev1.Pod, container string, code int32, message string, at time.Time) error {
	reason := "Error"
	pod.Status.Phase = corev1.PodFailed
	if code == 0 {
		reason = "Completed"
		pod.Status.Phase = corev1.PodSucceeded
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: container,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, Message: message, FinishedAt: metav1.NewTime(at),
		}},
	}}
	return kube.Status().Update(ctx, pod)
}

// learner waits for the pod of an attempt.
func (w *env) learner(name string, attempt int32) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Eventually(func(g Gomega) {
		var pods corev1.PodList
		g.Expect(kube.List(context.Background(), &pods, client.InNamespace(w.namespace), client.MatchingLabels{
			v1alpha1.LabelRun: name, v1alpha1.LabelRole: v1alpha1.RoleLearner, v1alpha1.LabelAttempt: fmt.Sprint(attempt),
		})).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(1), "pods of attempt %d", attempt)
		*pod = pods.Items[0]
	}).Should(Succeed())
	return pod
}

// startLearner waits for an attempt's pod and runs it. It also returns the address to which the pod's heartbeats go.
func (w *env) startLearner(name string, attempt int32) (*corev1.Pod, string) {
	GinkgoHelper()
	pod := w.learner(name, attempt)
	ip := w.kubelet.address()
	Expect(bind(context.Background(), pod)).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		g.Expect(run(context.Background(), pod, desired.LearnerContainer, ip, w.clock.now())).To(Succeed())
	}).Should(Succeed())
	return pod, ip
}

// endLearner ends a learner with an exit code and a termination message.
func (w *env) endLearner(pod *corev1.Pod, code int32, message string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		g.Expect(terminate(context.Background(), pod, desired.LearnerContainer, code, message, w.clock.now())).To(Succeed())
	}).Should(Succeed())
}

// verdict ends a learner with a verdict and the exit code that goes with it.
func (w *env) verdict(pod *corev1.Pod, v contract.Verdict) {
	GinkgoHelper()
	message, err := contract.EncodeVerdict(v)
	Expect(err).NotTo(HaveOccurred())
	w.endLearner(pod, int32(v.Cause.ExitCode()), string(message))
}
