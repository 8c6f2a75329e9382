// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/namespacelease"
)

// release is a manager of a release of its own, with its own manager key.
func release(name string, key byte) *managerOptions {
	return &managerOptions{identity: name, key: bytes.Repeat([]byte{key}, 32)}
}

// leaseHolder returns the release that holds the namespace.
func (w *env) leaseHolder() string {
	GinkgoHelper()
	lease := &coordinationv1.Lease{}
	Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: namespacelease.Name},
		lease)).To(Succeed())
	return *lease.Spec.HolderIdentity
}

var _ = Describe("Two releases that watch one namespace", func() {
	It("do not fight: the second leaves the run alone and says so, and takes over when the first is gone", func() {
		w := emptyEnv()
		w.startManager(release("first", 1))
		run, first := w.trainingRun(1)
		stopFirst := w.stop
		w.startSecondManager(release("second", 2))
		Eventually(func() []string { return w.eventReasons(run) }).Should(ContainElement("ManagedByOtherManager"))
		from := w.statuses.at(run)
		for step := int64(2); step < 8; step++ {
			for range 5 { // A longer step of the clock would make the learner seem silent.
				w.clock.advance(4 * time.Second)
				w.learners.awaitReply()
			}
			w.reaches(run, first.ip, step)
		}
		Expect(transitions(w.statuses.since(from))).To(BeEmpty())
		Expect(w.attemptsWithJobs()).To(Equal([]string{"1"}))
		Expect(w.eventReasons(run)).NotTo(ContainElement("ManagerKeyChanged"))
		Expect(w.leaseHolder()).To(Equal("first"))

		By("uninstalling the first")
		stopFirst()
		w.clock.advance(namespacelease.Duration)
		Eventually(func(g Gomega) {
			g.Expect(w.touch(run)).To(Succeed())
			g.Expect(w.leaseHolder()).To(Equal("second"))
		}).Should(Succeed())
		Eventually(func() []string { return w.eventReasons(run) }).Should(ContainElement("ManagerKeyChanged"))
		w.attempt(run, 2, progress(8))
		w.startSecondManager(release("first", 1))
		from = w.statuses.at(run)
		Eventually(func() int { return w.events(run, "ManagedByOtherManager") }).Should(Equal(2),
			"the first release came back")
		Expect(transitions(w.statuses.since(from))).To(BeEmpty())
		Expect(run.Status.Attempts[0].Number).To(BeEquivalentTo(2))
		w.awaitWorkers(run)
	})
})

// events counts the events of a run with a reason.
func (w *env) events(run *v1alpha1.TrainingRun, reason string) int {
	GinkgoHelper()
	count := 0
	for _, found := range w.eventReasons(run) {
		if found == reason {
			count++
		}
	}
	return count
}
