// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

var _ = Describe("A started run", func() {
	DescribeTable("keeps what decides the weights",
		func(field string, change func(*v1alpha1.TrainingRun)) {
			w := emptyEnv()
			run := w.create()
			change(run)
			Expect(kube.Update(context.Background(), run)).To(Succeed(), "before the start all may change")
			now := metav1.Now()
			run.Status.StartTime = &now
			Expect(kube.Status().Update(context.Background(), run)).To(Succeed())
			fresh := w.newRun()
			fresh.ResourceVersion = run.ResourceVersion
			run.Spec, fresh.Spec = fresh.Spec, run.Spec
			err := kube.Update(context.Background(), run)
			Expect(err).To(MatchError(ContainSubstring(field + ": Forbidden: ")))
			Expect(err).To(MatchError(ContainSubstring("create another run")))
			if field == "spec.environments" || field == "spec.algorithm" {
				Expect(err).To(MatchError(ContainSubstring("kubectl tinker fork " + run.Name + " --set " + field)))
			}
		},
		Entry("model", "spec.model", func(run *v1alpha1.TrainingRun) { run.Spec.Model.Name = "other" }),
		Entry("endpoint", "spec.tinker.baseURL", func(
			run *v1alpha1.TrainingRun) {
			run.Spec.Tinker.BaseURL = "http://other"
		}),
		Entry("endpoint, unset", "spec.tinker.baseURL", func(run *v1alpha1.TrainingRun) { run.Spec.Tinker.BaseURL = "" }),
		Entry("environments", "spec.environments", func(
			run *v1alpha1.TrainingRun) {
			run.Spec.Environments[0].GroupSize = 4
		}),
		Entry("shared prompts", "spec.environments",
			func(run *v1alpha1.TrainingRun) { run.Spec.Environments[0].Sampling.SharedPrompt = new(true) }),
		Entry("algorithm", "spec.algorithm", func(run *v1alpha1.TrainingRun) { run.Spec.Algorithm.TasksPerStep = 4 }),
		Entry("initFrom", "spec.initFrom", func(run *v1alpha1.TrainingRun) {
			run.Spec.InitFrom = &v1alpha1.InitFrom{Checkpoint: "tinker://a/weights/b", Optimizer: v1alpha1.OptimizerReset}
		}),
	)

	It("may change the token of its tokenizer, and not the tokenizer", func() {
		w := emptyEnv()
		run := w.newRun()
		run.Spec.Model.Tokenizer = &v1alpha1.Tokenizer{Repository: "org/gated"}
		Expect(kube.Create(context.Background(), run)).To(Succeed())
		now := metav1.Now()
		run.Status.StartTime = &now
		Expect(kube.Status().Update(context.Background(), run)).To(Succeed())
		run.Spec.Model.Tokenizer.TokenSecretKeyRef = &ref.SecretKey{Name: "hf", Key: "TOKEN"}
		Expect(kube.Update(context.Background(), run)).To(Succeed())
		run.Spec.Model.Tokenizer.Repository = "org/other"
		Expect(kube.Update(context.Background(), run)).To(MatchError(ContainSubstring("spec.model: Forbidden: ")))
		run.Spec.Model.Tokenizer = nil
		Expect(kube.Update(context.Background(), run)).To(MatchError(ContainSubstring("spec.model: Forbidden: ")))
	})

	DescribeTable("may change what decides the weights until that is fixed",
		func(change func(*v1alpha1.TrainingRun)) {
			w := emptyEnv()
			run := w.create()
			now := metav1.Now()
			run.Status.StartTime, run.Status.SettingsFixed = &now, new(false)
			Expect(kube.Status().Update(context.Background(), run)).To(Succeed())
			change(run)
			Expect(kube.Update(context.Background(), run)).To(Succeed())
			run.Status.SettingsFixed = new(true)
			Expect(kube.Status().Update(context.Background(), run)).To(Succeed())
			fresh := w.newRun()
			fresh.ResourceVersion = run.ResourceVersion
			run.Spec = fresh.Spec
			Expect(kube.Update(context.Background(), run)).To(MatchError(ContainSubstring("once a step is committed")))
		},
		Entry("model", func(run *v1alpha1.TrainingRun) { run.Spec.Model.Name = "other" }),
		Entry("endpoint", func(run *v1alpha1.TrainingRun) { run.Spec.Tinker.BaseURL = "http://other" }),
		Entry("environments", func(run *v1alpha1.TrainingRun) { run.Spec.Environments[0].GroupSize = 4 }),
		Entry("algorithm", func(run *v1alpha1.TrainingRun) { run.Spec.Algorithm.Seed = 5 }),
		Entry("initFrom", func(run *v1alpha1.TrainingRun) {
			run.Spec.InitFrom = &v1alpha1.InitFrom{Checkpoint: "tinker://a/weights/b", Optimizer: v1alpha1.OptimizerReset}
		}),
	)

	It("takes changes of all else", func() {
		w := emptyEnv()
		run := w.create()
		now := metav1.Now()
		run.Status.StartTime = &now
		Expect(kube.Status().Update(context.Background(), run)).To(Succeed())
		run.Spec.Rollouts.Workers = new(int32(9))
		run.Spec.Checkpoints.EverySteps = new(int64(5))
		run.Spec.Evaluation = nil
		run.Spec.Suspend = new(true)
		run.Spec.FailurePolicy.MaxRestarts = new(int32(9))
		run.Spec.Tinker.APIKeySecretKeyRef.Name = "other"
		run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "x"}
		Expect(kube.Update(context.Background(), run)).To(Succeed())
	})
})

var _ = Describe("kubectl", func() {
	It("applies the examples twice, the second time without a change, and diffs quietly", func() {
		w := emptyEnv()
		smallest := filepath.Join(GinkgoT().TempDir(), "smallest.yaml")
		Expect(os.WriteFile(smallest, []byte(smallestEnvironment+"---"+smallestRun), 0o600)).To(Succeed())
		for _, file := range []string{smallest, filepath.Join("testdata", "everything.yaml"),
			filepath.Join("..", "..", "config", "samples", "arithmetic.yaml"), filepath.Join("..", "..", "config", "samples",
				"own-data.yaml"), filepath.Join("..", "..", "config", "samples", "rlvr.yaml")} {
			output, err := kubectl(w.namespace, "apply", "-f", file)
			Expect(err).NotTo(HaveOccurred(), output)
			output, err = kubectl(w.namespace, "apply", "-f", file)
			Expect(err).NotTo(HaveOccurred(), output)
			for line := range strings.SplitSeq(strings.TrimSpace(output), "\n") {
				Expect(line).To(HaveSuffix(" unchanged"), file)
			}
			output, err = kubectl(w.namespace, "diff", "-f", file)
			Expect(err).NotTo(HaveOccurred(), output)
			output, err = kubectl(w.namespace, "apply", "--server-side", "--force-conflicts", "-f", file)
			Expect(err).NotTo(HaveOccurred(), output)
		}
	})

	It("may apply every sample, those for hosted services and with servers too", func() {
		w := emptyEnv()
		var files []string
		for _, pattern := range []string{"*.yaml", "hosted/*.yaml", "self-hosted/*.yaml"} {
			found, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", pattern))
			Expect(err).NotTo(HaveOccurred())
			Expect(found).NotTo(BeEmpty(), pattern)
			files = append(files, found...)
		}
		for _, file := range files {
			output, err := kubectl(w.namespace, "apply", "--dry-run=server", "-f", file)
			Expect(err).NotTo(HaveOccurred(), output)
			Expect(output).To(ContainSubstring("trainingrun.rl.tinker-operator.dev/"), file)
			Expect(output).NotTo(ContainSubstring("Warning"), file)
		}
	})

	It("shows the columns that people read", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.learners.answer(first.ip, heartbeatAt(20))
		w.eventually(run, func(g Gomega) { g.Expect(status.Steps(&run.Status)).To(Equal("20/60")) })
		output, err := kubectl(w.namespace, "get", "trun")
		Expect(err).NotTo(HaveOccurred(), output)
		lines := strings.Split(strings.TrimSpace(output), "\n")
		Expect(strings.Fields(lines[0])).To(Equal([]string{"NAME", "STATE", "STEP", "STEPS", "REWARD", "PASS@1", "CHECKPOINT",
			"RESTARTS", "AGE"}))
		Expect(strings.Fields(lines[1])[:8]).To(Equal([]string{"arithmetic", "Training", "20", "60", "0.7125", "0.7812", "20",
			"0"}))
		output, err = kubectl(w.namespace, "get", "trainingruns", "-o", "wide")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(strings.Fields(output)).To(ContainElements("MODEL", "WORKERS", "LINEAGE", "tinkersim/byte-136k", "ababababab"))
		output, err = kubectl(w.namespace, "get", "renv")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(strings.Fields(output)[:7]).To(Equal([]string{"NAME", "READY", "TASKS", "AGE", "arithmetic", "True", "1000"}))
		output, err = kubectl(w.namespace, "get", "tinker", "-o", "name")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(strings.Fields(output)).To(ConsistOf("trainingrun.rl.tinker-operator.dev/arithmetic",
			"rewardenvironment.rl.tinker-operator.dev/arithmetic"))
	})

	It("explains every field", func() {
		for _, kind := range []string{"trainingruns", "rewardenvironments"} {
			output, err := kubectl("default", "explain", kind, "--recursive", "--output=plaintext-openapiv2")
			Expect(err).NotTo(HaveOccurred(), output)
			Expect(output).NotTo(BeEmpty())
		}
		output, err := kubectl("default", "explain", "trun.spec.algorithm.lag")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(output).To(ContainSubstring("number of steps by which the sampling policy is older"))
	})
})
