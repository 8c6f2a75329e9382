// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// generatedRole returns the role that is generated from the markers of the controllers.
func generatedRole() *rbacv1.ClusterRole {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.ClusterRole{}
	Expect(yaml.UnmarshalStrict(data, role)).To(Succeed())
	return role
}

var _ = Describe("The manager's role", func() {
	It("permits only the creation of Secrets and has no wildcards", func() {
		for _, rule := range generatedRole().Rules {
			Expect(rule.Verbs).NotTo(ContainElement("*"))
			Expect(rule.Resources).NotTo(ContainElement("*"))
			if len(rule.Resources) > 0 && rule.Resources[0] == "secrets" {
				Expect(rule.Resources).To(HaveLen(1))
				Expect(rule.Verbs).To(Equal([]string{"create"}))
			}
		}
	})

	It("is enough, in one namespace, for a run from start to end", func() {
		w := emptyEnv()
		ctx := context.Background()
		w.startManager(&managerOptions{as: w.managerWith(generatedRole().Rules), identity: "system"})

		run, first := w.startedRun(func(run *v1alpha1.TrainingRun) { run.Spec.TTLSecondsAfterFinished = new(int32(60)) })
		for step := int64(1); step < 3; step++ {
			w.learners.record(first.ip, stepRecord(step, "a"))
			Eventually(func() []int64 { return w.historySteps(run) }).Should(HaveLen(int(step)),
				"the history is created, then updated")
			w.clock.advance(time.Minute)
		}
		for attempt := int32(1); attempt < 4; attempt++ {
			Expect(kube.Delete(ctx, w.learner(run.Name, attempt))).To(Succeed())
			w.awaitEnd(run, attempt)
			w.advance(time.Minute)
			w.attempt(run, attempt+1, progress(int64(attempt)))
		}
		Expect(w.leaseHolder()).To(Equal("system"))
		Eventually(func() int { return len(w.jobs(v1alpha1.RoleRollout)) }).Should(Equal(1))
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.Rollouts.Workers = new(int32(3)) })
		Eventually(func() int32 { return *w.jobs(v1alpha1.RoleRollout)[0].Spec.Parallelism }).Should(BeEquivalentTo(3))
		w.verdict(w.learner(run.Name, 4), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 4,
			Progress: progress(60)})
		w.eventually(run, func(g Gomega) { g.Expect(condition(run, v1alpha1.ConditionComplete)).To(Equal("True Completed")) })
		Eventually(func() []string { return w.eventReasons(run) }).Should(ContainElements("AttemptStarted", "AttemptEnded",
			"Completed"))
		w.advance(2 * time.Minute)
		Eventually(func() error {
			if err := w.touch(run); err != nil {
				return err
			}
			return kube.Get(ctx, client.ObjectKeyFromObject(run), run)
		}).Should(MatchError(ContainSubstring("not found")))
	})
})
