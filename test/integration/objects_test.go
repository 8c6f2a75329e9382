// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

const smallestRun = `
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: TrainingRun
metadata: {name: arithmetic}
spec:
  model: {name: tinkersim/byte-136k, loraRank: 8}
  tinker:
    baseURL: http://tinkersim
    apiKeySecretKeyRef: {name: tinker, key: TINKER_API_KEY}
  environments:
  - name: arithmetic
    groupSize: 8
    sampling: {maxTokens: 16}
  algorithm:
    tasksPerStep: 32
    steps: 60
    optimizer: {learningRate: 3.0e-4}
  evaluation:
    everySteps: 20
`

const smallestEnvironment = `
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: RewardEnvironment
metadata: {name: arithmetic}
spec:
  dataset:
    arithmetic: {maxOperand: 99}
  reward:
    exactMatch: {}
`

// newRun returns the smallest run, changed.
func (w *env) newRun(changes ...func(*v1alpha1.TrainingRun)) *v1alpha1.TrainingRun {
	GinkgoHelper()
	run := &v1alpha1.TrainingRun{}
	Expect(yaml.UnmarshalStrict([]byte(smallestRun), run)).To(Succeed())
	run.Namespace = w.namespace
	for _, change := range changes {
		change(run)
	}
	return run
}

// create makes the run and returns it as the API server has it.
func (w *env) create(changes ...func(*v1alpha1.TrainingRun)) *v1alpha1.TrainingRun {
	GinkgoHelper()
	run := w.newRun(changes...)
	Expect(kube.Create(context.Background(), run)).To(Succeed())
	return run
}

// environment makes the smallest RewardEnvironment.
func (w *env) environment(changes ...func(*v1alpha1.RewardEnvironment)) *v1alpha1.RewardEnvironment {
	GinkgoHelper()
	env := &v1alpha1.RewardEnvironment{}
	Expect(yaml.UnmarshalStrict([]byte(smallestEnvironment), env)).To(Succeed())
	env.Namespace = w.namespace
	for _, change := range changes {
		change(env)
	}
	Expect(kube.Create(context.Background(), env)).To(Succeed())
	return env
}

// startedRun returns a run and the learner of its first attempt, which runs and answers.
func (w *env) startedRun(changes ...func(*v1alpha1.TrainingRun)) (*v1alpha1.TrainingRun, learnerPod) {
	GinkgoHelper()
	w.environment()
	run := w.create(changes...)
	return run, w.attempt(run, 1, progress(0))
}

// learnerPod is a learner that a spec runs.
type learnerPod struct {
	name string
	ip   string
}

// attempt runs the learner of an attempt, which answers with a progress.
func (w *env) attempt(run *v1alpha1.TrainingRun, number int32, p contract.Progress) learnerPod {
	GinkgoHelper()
	pod, ip := w.startLearner(run.Name, number)
	w.learners.answer(ip, contract.HeartbeatReply{Attempt: number, Progress: p})
	w.eventually(run, func(g Gomega) {
		g.Expect(run.Status.Attempts[0].Number).To(Equal(number))
		g.Expect(run.Status.Attempts[0].AnswerTime).NotTo(BeNil())
	})
	return learnerPod{name: pod.Name, ip: ip}
}

// awaitEnd waits until the status shows the end of an attempt. The Job controller may need a while to report that a pod
// has ended, and a clock that advances meanwhile advances before the pause that follows.
func (w *env) awaitEnd(run *v1alpha1.TrainingRun, number int32) {
	GinkgoHelper()
	w.eventually(run, func(g Gomega) {
		g.Expect(run.Status.Attempts).NotTo(BeEmpty())
		newest := run.Status.Attempts[0]
		g.Expect(newest.Number > number || newest.Number == number && newest.CompletionTime != nil).To(BeTrue(),
			"attempt %d has ended", number)
	})
}

// progress returns the progress of a learner after a step with a saved state.
func progress(step int64) contract.Progress {
	reward := 0.5
	return contract.Progress{
		Phase: contract.PhaseTraining, Step: step, Steps: 60, Cursor: step * 32, Lineage: strings.Repeat("ab", 32),
		Metrics:     map[string]float64{"env/all/reward/total": 0.712549, "test/pass@1": 0.78125},
		WorkersSeen: 2, TrainingSeconds: float64(step),
		Checkpoints: []contract.Checkpoint{{Step: step, Lineage: strings.Repeat("ab", 32),
			State:   fmt.Sprintf("tinker://model/weights/s%06d", step),
			Attempt: 1}},
		Environments: []contract.EnvironmentMetrics{{Name: "arithmetic", Reward: &reward}},
		Usage:        contract.Usage{SampledTokens: 100 * step},
	}
}

// eventually reads the run until the expectations hold. Time passes ten times as fast meanwhile.
func (w *env) eventually(run *v1alpha1.TrainingRun, expect func(Gomega)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		w.clock.advance(200 * time.Millisecond)
		g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
		expect(g)
	}).Should(Succeed())
}

// change changes the run's spec.
func (w *env) change(run *v1alpha1.TrainingRun, by func(*v1alpha1.TrainingRun)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
		by(run)
		g.Expect(kube.Update(context.Background(), run)).To(Succeed())
	}).Should(Succeed())
}

// condition returns a condition's status and reason, in one string.
func condition(run *v1alpha1.TrainingRun, kind string) string {
	return describe(run.Status.Conditions, kind)
}

// coded returns the status, the reason and the code of a run's condition.
func coded(run *v1alpha1.TrainingRun, kind string) string {
	return condition(run, kind) + " " + string(status.CodeOf(run.Status.Codes, kind))
}

// shows returns the reason and the code of a condition that shows a problem.
func shows(code problem.Code) string { return problem.Lookup(code).Reason + " " + string(code) }

func describe(conditions []metav1.Condition, kind string) string {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

// message returns a condition's message.
func message(run *v1alpha1.TrainingRun, kind string) string {
	c := meta.FindStatusCondition(run.Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return c.Message
}

// jobs are the Jobs of a role, by attempt for learners.
func (w *env) jobs(role string) []batchv1.Job {
	GinkgoHelper()
	var jobs batchv1.JobList
	Expect(kube.List(context.Background(), &jobs, client.InNamespace(w.namespace),
		client.MatchingLabels{v1alpha1.LabelRole: role})).To(Succeed())
	return jobs.Items
}

// attemptsWithJobs are the attempts that have a learner Job.
func (w *env) attemptsWithJobs() []string {
	GinkgoHelper()
	attempts := []string{}
	for _, job := range w.jobs(v1alpha1.RoleLearner) {
		attempts = append(attempts, job.Labels[v1alpha1.LabelAttempt])
	}
	return attempts
}

// eventReasons are the reasons of all events of an object.
func (w *env) eventReasons(of client.Object) []string {
	GinkgoHelper()
	var events eventsv1.EventList
	namespace := cmp.Or(of.GetNamespace(), metav1.NamespaceDefault)
	Expect(kube.List(context.Background(), &events, client.InNamespace(namespace))).To(Succeed())
	reasons := []string{}
	for _, e := range events.Items {
		if e.Regarding.UID == of.GetUID() {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}
