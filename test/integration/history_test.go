// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/historymap"
)

func stepRecord(step int64, lineage string) contract.Record {
	return contract.Record{Step: step, Lineage: lineage, Attempt: 1, Time: 1000 + step,
		Metrics: map[string]float64{contract.MetricReward: float64(step)}}
}

// history returns the ConfigMap of a run's history, and the history; both are nil if the ConfigMap does not exist.
func (w *env) history(run *v1alpha1.TrainingRun) (*corev1.ConfigMap, *history.History) {
	GinkgoHelper()
	object := &corev1.ConfigMap{}
	err := kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: desired.HistoryName(run)}, object)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return nil, nil
	}
	Expect(err).NotTo(HaveOccurred())
	_, h, err := historymap.Read(context.Background(), kube, run)
	Expect(err).NotTo(HaveOccurred())
	return object, h
}

func (w *env) historySteps(run *v1alpha1.TrainingRun) []int64 {
	GinkgoHelper()
	var steps []int64
	if _, h := w.history(run); h != nil {
		for _, row := range h.Rows {
			steps = append(steps, row.Step)
		}
	}
	return steps
}

var _ = Describe("The history of a run", func() {
	It("has every step that the learner committed between two heartbeats, also after a restart of the manager", func() {
		w := newEnv()
		run, first := w.startedRun()
		var records []contract.Record
		var want []int64
		for step := int64(1); step <= 300; step++ {
			records, want = append(records, stepRecord(step, "a")), append(want, step)
		}
		w.learners.record(first.ip, records...)
		Eventually(func() []int64 { w.clock.advance(time.Second); return w.historySteps(run) }).Should(Equal(want))
		object, h := w.history(run)
		Expect(metav1.IsControlledBy(object, run)).To(BeTrue())
		Expect(h.Rows[41].Metrics).To(Equal(map[string]float64{contract.MetricReward: 42}))
		Expect(len(object.Data[history.DataKey])).To(BeNumerically("<", 256<<10))

		w.startManager(nil)
		before := len(w.learners.received(first.ip))
		w.learners.record(first.ip, stepRecord(301, "a"))
		Eventually(func() []int64 {
			w.clock.advance(time.Second)
			return w.historySteps(run)
		}).Should(Equal(append(want, 301)))
		for _, request := range w.learners.received(first.ip)[before+1:] {
			Expect(request.KnownRecords).To(BeNumerically(">=", 300), "the learner need not repeat what is stored")
		}
	})

	It("replaces the steps that a later attempt makes again", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.learners.record(first.ip, stepRecord(1, "a"), stepRecord(2, "a"), stepRecord(3, "a"))
		Eventually(func() []int64 {
			w.clock.advance(time.Second)
			return w.historySteps(run)
		}).Should(Equal([]int64{1, 2, 3}))

		Expect(kube.Delete(context.Background(), w.learner(run.Name, 1))).To(Succeed())
		w.awaitEnd(run, 1)
		w.clock.advance(time.Minute)
		w.annotate(run, 0)
		second := w.attempt(run, 2, progress(1))
		w.learners.record(second.ip, contract.Record{Step: 1, Lineage: "a", Resumed: true}, stepRecord(2, "b"))
		Eventually(func() []int64 { w.clock.advance(time.Second); return w.historySteps(run) }).Should(Equal([]int64{1, 2}))
		_, h := w.history(run)
		Expect(h.Rows[1].Lineage).To(Equal("b"))
	})

	It("is written seldom, and is made anew where somebody deletes it", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.clock.stop()
		w.learners.record(first.ip, stepRecord(1, "a"))
		Eventually(func() []int64 { return w.historySteps(run) }).Should(Equal([]int64{1}))
		w.learners.record(first.ip, stepRecord(2, "a"))
		w.learners.awaitReply()
		Expect(w.touch(run)).To(Succeed())
		w.learners.awaitReply()
		Expect(w.historySteps(run)).To(Equal([]int64{1}), "ten seconds have not passed")
		object, _ := w.history(run)
		Expect(kube.Delete(context.Background(), object)).To(Succeed())
		w.clock.advance(11 * time.Second)
		Eventually(func(g Gomega) {
			g.Expect(w.touch(run)).To(Succeed())
			g.Expect(w.historySteps(run)).To(Equal([]int64{2}))
		}).Should(Succeed())
	})

	It("is written at once for a run that ends, and is deleted with the run", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.clock.stop()
		w.learners.record(first.ip, stepRecord(1, "a"))
		Eventually(func() []int64 { return w.historySteps(run) }).Should(Equal([]int64{1}))
		done := progress(60)
		done.Phase = contract.PhaseDone
		w.learners.record(first.ip, stepRecord(2, "a"))
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: done})
		Eventually(func() []int64 { return w.historySteps(run) }).Should(Equal([]int64{1, 2}))
		Expect(kube.Delete(context.Background(), run)).To(Succeed())
		Eventually(func() []int64 { return w.historySteps(run) }).Should(BeNil())
	})
})
