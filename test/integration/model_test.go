// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

var _ = Describe("The model of a run", func() {
	DescribeTable("that is not known is not accepted, and nothing is started",
		func(change func(*v1alpha1.Model), says ...string) {
			w := newEnv()
			w.environment()
			run := w.create(func(run *v1alpha1.TrainingRun) { change(&run.Spec.Model) })
			w.eventually(run, func(g Gomega) {
				g.Expect(condition(run, v1alpha1.ConditionAccepted)).To(Equal("False ModelUnknown"))
				for _, words := range says {
					g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring(words))
				}
				g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("True ModelUnknown"))
				g.Expect(run.Status.Attempts).To(BeEmpty())
			})
		},
		Entry("by its name", func(m *v1alpha1.Model) { m.Name = "me/mine" }, "me/mine", "model.renderer", "model.tokenizer",
			"docs/models.md"),
		Entry("by a name that is misspelt", func(m *v1alpha1.Model) { m.Name = "Qwen/Qwen3-8b" }, "Qwen/Qwen3-8b",
			"did you mean Qwen/Qwen3-8B?"),
		Entry("by its renderer's name", func(m *v1alpha1.Model) {
			m.Renderer = &v1alpha1.Renderer{Name: "qwen33"}
		}, "qwen33", "qwen3_instruct"),
	)

	It("has renderer and tokenizer in the run file", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) { run.Spec.Model.Name = "Qwen/Qwen3-8B" })
		w.learner(run.Name, 1)
		var files corev1.ConfigMapList
		Expect(kube.List(context.Background(), &files, client.InNamespace(w.namespace),
			client.MatchingLabels{v1alpha1.LabelRun: run.Name})).To(Succeed())
		Expect(files.Items).To(HaveLen(1))
		file, err := contract.DecodeRunFile([]byte(files.Items[0].Data[contract.RunFileName]))
		Expect(err).NotTo(HaveOccurred())
		model := file.Fixed.Model
		Expect(model.Renderer).To(Equal("qwen3"))
		Expect(model.Tokenizer.Repository).To(Equal("Qwen/Qwen3-8B"))
		Expect(model.Tokenizer.SHA256).To(HaveLen(64))
	})
})
