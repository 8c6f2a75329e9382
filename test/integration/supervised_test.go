// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

const supervisedRun = `
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: TrainingRun
metadata: {name: sft}
spec:
  mode: Supervise
  model: {name: tinkersim/byte-136k, loraRank: 8}
  tinker:
    baseURL: http://tinkersim
    apiKeySecretKeyRef: {name: tinker, key: TINKER_API_KEY}
  supervised:
    dataset:
      jsonl: {configMapRef: {name: rows}}
      splits: [{name: test, source: rows.jsonl, take: 8}, {name: train, source: rows.jsonl, skip: 8}]
  algorithm:
    epochs: 2
    optimizer: {learningRate: 3.0e-4}
  evaluation:
    supervised: {}
`

var _ = Describe("A bad supervised run", func() {
	DescribeTable("is refused, with the field and the repair",
		refuses(supervisedRun),
		Entry("no rows", "spec: {supervised: null}", "give supervised.dataset"),
		Entry("no algorithm", "spec: {algorithm: null}", "mode Supervise needs supervised and algorithm"),
		Entry("rows of another mode", "spec: {mode: Train, algorithm: {tasksPerStep: 32}}", "set mode to Supervise"),
		Entry("environments", "spec: {environments: [{name: arithmetic, groupSize: 8, sampling: {maxTokens: 16}}]}",
			"remove environments"),
		Entry("tasksPerStep", "spec: {algorithm: {tasksPerStep: 32}}", "algorithm.tasksPerStep", "supervised.batchSize"),
		Entry("a loss", "spec: {algorithm: {loss: {name: PPO}}}", "algorithm.loss says", "remove it"),
		Entry("a baseline", "spec: {algorithm: {advantage: {baseline: None}}}", "algorithm.advantage says"),
		Entry("roles", "spec: {algorithm: {roles: [{name: judge, loss: {name: PPO}}]}}", "algorithm.roles says"),
		Entry("a penalty", "spec: {algorithm: {kl: {coefficient: 0.1}}}", "algorithm.kl says"),
		Entry("a lag", "spec: {algorithm: {lag: 1, loss: {name: PPO}}}", "algorithm.loss says"),
		Entry("substeps", "spec: {algorithm: {substeps: 2}}", "algorithm.substeps says"),
		Entry("a grouping", "spec: {algorithm: {grouping: Step}}", "algorithm.grouping says"),
		Entry("constant groups", "spec: {algorithm: {constantGroups: Drop}}", "algorithm.constantGroups says"),
		Entry("dropped groups", "spec: {algorithm: {onDroppedGroup: Shrink}}", "algorithm.onDroppedGroup says"),
		Entry("a prompt", "spec: {supervised: {dataset: {prompt: $(question)}}}", "spec.supervised.dataset", "fields:"),
		Entry("an unknown trainOn", "spec: {supervised: {trainOn: User}}", "spec.supervised.trainOn"),
		Entry("an empty batch", "spec: {supervised: {batchSize: 0}}", "spec.supervised.batchSize"),
		Entry("rows of one token", "spec: {supervised: {maxTokens: 1}}", "spec.supervised.maxTokens"),
		Entry("an empty evaluation", "spec: {evaluation: {supervised: null}}", "give evaluation.supervised"),
		Entry("an evaluation that inherits", "spec: {evaluation: {environments: [{name: a, inheritFrom: "+
			"a}]}}", "inheritFrom"),
		Entry("an optimizer of no decision", "spec: {initFrom: {checkpoint: 'tinker://a/weights/b'}}", "initFrom.optimizer"),
	)
	DescribeTable("is refused in another mode", refuses(smallestRun),
		Entry("no tasksPerStep", "spec: {algorithm: {tasksPerStep: null}}", "algorithm.tasksPerStep is needed"),
		Entry("held-out rows", "spec: {evaluation: {supervised: {}}}", "evaluation.supervised measures rows"),
	)
})

// supervise makes the smallest run a supervised one.
func supervise(run *v1alpha1.TrainingRun) {
	run.Spec.Mode, run.Spec.Environments = v1alpha1.ModeSupervise, nil
	run.Spec.Supervised = &v1alpha1.Supervised{Dataset: environment.Dataset{
		JSONL: &environment.JSONL{ConfigMapRef: &ref.ConfigMap{Name: "rows"}},
		Splits: []environment.DataSplit{{Name: "test", Source: "rows.jsonl", Take: new(int64(8))},
			{Name: "train", Source: "rows.jsonl", Skip: 8}},
	}}
	run.Spec.Algorithm = &algorithm.Algorithm{Epochs: 2, Optimizer: algorithm.Optimizer{LearningRate: 1e-4}}
	run.Spec.Evaluation = &v1alpha1.Evaluation{Supervised: &v1alpha1.SupervisedEvaluation{}}
}

// readRows is the progress of a learner that has read its rows.
func readRows(step int64) contract.Progress {
	p := progress(step)
	p.Steps, p.WorkersSeen, p.Environments = 12, 0, nil
	p.Metrics = map[string]float64{contract.MetricNLL: 0.5, contract.MetricHeldOutNLL: 0.75}
	p.Contents = &contract.DataContents{Sources: []contract.DataSource{{Name: "rows.jsonl",
		SHA256: strings.Repeat("a", 64), Rows: 800}}}
	return p
}

var _ = Describe("A supervised run", func() {
	It("has a learner that mounts its rows, and no workers", func() {
		w := newEnv()
		run := w.create(supervise)
		Expect(*run.Spec.Supervised.BatchSize).To(Equal(int32(128)))
		Expect(run.Spec.Supervised.TrainOn).To(Equal(v1alpha1.TrainOnAllAssistant))
		Expect(run.Spec.Supervised.Normalization).To(Equal(v1alpha1.NormalizationPerExample))
		learner := w.attempt(run, 1, readRows(0))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("True Progressing"))
			g.Expect(run.Status.Steps).To(HaveValue(Equal(int64(12))))
			g.Expect(run.Status.Dataset).NotTo(BeNil())
		})
		Expect(message(run, v1alpha1.ConditionPodsReady)).To(ContainSubstring("has no workers"))
		pod := w.jobs(v1alpha1.RoleLearner)[0].Spec.Template.Spec
		Expect(pod.Containers[0].Args).To(ContainElement(HavePrefix("--data-dir=")))
		Expect(pod.Containers[0].VolumeMounts).To(ContainElement(HaveField("MountPath",
			contract.DataDir+"/configmap/rows")))
		Expect(pod.Volumes).To(ContainElement(HaveField("ConfigMap", HaveField("LocalObjectReference",
			corev1.LocalObjectReference{Name: "rows"}))))
		file := w.runFile(run, 1)
		Expect(file.Contents).To(BeNil())
		Expect(file.Fixed.Supervised.BatchSize).To(Equal(128))
		Expect(file.Algorithm().Epochs).To(Equal(int64(2)))
		Expect(file.Checkpoints.KeepBestMetric).To(Equal(contract.MetricHeldOutNLL))

		By("waiting for rows that can be trained on")
		waiting := contract.HeartbeatReply{Attempt: 1, Progress: readRows(0), Problems: []problem.Problem{{
			Code: problem.RowsBlocked, Evidence: "row 9 of split train has no reply"}}}
		w.learners.answer(learner.ip, waiting)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("False InputBlocked"))
			g.Expect(message(run, v1alpha1.ConditionProgressing)).To(ContainSubstring("row 9 of split train has no reply"))
		})

		By("pinning what it has trained on")
		w.learners.answer(learner.ip, contract.HeartbeatReply{Attempt: 1, Progress: readRows(3)})
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.Step).To(HaveValue(Equal(int64(3))))
			g.Expect(run.Status.SettingsFixed).To(HaveValue(BeTrue()))
			g.Expect(run.Status.Metric(contract.MetricHeldOutNLL)).To(HaveValue(Equal(0.75)))
		})
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseCrashed, Attempt: 1, Message: "a crash",
			Progress: readRows(3)})
		w.awaitEnd(run, 1)
		w.clock.advance(time.Minute)
		w.attempt(run, 2, readRows(3))
		Expect(w.runFile(run, 2).Contents.Sources[0].SHA256).To(Equal(strings.Repeat("a", 64)))
		Expect(w.jobs(v1alpha1.RoleRollout)).To(BeEmpty())
		w.verdict(w.learner(run.Name, 2), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 2,
			Progress: readRows(12)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionComplete)).To(Equal("True Completed"))
		})
		Expect(w.jobs(v1alpha1.RoleRollout)).To(BeEmpty())
	})

	It("has workers where it evaluates on environments", func() {
		w := newEnv()
		w.environment()
		run := w.create(supervise, func(run *v1alpha1.TrainingRun) {
			run.Spec.Evaluation.Environments = []v1alpha1.EvaluationEnvironment{{
				EnvironmentUse: v1alpha1.EnvironmentUse{Name: "arithmetic", Sampling: playing.Sampling{MaxTokens: 16},
					EnvironmentRef: &v1alpha1.EnvironmentRef{Name: "arithmetic"}},
			}}
		})
		w.attempt(run, 1, readRows(0))
		Eventually(func() int { return len(w.jobs(v1alpha1.RoleRollout)) }).Should(Equal(1))
		file := w.runFile(run, 1)
		Expect(file.Evaluation.Environments).To(HaveLen(1))
		Expect(file.Evaluation.HeldOut).To(Equal([]contract.HeldOut{{Name: "test"}}))
	})
})
