// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

var _ = Describe("A prompt that the format of the model cannot express", func() {
	It("is reported before anything starts where the probe found tools, and the run starts once a dialect declares them",
		func() {
			w := newEnv()
			w.kubelet.set(func(k *kubelet) { k.probe.DeclaresTools = true })
			served := w.environment()
			run := w.create()
			w.eventually(run, func(g Gomega) {
				g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False SpecInvalid UnsupportedByFormat"))
				g.Expect(coded(run, v1alpha1.ConditionStalled)).To(Equal("True SpecInvalid UnsupportedByFormat"))
			})
			Expect(message(run, v1alpha1.ConditionAccepted)).To(And(ContainSubstring(`RewardEnvironment "arithmetic"`),
				ContainSubstring("role_colon_end"), ContainSubstring("interaction.toolUse.dialect"),
				ContainSubstring("HermesJSON")))
			Expect(run.Status.Attempts).To(BeEmpty())

			Eventually(func(g Gomega) {
				g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(served), served)).To(Succeed())
				served.Spec.Interaction = &environment.Interaction{ToolUse: &environment.ToolUse{Dialect: "HermesJSON"}}
				g.Expect(kube.Update(context.Background(), served)).To(Succeed())
			}).Should(Succeed())
			w.attempt(run, 1, progress(0))
			Expect(condition(run, v1alpha1.ConditionAccepted)).To(Equal("True Accepted"))
		})

	It("is named while workers wait for a repair, which costs no attempt", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(1), SecondsSinceProgress: 99999,
			Problems: []problem.Problem{{Code: problem.UnsupportedByFormat,
				Evidence: `environment "arithmetic": declaring tools: it requires interaction.toolUse.dialect`}}})
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionProgressing)).To(Equal("False SpecInvalid UnsupportedByFormat"))
		})
		Expect(message(run, v1alpha1.ConditionProgressing)).To(And(ContainSubstring("interaction.toolUse.dialect"),
			ContainSubstring("environments[].environmentRef"), ContainSubstring("model.renderer")))
		w.advance(time.Hour)
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionStalled)).To(Equal("True SpecInvalid UnsupportedByFormat"))
		})
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(2)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("True Progressing"))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
		})
		Expect(run.Status.Attempts).To(HaveLen(1))
	})
})
