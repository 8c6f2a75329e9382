// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// queuedCPUGoal is the share of a core that queued runs may cost the manager.
const queuedCPUGoal = 0.05

// Kueue does not run, so no run is ever admitted. A run that waits costs the manager no timer and no write.
// SCALE_RUNS=500 is the measurement.
var _ = Describe("Many queued runs under one manager", Ordered, func() {
	BeforeAll(func() {
		installed := installKueue()
		DeferCleanup(func() { removeKueue(installed) })
	})

	It("are written once, and cost nothing while they wait", func() {
		count, measured := scale()
		w := emptyEnv()
		w.environment()
		for i := range count {
			w.create(inQueue, func(run *v1alpha1.TrainingRun) { run.Name = fmt.Sprintf("run-%04d", i) })
		}
		manager := newFleet(w).startManager()
		Eventually(func(g Gomega) {
			var runs v1alpha1.TrainingRunList
			g.Expect(kube.List(context.Background(), &runs, client.InNamespace(w.namespace))).To(Succeed())
			g.Expect(runs.Items).To(HaveLen(count))
			for i := range runs.Items {
				g.Expect(runs.Items[i].Status.State).To(Equal(v1alpha1.StateQueued), runs.Items[i].Name)
				g.Expect(workload(&runs.Items[i])).NotTo(BeNil())
				g.Expect(message(&runs.Items[i], v1alpha1.ConditionProgressing)).To(ContainSubstring("not considered"))
			}
		}, startGoal, time.Second).Should(Succeed())
		period := 10 * time.Second
		if measured {
			time.Sleep(10 * time.Second)
			period = 6 * time.Minute // A run that waits is looked at every five minutes.
		}
		written := (&fleet{env: w}).countWrites()
		cpu, began := manager.cpu(), time.Now()
		time.Sleep(period)
		share := (manager.cpu() - cpu).Seconds() / time.Since(began).Seconds()
		AddReportEntry("queued", ReportEntryVisibilityAlways, fmt.Sprintf(
			"runs queued, %d under one manager: %.3f of a core (goal: %.2f), %d status writes in %s (goal: 0)",
			count, share, queuedCPUGoal, written.Load(), period))
		Expect(written.Load()).To(BeZero(), "writes of the statuses of runs that wait")
	})
})
