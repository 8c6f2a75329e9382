// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
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
		Entry("by its name", func(m *v1alpha1.Model) { m.Name = "mine" }, "mine", "model.renderer", "model.tokenizer",
			"docs/models.md"),
		Entry("by a name that is misspelt", func(m *v1alpha1.Model) { m.Name = "Qwen/Qwen3-8b" }, "Qwen/Qwen3-8b",
			"did you mean Qwen/Qwen3-8B?"),
		Entry("by its renderer's name", func(m *v1alpha1.Model) {
			m.Renderer = &v1alpha1.Renderer{Name: "qwen33"}
		}, "qwen33", "qwen3_instruct"),
	)

	It("that is not known has its own template and tokenizer, and Accepted says that nobody compared them", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) { run.Spec.Model.Name = "me/mine" })
		w.learner(run.Name, 1)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionAccepted)).To(Equal("True Accepted"))
			g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring("does not know the model me/mine"))
		})
		model := w.runFile(run, 1).Fixed.Model
		Expect(model.Renderer).To(Equal(contract.RendererTemplate))
		Expect(*model.Template).To(Equal(contract.Template{Repository: "me/mine"}))
		Expect(*model.Tokenizer).To(Equal(contract.Tokenizer{Repository: "me/mine"}))
	})

	It("waits for the ConfigMap of its chat template, and keeps its text", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) {
			run.Spec.Model.Renderer = &v1alpha1.Renderer{Template: &v1alpha1.Template{
				ConfigMapKeyRef: &ref.ConfigMapKey{Name: "templates", Key: "own"}}}
		})
		says := func(words string) {
			w.eventually(run, func(g Gomega) {
				g.Expect(condition(run, v1alpha1.ConditionAccepted)).To(Equal("False SpecInvalid"))
				g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring(words))
				g.Expect(run.Status.Attempts).To(BeEmpty())
			})
		}
		says(`ConfigMap "templates" does not exist`)
		templates := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "templates"},
			Data: map[string]string{"own": "a\n{% nosuch %}"}}
		Expect(kube.Create(context.Background(), templates)).To(Succeed())
		Expect(w.touch(run)).To(Succeed())
		says("line 2")
		templates.Data["own"] = "{{ messages }}"
		Expect(kube.Update(context.Background(), templates)).To(Succeed())
		Expect(w.touch(run)).To(Succeed())
		w.learner(run.Name, 1)
		Expect(w.runFile(run, 1).Fixed.Model.Template.Text).To(Equal("{{ messages }}"))
	})

	DescribeTable("has one renderer, of one kind", func(renderer v1alpha1.Renderer, says string) {
		w := newEnv()
		run := w.newRun(func(run *v1alpha1.TrainingRun) { run.Spec.Model.Renderer = &renderer })
		Expect(kube.Create(context.Background(), run)).To(MatchError(ContainSubstring(says)))
	},
		Entry("none", v1alpha1.Renderer{}, "give exactly one of name and template"),
		Entry("two", v1alpha1.Renderer{Name: "qwen3", Template: &v1alpha1.Template{Inline: "x"}},
			"give exactly one of name and template"),
		Entry("no template", v1alpha1.Renderer{Template: &v1alpha1.Template{}},
			"give exactly one of repository, configMapKeyRef and inline"),
		Entry("two templates", v1alpha1.Renderer{Template: &v1alpha1.Template{Inline: "x",
			Repository: &v1alpha1.TemplateRepository{}}}, "give exactly one of repository, configMapKeyRef and inline"),
		Entry("no digest", v1alpha1.Renderer{Template: &v1alpha1.Template{Inline: "x", SHA256: "y"}},
			"64 hexadecimal digits"),
	)

	It("has renderer and tokenizer in the run file", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) { run.Spec.Model.Name = "Qwen/Qwen3-8B" })
		w.learner(run.Name, 1)
		model := w.runFile(run, 1).Fixed.Model
		Expect(model.Renderer).To(Equal("qwen3"))
		Expect(model.Tokenizer.Repository).To(Equal("Qwen/Qwen3-8B"))
		Expect(model.Tokenizer.SHA256).To(HaveLen(64))
	})
})
