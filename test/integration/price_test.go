// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
)

var _ = Describe("Prices that change", func() {
	It("do not change the cost of what a run has used, whoever restarts", func() {
		w := newEnv()
		price := func(dollars float64) func(*v1alpha1.TrainingRun) {
			return func(run *v1alpha1.TrainingRun) {
				run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "runs"}
				run.Spec.Budget = &v1alpha1.Budget{USD: new(1000.0),
					Prices: []v1alpha1.ModelPrice{{Model: run.Spec.Model.Name, SampledUSDPerMillion: dollars}}}
			}
		}
		// cost is the report of a learner that knows a million tokens for each step, and prices all of them by its run file,
		// as if no record of earlier attempts were left.
		cost := func(run *v1alpha1.TrainingRun, attempt int32, step, unconfirmed int64) contract.Progress {
			p, prices := progress(step), w.runFile(run, attempt).Prices
			Expect(prices).NotTo(BeNil())
			p.Usage = contract.Usage{SampledTokens: step * 1e6, UnconfirmedTokens: unconfirmed}
			open := spending.Usage{UnconfirmedTokens: unconfirmed}
			p.SetCost(&spending.Cost{Answered: prices.USD(p.Usage) - prices.USD(open), Unconfirmed: prices.USD(open)})
			return p
		}
		costs := func(run *v1alpha1.TrainingRun, attempt int32, usd, unconfirmed float64) {
			w.eventually(run, func(g Gomega) {
				g.Expect(run.Status.Attempts[0].Number).To(Equal(attempt))
				g.Expect(run.Status.Usage).NotTo(BeNil())
				g.Expect(ptr.Deref(run.Status.Usage.EstimatedUSD, 0)).To(Equal(usd))
				g.Expect(ptr.Deref(run.Status.Usage.UnconfirmedUSD, 0)).To(Equal(unconfirmed))
			})
		}
		run, first := w.startedRun(price(8))
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: cost(run, 1, 2, 1e6)})
		costs(run, 1, 16+8, 8)
		w.stop()
		w.startManager(nil)
		costs(run, 1, 16+8, 8)

		digest := w.runFile(run, 1).SpecDigest
		w.change(run, price(2))
		w.endLearner(w.learner(run.Name, 1), 2, "panic\n")
		w.attempt(run, 2, cost(run, 2, 2, 0))
		costs(run, 2, 16, 0)
		file := w.runFile(run, 2)
		Expect(file.SpecDigest).To(Equal(digest))
		Expect(file.Prices.Policy.Sampled).To(Equal(2.0))
		w.stop()
		w.startManager(nil)
		costs(run, 2, 16, 0)
	})
})
