// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

var _ = Describe("The check of the broker of an endpoint", func() {
	It("is shown, and given to runs, to which nothing is given that a learner reports", func() {
		w := emptyEnv()
		w.startManager(&managerOptions{endpoints: []string{w.namespace}})
		of := w.endpointOf()
		run, first := w.startedRun(w.named)
		file := w.runFile(run, 1)
		Expect(file.SharedCapabilities).To(BeNil(), "nothing was checked")
		Expect(w.jobs(v1alpha1.RoleLearner)[0].Spec.Template.Spec.Containers[0].Env).To(ContainElement(
			corev1.EnvVar{Name: contract.EndpointVariable, Value: of.Name}))
		checkedAt := w.clock.now().UTC().Truncate(time.Second)
		reported := w.progressWith(run, 7, "ttl")
		reported.Capabilities.CheckedAt, reported.Capabilities.Connection = checkedAt.Format(time.RFC3339), file.Connection
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: reported})
		w.advance(11 * time.Second)
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.Capabilities).NotTo(BeNil())
			g.Expect(run.Status.Capabilities.CheckedAt).NotTo(BeNil())
		})
		w.awaitReconciles()
		given := func(name string) *contract.Capabilities {
			GinkgoHelper()
			next := w.create(func(r *v1alpha1.TrainingRun) { r.Name = name }, w.named)
			w.startLearner(name, 1)
			return w.runFile(next, 1).SharedCapabilities
		}
		Expect(given("second")).To(BeNil(), "a learner's report, whose image may be a tenant's, is shared with no run")

		w.serve(1)
		check := endpoint.Check{Model: file.Fixed.Model.Name, TrainModules: []string{"Attention", "MLP", "Unembed"},
			Supported: []string{"gradient_sum", "seed"}, Ignored: []string{"ttl"}, Unsupported: []string{"protobuf"},
			CheckedAt: checkedAt, ClientVersion: "v1", Connection: w.settings().Connection}
		refused := endpoint.Check{Model: "unknown", Refused: "no such model"}
		w.report(endpoint.Report{Checks: []endpoint.Check{check, refused}})
		w.awaitEndpoint(of, func(g Gomega) {
			g.Expect(endpointCondition(of, v1alpha1.ConditionChecked)).To(Equal("False CheckRefused"))
			g.Expect(endpointCondition(of, v1alpha1.ConditionReady)).To(Equal("True Serving"))
		})
		w.report(endpoint.Report{Checks: []endpoint.Check{check}})
		w.awaitEndpoint(of, func(g Gomega) {
			g.Expect(endpointCondition(of, v1alpha1.ConditionChecked)).To(Equal("True Checked"))
			g.Expect(of.Status.Capabilities).To(HaveLen(1))
		})
		shown := of.Status.Capabilities[0]
		Expect(shown.Supported).To(Equal([]string{"gradient_sum", "seed"}))
		Expect(shown.TrainModules).To(Equal([]v1alpha1.TrainModule{"Attention", "MLP", "Unembed"}))
		Expect(shown.CheckedAt.Time).To(BeTemporally("==", checkedAt))
		w.awaitReconciles()
		Expect(given("third")).To(Equal(&contract.Capabilities{BaseURL: file.Fixed.BaseURL, Model: file.Fixed.Model.Name,
			Supported: []string{"gradient_sum", "seed"}, Ignored: []string{"ttl"}, Unsupported: []string{"protobuf"},
			ClientVersion: "v1", Connection: check.Connection,
			SharedFrom: &contract.SharedCheck{Name: of.Name, CheckedAt: checkedAt.Format(time.RFC3339)}}))

		before := of.DeepCopy()
		of.Annotations = map[string]string{v1alpha1.AnnotationCheckAgain: "the server was upgraded"}
		Expect(kube.Patch(context.Background(), of, client.MergeFrom(before))).To(Succeed())
		Eventually(func() string {
			w.advance(time.Second)
			return w.settings().Connection
		}).ShouldNot(Equal(check.Connection))
		Expect(given("fourth")).To(BeNil(), "it is to be checked again")
		Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(of), of)).To(Succeed())
		Expect(of.Status.Capabilities).To(HaveLen(1), "it is shown until the broker has checked again")
	})
})
