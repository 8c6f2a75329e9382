// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/kueue"
)

// installKueue adds the CRDs of Kueue's module to the API server. Kueue's controller does not run: specs admit and
// evict.
func installKueue() []*apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	output, err := exec.Command(filepath.Join("..", "..", "hack", "kueue", "kueue"), "crds").Output()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	var paths []string
	for _, name := range []string{"workloads", "resourceflavors", "workloadpriorityclasses"} {
		paths = append(paths, filepath.Join(strings.TrimSpace(string(output)), "kueue.x-k8s.io_"+name+".yaml"))
	}
	installed, err := envtest.InstallCRDs(apiConfig, envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true,
		MaxTime: 2 * time.Minute})
	Expect(err).NotTo(HaveOccurred())
	return installed
}

func removeKueue(installed []*apiextensionsv1.CustomResourceDefinition) {
	GinkgoHelper()
	Expect(envtest.UninstallCRDs(apiConfig, envtest.CRDInstallOptions{CRDs: installed})).To(Succeed())
	for _, crd := range installed {
		Eventually(func() bool {
			object := &metav1.PartialObjectMetadata{}
			object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
			return apierrors.IsNotFound(kube.Get(context.Background(), client.ObjectKeyFromObject(crd), object))
		}).Should(BeTrue())
	}
}

func inQueue(run *v1alpha1.TrainingRun) {
	run.Labels = map[string]string{kueue.LabelQueue: "team", "team": "blue"}
}

// workload reads the Workload of a run; nil if it does not exist.
func workload(run *v1alpha1.TrainingRun) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kueue.Kind("v1beta2"))
	err := kube.Get(context.Background(), client.ObjectKey{Namespace: run.Namespace, Name: kueue.Name(run)}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return object
}

// awaitWorkload waits for the Workload of a run that Kueue has not admitted.
func awaitWorkload(run *v1alpha1.TrainingRun) *kueue.Workload {
	GinkgoHelper()
	var parsed *kueue.Workload
	Eventually(func(g Gomega) {
		object := workload(run)
		g.Expect(object).NotTo(BeNil())
		var err error
		parsed, err = kueue.Parse(object)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(parsed.DeletionTimestamp).To(BeNil())
		g.Expect(parsed.Status.Admission).To(BeNil())
	}).Should(Succeed())
	return parsed
}

// updateWorkload changes the status of a Workload as Kueue does.
func updateWorkload(run *v1alpha1.TrainingRun, by func(status *kueue.Status)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		object := workload(run)
		g.Expect(object).NotTo(BeNil())
		parsed, err := kueue.Parse(object)
		g.Expect(err).NotTo(HaveOccurred())
		by(&parsed.Status)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&parsed.Status)
		g.Expect(err).NotTo(HaveOccurred())
		object.Object["status"] = content
		g.Expect(kube.Status().Update(context.Background(), object)).To(Succeed())
	}).Should(Succeed())
}

func setCondition(status *kueue.Status, kind string, is bool, reason, message string) {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if is {
		c.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, c)
}

// admit admits a run with the given number of workers, all pods in one flavor.
func admit(run *v1alpha1.TrainingRun, workers int32, flavor string) {
	GinkgoHelper()
	awaitWorkload(run)
	updateWorkload(run, func(status *kueue.Status) {
		one := int32(1)
		flavors := map[string]string{"cpu": flavor, "memory": flavor}
		status.Admission = &kueue.Admission{ClusterQueue: "blue", PodSetAssignments: []kueue.PodSetAssignment{
			{Name: kueue.LearnerSet, Count: &one, Flavors: flavors},
			{Name: kueue.WorkersSet, Count: &workers, Flavors: flavors},
		}}
		status.AdmissionChecks = nil
		setCondition(status, "QuotaReserved", true, "QuotaReserved", "Quota reserved in ClusterQueue blue")
		setCondition(status, "Admitted", true, "Admitted", "The workload is admitted")
		setCondition(status, "Evicted", false, "QuotaReserved", "Previously: preempted")
	})
}

// evict evicts a run.
func evict(run *v1alpha1.TrainingRun) {
	GinkgoHelper()
	updateWorkload(run, func(status *kueue.Status) {
		setCondition(status, "Evicted", true, "Preempted", "Preempted to accommodate a workload of team red")
	})
}

var _ = Describe("Kueue", Ordered, func() {
	var installed []*apiextensionsv1.CustomResourceDefinition
	BeforeAll(func() {
		installed = installKueue()
		flavor := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"nodeLabels":  map[string]any{"pool": "spot"},
			"tolerations": []any{map[string]any{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}},
		}}}
		flavor.SetGroupVersionKind(schema.GroupVersionKind{Group: kueue.Group, Version: "v1beta2", Kind: "ResourceFlavor"})
		flavor.SetName("spot")
		Expect(kube.Create(context.Background(), flavor)).To(Succeed())
	})
	AfterAll(func() { removeKueue(installed) })

	It("admits a run as one Workload, evicts it at a saved state, and admits it again", func() {
		w := newEnv()
		w.environment()
		run := w.create(inQueue)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("False Queued"))
			g.Expect(run.Status.State).To(Equal(v1alpha1.StateQueued))
			g.Expect(run.Status.Queue).To(HaveValue(Equal(v1alpha1.QueueStatus{Name: "team", Workload: kueue.Name(run)})))
		})
		waiting := awaitWorkload(run)
		Expect(waiting.Spec.QueueName).To(Equal("team"))
		Expect(metav1.IsControlledBy(workload(run), run)).To(BeTrue())
		Expect(waiting.Spec.PodSets).To(HaveLen(2))
		Expect(waiting.Spec.PodSets[1].Count).To(BeEquivalentTo(2))
		for _, set := range waiting.Spec.PodSets {
			Expect(set.Template.Spec.Containers[0].Resources.Requests.Cpu().IsZero()).To(BeFalse(), set.Name)
		}
		updateWorkload(run, func(status *kueue.Status) {
			setCondition(status, "QuotaReserved", false, "Pending", "couldn't assign flavors: insufficient unused quota")
		})
		w.eventually(run, func(g Gomega) {
			g.Expect(message(run, v1alpha1.ConditionProgressing)).To(ContainSubstring("insufficient unused quota"))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
		})
		Expect(w.jobs(v1alpha1.RoleLearner)).To(BeEmpty())
		Expect(w.jobs(v1alpha1.RoleRollout)).To(BeEmpty())

		admit(run, 1, "spot")
		first := w.attempt(run, 1, progress(3))
		learner := w.jobs(v1alpha1.RoleLearner)[0].Spec.Template
		Expect(learner.Spec.NodeSelector).To(HaveKeyWithValue("pool", "spot"))
		Expect(learner.Spec.Tolerations).To(ContainElement(corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoSchedule}))
		Expect(learner.Labels).To(And(HaveKeyWithValue("kueue.x-k8s.io/podset", "learner"), HaveKeyWithValue("team", "blue"),
			Not(HaveKey(kueue.LabelQueue))))
		Eventually(func() int { return len(w.jobs(v1alpha1.RoleRollout)) }).Should(Equal(1))
		rollout := w.jobs(v1alpha1.RoleRollout)[0]
		Expect(rollout.Labels).NotTo(HaveKey(kueue.LabelQueue))
		Expect(*rollout.Spec.Parallelism).To(BeEquivalentTo(1), "Kueue has admitted one worker of two")
		Expect(rollout.Spec.Template.Spec.NodeSelector).To(HaveKeyWithValue("pool", "spot"))
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionPodsReady)).To(Equal("True Running"))
		})
		Eventually(func() bool { return isTrue(run, "PodsReady") }).Should(BeTrue())

		evict(run)
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.State).To(Equal(v1alpha1.StateDraining))
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("False Evicted"))
			g.Expect(message(run, v1alpha1.ConditionProgressing)).To(ContainSubstring("team red"))
		})
		Eventually(func() contract.Desired {
			requests := w.learners.received(first.ip)
			return requests[len(requests)-1].Desired
		}).Should(Equal(contract.DesiredDrain))
		Consistently(func() bool { return isTrue(run, "QuotaReserved") }, "500ms").Should(BeTrue(),
			"the reservation is held while there are pods")
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(4)})
		Eventually(func() bool { return isTrue(run, "Requeued") && !isTrue(run, "QuotaReserved") }).Should(BeTrue())
		awaitWorkload(run)
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.State).To(Equal(v1alpha1.StateQueued)) })
		Expect(w.attemptsWithJobs()).To(BeEmpty())
		Expect(w.jobs(v1alpha1.RoleRollout)).To(BeEmpty())

		admit(run, 2, "spot")
		w.attempt(run, 2, progress(5))
		Expect(run.Status.Attempts[1].Cause).To(Equal("Drained"))
		w.endLearner(w.learner(run.Name, 2), 1, "")
		w.attempt(run, 3, progress(6)) // The reservation is held over the restart.
		w.verdict(w.learner(run.Name, 3), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 3,
			Progress: progress(60)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionComplete)).To(Equal("True Completed"))
		})
		Eventually(func() bool { return isTrue(run, "Finished") }).Should(BeTrue())
	})

	It("gets the quota of a suspended run back, and queues it anew", func() {
		w := newEnv()
		w.environment()
		run := w.create(inQueue)
		admit(run, 2, "spot")
		w.attempt(run, 1, progress(3))
		former := workload(run).GetUID()
		w.change(run, suspend)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("Unknown Draining"))
		})
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(4)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("True Suspended"))
		})
		Eventually(func() *unstructured.Unstructured { return workload(run) }).Should(BeNil())
		w.change(run, resume)
		Expect(awaitWorkload(run).UID).NotTo(Equal(former))
		admit(run, 2, "spot")
		w.attempt(run, 2, progress(5))
	})

	It("asks for other pods after a change, or after somebody deletes the Workload", func() {
		w := newEnv()
		w.environment()
		run := w.create(inQueue)
		awaitWorkload(run)
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.Rollouts.Workers = new(int32(3)) })
		Eventually(func() int32 { return awaitWorkload(run).Spec.PodSets[1].Count }).Should(BeEquivalentTo(3))
		admit(run, 3, "spot")
		w.attempt(run, 1, progress(3))
		Expect(kube.Delete(context.Background(), workload(run))).To(Succeed())
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.State).To(Equal(v1alpha1.StateDraining)) })
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(4)})
		admit(run, 3, "spot")
		w.attempt(run, 2, progress(5))
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.Rollouts.Workers = new(int32(1)) })
		w.eventually(run, func(g Gomega) {
			g.Expect(message(run, v1alpha1.ConditionProgressing)).To(ContainSubstring("has changed"))
		})
		w.verdict(w.learner(run.Name, 2), contract.Verdict{Cause: contract.CauseDrained, Attempt: 2, Progress: progress(6)})
		Eventually(func() int32 { return awaitWorkload(run).Spec.PodSets[1].Count }).Should(BeEquivalentTo(1))
	})

	It("says why the API server refuses a Workload, and makes it once that is repaired", func() {
		w := newEnv()
		w.environment()
		quota := w.noWorkloads()
		run := w.create(inQueue)
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionProgressing)).To(Equal("False CreateRefused WorkloadRefused"))
			g.Expect(message(run, v1alpha1.ConditionProgressing)).To(ContainSubstring("exceeded quota"))
			g.Expect(coded(run, v1alpha1.ConditionStalled)).To(Equal("True CreateRefused WorkloadRefused"))
		})
		Expect(kube.Delete(context.Background(), quota)).To(Succeed())
		w.advance(time.Minute)
		awaitWorkload(run)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("False Queued"))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
		})
	})

	It("says why pods cannot be placed as they were admitted, and places them once that is corrected", func() {
		w := newEnv()
		w.environment()
		run := w.create(inQueue, func(run *v1alpha1.TrainingRun) {
			run.Spec.PodOverrides = []v1alpha1.TargetedPodOverrides{{Target: v1alpha1.TargetLearner,
				PodOverrides: v1alpha1.PodOverrides{NodeSelector: map[string]string{"pool": "own"}}}}
		})
		admit(run, 2, "spot")
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionAccepted)).To(Equal("False Unschedulable"))
			g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring(`pool is "own" and is to be "spot"`))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("True Unschedulable"))
		})
		Expect(run.Status.Attempts).To(BeEmpty())
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Spec.PodOverrides = nil })
		admit(run, 2, "spot")
		w.attempt(run, 1, progress(1))
	})

	It("says that a priority class does not exist, and takes the value of one that does", func() {
		w := newEnv()
		w.environment()
		run := w.create(inQueue, func(run *v1alpha1.TrainingRun) { run.Labels[kueue.LabelPriority] = "urgent" })
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionAccepted)).To(Equal("False ObjectNotFound"))
			g.Expect(message(run, v1alpha1.ConditionAccepted)).To(
				ContainSubstring(`WorkloadPriorityClass "urgent" does not exist`))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("True ObjectNotFound"))
		})
		class := &unstructured.Unstructured{Object: map[string]any{"value": int64(70)}}
		class.SetGroupVersionKind(schema.GroupVersionKind{Group: kueue.Group, Version: "v1beta2",
			Kind: "WorkloadPriorityClass"})
		class.SetName("urgent")
		Expect(kube.Create(context.Background(), class)).To(Succeed())
		w.advance(6 * time.Minute)
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Labels["again"] = "1" })
		queued := awaitWorkload(run)
		Expect(queued.Spec.Priority).To(HaveValue(BeEquivalentTo(70)))
		Expect(queued.Spec.PriorityClassRef).To(HaveValue(Equal(kueue.PriorityClassRef{Group: kueue.Group,
			Kind: "WorkloadPriorityClass", Name: "urgent"})))
	})

	It("is no part of a cluster without it, and a run that waits starts once it is removed", func() {
		w := newEnv()
		w.environment()
		run := w.create(inQueue)
		awaitWorkload(run)
		removeKueue(installed)
		installed = nil
		w.advance(time.Minute)
		w.change(run, func(run *v1alpha1.TrainingRun) { run.Labels["again"] = "1" })
		w.attempt(run, 1, progress(1))
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.Queue).To(BeNil()) })
	})
})

var _ = Describe("A run of another controller", func() {
	It("is left alone", func() {
		w := newEnv()
		w.environment()
		run := w.create(func(run *v1alpha1.TrainingRun) { run.Spec.ManagedBy = "kueue.x-k8s.io/multikueue" })
		ours := w.create(func(run *v1alpha1.TrainingRun) { run.Name, run.Spec.ManagedBy = "ours", v1alpha1.ManagedBy })
		w.learner(ours.Name, 1)
		Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
		Expect(run.Status).To(Equal(v1alpha1.TrainingRunStatus{}))
		Expect(w.jobs(v1alpha1.RoleLearner)).To(HaveLen(1))
	})
})

// noWorkloads refuses every Workload of the namespace by a quota.
func (w *env) noWorkloads() *corev1.ResourceQuota {
	GinkgoHelper()
	none := corev1.ResourceList{"count/workloads.kueue.x-k8s.io": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "quota"},
		Spec: corev1.ResourceQuotaSpec{Hard: none}}
	Expect(kube.Create(context.Background(), quota)).To(Succeed())
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	Expect(kube.Status().Update(context.Background(), quota)).To(Succeed())
	Eventually(func() error { // Admission observes quotas by a watch.
		tried := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"podSets": []any{map[string]any{
			"name": "main", "count": int64(1), "template": map[string]any{"spec": map[string]any{"containers": []any{}}}}}}}}
		tried.SetGroupVersionKind(kueue.Kind("v1beta2"))
		tried.SetNamespace(w.namespace)
		tried.SetName("tried")
		return kube.Create(context.Background(), tried, client.DryRunAll)
	}).Should(MatchError(ContainSubstring("exceeded quota")))
	return quota
}

// isTrue reports whether a condition of the run's Workload holds.
func isTrue(run *v1alpha1.TrainingRun, kind string) bool {
	GinkgoHelper()
	object := workload(run)
	if object == nil {
		return false
	}
	parsed, err := kueue.Parse(object)
	Expect(err).NotTo(HaveOccurred())
	return meta.IsStatusConditionTrue(parsed.Status.Conditions, kind)
}
