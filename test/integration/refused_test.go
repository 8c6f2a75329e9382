// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// quota limits a resource of the namespace. The controller that counts the used amount does not run here, so the quota
// counts from 0.
func (w *env) quota(name corev1.ResourceName, hard string) *corev1.ResourceQuota {
	GinkgoHelper()
	limits := corev1.ResourceList{name: resource.MustParse(hard)}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "quota"},
		Spec:       corev1.ResourceQuotaSpec{Hard: limits},
	}
	Expect(kube.Create(context.Background(), quota)).To(Succeed())
	quota.Status = corev1.ResourceQuotaStatus{Hard: limits, Used: corev1.ResourceList{name: resource.MustParse("0")}}
	Expect(kube.Status().Update(context.Background(), quota)).To(Succeed())
	// Admission observes quotas by a watch.
	if name == corev1.ResourceLimitsCPU {
		Eventually(w.tryPod).Should(MatchError(ContainSubstring("must specify")))
	} else {
		Eventually(w.tryJob).Should(MatchError(ContainSubstring("exceeded quota")))
	}
	return quota
}

// limitByDefault sets a default limit of a resource for pods of the namespace.
func (w *env) limitByDefault(name corev1.ResourceName, limit string) {
	GinkgoHelper()
	Expect(kube.Create(context.Background(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "limits"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{name: resource.MustParse(limit)},
		}}},
	})).To(Succeed())
	// Admission observes LimitRanges by a watch.
	Eventually(func() corev1.ResourceList {
		tried := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "tried-"}, Spec: triedPod()}
		Expect(kube.Create(context.Background(), tried, client.DryRunAll)).To(Succeed())
		return tried.Spec.Containers[0].Resources.Limits
	}).Should(HaveKey(name))
}

// triedPod is the spec of a pod that the restricted profile accepts.
func triedPod() corev1.PodSpec {
	restricted := corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	return corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "c", Image: "i", SecurityContext: &restricted}}}
}

// tryPod returns why the API server would refuse another pod.
func (w *env) tryPod() error {
	meta := metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "tried-"}
	return kube.Create(context.Background(), &corev1.Pod{ObjectMeta: meta, Spec: triedPod()}, client.DryRunAll)
}

// tryJob returns why the API server would refuse another Job.
func (w *env) tryJob() error {
	meta := metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "tried-"}
	job := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: triedPod()}}}
	return kube.Create(context.Background(), job, client.DryRunAll)
}

// triedService is a Service that the API server accepts.
func (w *env) triedService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "tried-"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
	}
}

// silentWebhook makes the API server ask a webhook that does not exist before it creates a Service in the namespace.
func (w *env) silentWebhook() *admissionv1.ValidatingWebhookConfiguration {
	GinkgoHelper()
	webhook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "silent-" + w.namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "silent.example.com", SideEffects: new(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig:            admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
			}},
		}},
	}
	Expect(kube.Create(context.Background(), webhook)).To(Succeed())
	DeferCleanup(func() { _ = kube.Delete(context.Background(), webhook) })
	Eventually(func() error { return kube.Create(context.Background(), w.triedService(), client.DryRunAll) }).Should(
		HaveOccurred())
	return webhook
}

// awaitProbedEnvironment makes an environment and waits until it is ready.
func (w *env) awaitProbedEnvironment() {
	GinkgoHelper()
	awaitProbed(w.environment(), "True Probed")
}

var bogus = []corev1.Toleration{{Key: "k", Operator: "Bogus"}}

var _ = Describe("Pods that Kubernetes refuses", func() {
	It("are reported with its words, and start by themselves once they are accepted", func() {
		w := newEnv()
		w.awaitProbedEnvironment()
		quota := w.quota(corev1.ResourceLimitsCPU, "10")
		run := w.create()
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("False CreateRefused"))
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("False CreateRefused"))
		})
		Expect(message(run, v1alpha1.ConditionPodsReady)).To(ContainSubstring("failed quota: quota: must specify " +
			"limits.cpu for: learner"))
		w.advance(3 * time.Minute)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("True CreateRefused"))
		})
		w.advance(30 * time.Minute)
		Consistently(w.attemptsWithJobs, "500ms", "50ms").Should(Equal([]string{"1"}),
			"another Job would have the same problem")
		// The API server dates the pod by its own clock, which is behind the manager's here.
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.FailurePolicy.StartDeadlineSeconds = new(int32(36000)) })
		Expect(kube.Delete(context.Background(), quota)).To(Succeed())
		Eventually(func(g Gomega) {
			var pods corev1.PodList
			g.Expect(kube.List(context.Background(), &pods, client.InNamespace(w.namespace),
				client.MatchingLabels{v1alpha1.LabelRun: run.Name})).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(3))
		}, "3m", "100ms").Should(Succeed(), "the Job controller tries again within a minute")
		w.attempt(run, 1, progress(1))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
		})
	})

	It("have the chart's new defaults once their Jobs are deleted", func() {
		w := newEnv()
		w.awaitProbedEnvironment()
		w.quota(corev1.ResourceLimitsCPU, "10")
		run := w.create()
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("False CreateRefused"))
		})
		limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
		w.startManager(&managerOptions{pods: v1alpha1.PodOverrides{Resources: corev1.ResourceRequirements{Limits: limits}}})
		jobs := append(w.jobs(v1alpha1.RoleLearner), w.jobs(v1alpha1.RoleRollout)...)
		Expect(jobs).To(HaveLen(2))
		for _, job := range jobs {
			Expect(kube.Delete(context.Background(), &job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(
				Succeed())
		}
		w.advance(15 * time.Second)
		w.attempt(run, 2, progress(1))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
		})
		Expect(run.Status.FailuresSinceCheckpoint).To(Or(BeNil(), HaveValue(BeZero())))
	})

	It("are reported when their priority class does not exist", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) {
			run.Spec.Override(v1alpha1.TargetLearner).PriorityClassName = "nope"
		})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("False CreateRefused"))
		})
		Expect(message(run, v1alpha1.ConditionPodsReady)).To(
			ContainSubstring("no PriorityClass with name nope was found"))
	})

	It("are reported where they request more ephemeral storage than a LimitRange allows, and start with a lower request",
		func() {
			w := newEnv()
			w.awaitProbedEnvironment()
			w.limitByDefault(corev1.ResourceEphemeralStorage, "10Mi")
			run := w.create()
			w.eventually(run, func(g Gomega) {
				g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("False CreateRefused"))
			})
			Expect(message(run, v1alpha1.ConditionPodsReady)).To(
				ContainSubstring("must be less than or equal to ephemeral-storage limit of 10Mi"))
			w.change(run, func(run *v1alpha1.TrainingRun) {
				zero := corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("0")}
				run.Spec.Override(v1alpha1.TargetAll).Resources.Requests = zero
			})
			w.attempt(run, 2, progress(1))
			w.eventually(run, func(g Gomega) {
				g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
			})
		})

	It("are reported for a probe, which starts by itself once it is accepted", func() {
		w := newEnv()
		quota := w.quota(corev1.ResourceLimitsCPU, "10")
		env := w.environment()
		awaitProbed(env, "False ProbeNotStarting")
		Expect(env.Status.Conditions[0].Message).To(ContainSubstring("must specify limits.cpu for: probe"))
		Expect(kube.Delete(context.Background(), quota)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(env), env)).To(Succeed())
			g.Expect(describe(env.Status.Conditions, v1alpha1.ConditionReady)).To(Equal("True Probed"))
		}, "3m").Should(Succeed())
	})
})

var _ = Describe("Jobs that the API server refuses", func() {
	It("for a learner that is not valid are tried again once the spec or the manager is another", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) { run.Spec.Override(v1alpha1.TargetLearner).Tolerations = bogus })
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False PodInvalid SpecRefused"))
			g.Expect(coded(run, v1alpha1.ConditionStalled)).To(Equal("True PodInvalid SpecRefused"))
		})
		Expect(message(run, v1alpha1.ConditionAccepted)).To(And(ContainSubstring(`operator: Unsupported value: "Bogus"`),
			ContainSubstring("podOverrides[target=Learner]")))
		w.advance(time.Hour)
		for range 3 {
			w.advance(time.Minute)
		}
		w.awaitReconciles()
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.Attempts).To(HaveLen(1))
			g.Expect(run.Status.Attempts[0].Number).To(BeEquivalentTo(1), "the manager that was refused does not try again")
		})
		w.stop()
		w.startManager(nil)
		w.awaitReconciles()
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False PodInvalid SpecRefused"))
			g.Expect(run.Status.Attempts).To(HaveLen(1))
			g.Expect(run.Status.Attempts[0].Count).To(BeEquivalentTo(2))
			g.Expect(run.Status.Attempts[0].Number).To(BeEquivalentTo(2))
		})
		Expect(run.Status.FailuresSinceCheckpoint).To(Or(BeNil(), HaveValue(BeZero())))
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.Override(v1alpha1.TargetLearner).Tolerations = nil })
		w.attempt(run, 3, progress(0))
		w.eventually(run, func(g Gomega) { g.Expect(condition(run, v1alpha1.ConditionAccepted)).To(Equal("True Accepted")) })
	})

	It("for workers that are not valid are a condition, and created once the spec is", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) { run.Spec.Override(v1alpha1.TargetWorkers).Tolerations = bogus })
		w.attempt(run, 1, progress(1))
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionPodsReady)).To(Equal("False PodInvalid SpecRefused"))
		})
		Expect(message(run, v1alpha1.ConditionPodsReady)).To(And(ContainSubstring(`operator: Unsupported value: "Bogus"`),
			ContainSubstring("podOverrides[target=Workers]")))
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.Override(v1alpha1.TargetWorkers).Tolerations = nil })
		Eventually(func() int { return len(w.jobs(v1alpha1.RoleRollout)) }).Should(Equal(1))
	})

	It("by a quota wait for it, at one try every 45 seconds", func() {
		w := newEnv()
		w.awaitProbedEnvironment()
		quota := w.quota("count/jobs.batch", "0")
		run := w.create()
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("False CreateRefused"))
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("False CreateRefused"))
		})
		Expect(message(run, v1alpha1.ConditionProgressing)).To(ContainSubstring("exceeded quota: quota, requested: " +
			"count/jobs.batch=1"))
		for range 4 {
			w.advance(46 * time.Second)
		}
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("True CreateRefused"))
			g.Expect(run.Status.Attempts).To(HaveLen(1), "the last try was refused, too")
		})
		Expect(run.Status.Attempts[0].Count).To(And(BeNumerically(">=", 3), BeNumerically("<=", 7)))
		Expect(run.Status.Attempts[0].Cause).To(Equal("Refused"))
		Expect(run.Status.FailuresSinceCheckpoint).To(Or(BeNil(), HaveValue(BeZero())))
		Expect(kube.Delete(context.Background(), quota)).To(Succeed())
		Eventually(w.tryJob).Should(Succeed())
		w.advance(46 * time.Second)
		Eventually(w.attemptsWithJobs).Should(HaveLen(1))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
		})
		Eventually(func() []string { return w.eventReasons(run) }).Should(ContainElement("CreateRefused"))
	})

	It("because an admission webhook does not answer are reported, and made once it is gone", func() {
		w := newEnv()
		w.awaitProbedEnvironment()
		webhook := w.silentWebhook()
		run := w.create()
		w.attempt(run, 1, progress(1))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("False CreateRefused"))
		})
		Expect(message(run, v1alpha1.ConditionPodsReady)).To(
			ContainSubstring(`failed calling webhook "silent.example.com"`))
		Expect(kube.Delete(context.Background(), webhook)).To(Succeed())
		Eventually(func() error { return kube.Create(context.Background(), w.triedService(), client.DryRunAll) }).Should(
			Succeed())
		w.advance(46 * time.Second)
		Eventually(func() int { return len(w.jobs(v1alpha1.RoleRollout)) }).Should(Equal(1))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).NotTo(ContainSubstring("CreateRefused"))
		})
	})
})
