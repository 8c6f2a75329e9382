// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build sandbox

package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// startSandboxController runs the controller of agent-sandbox that hack/agent-sandbox/sandbox has built.
func startSandboxController() {
	GinkgoHelper()
	file, err := os.Create(filepath.Join(GinkgoT().TempDir(), "agent-sandbox-controller.log"))
	Expect(err).NotTo(HaveOccurred())
	program := exec.Command(filepath.Join("..", "..", ".cluster", "bin", "agent-sandbox-controller"),
		"--kubeconfig="+kubeconfig, "--extensions", "--leader-elect=false", "--enable-webhook=false",
		"--metrics-bind-address=0", "--health-probe-bind-address=0")
	program.Stdout, program.Stderr = file, file
	Expect(program.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
		if log, err := os.ReadFile(file.Name()); err == nil && CurrentSpecReport().Failed() {
			AddReportEntry("the log of agent-sandbox", string(log[max(0, len(log)-20000):]))
		}
	})
}

// poolPods lists the pods of a pool, and of the sandboxes that were taken from it.
func (w *env) poolPods() []corev1.Pod {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(kube.List(context.Background(), &pods, client.InNamespace(w.namespace))).To(Succeed())
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return len(pod.OwnerReferences) == 0 || pod.OwnerReferences[0].Kind != "Sandbox"
	})
}

// runPoolPods starts the pods of a pool.
func (w *env) runPoolPods() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			var pods corev1.PodList
			if kube.List(ctx, &pods, client.InNamespace(w.namespace)) != nil {
				continue
			}
			for i := range pods.Items {
				pod := &pods.Items[i]
				if len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].Kind == "Sandbox" &&
					pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil {
					_ = run(ctx, pod, "runner", w.kubelet.address(), time.Now())
				}
			}
		}
	}()
	DeferCleanup(func() { cancel(); <-done })
}

var _ = Describe("The controller of agent-sandbox", Ordered, func() {
	It("gives a run the pods that it keeps warm, with the digest of the run's token", func() {
		installed := installSandboxes()
		DeferCleanup(func() { removeKueue(installed) })
		startSandboxController()
		w := emptyEnv()
		w.startManager(&managerOptions{sharedServers: true, warmPools: true})
		w.runPoolPods()
		w.createPool()
		pool := &unstructured.Unstructured{}
		pool.SetGroupVersionKind(desired.PoolsVersion.WithKind("SandboxWarmPool"))
		Eventually(func(g Gomega) {
			g.Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "python"}, pool)).To(Succeed())
			ready, _, err := unstructured.NestedInt64(pool.Object, "status", "readyReplicas")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ready).To(BeEquivalentTo(2))
		}).Should(Succeed())
		warm := map[string]bool{}
		for _, pod := range w.poolPods() {
			Expect(pod.Annotations).NotTo(HaveKey(v1alpha1.AnnotationProgramToken))
			Expect(pod.Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
			warm[pod.Name] = true
		}

		w.environment(inWarmPool)
		run := w.create()
		w.attempt(run, 1, progress(7))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(HavePrefix("True"))
		})
		claimed := func() []corev1.Pod {
			return slices.DeleteFunc(w.poolPods(), func(pod corev1.Pod) bool {
				return pod.Labels[v1alpha1.LabelPoolProgram] == ""
			})
		}
		Eventually(claimed).Should(HaveLen(2))
		for _, pod := range claimed() {
			Expect(warm).To(HaveKey(pod.Name), "it began before the run")
			Expect(pod.Annotations[v1alpha1.AnnotationProgramToken]).To(HaveLen(64))
		}
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 1,
			Progress: progress(60)})
		Eventually(claimed).Should(BeEmpty())
		w.stop()
	})
})
