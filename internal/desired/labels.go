// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// RunLabels are on every object of a run.
func RunLabels(run *v1alpha1.TrainingRun) map[string]string {
	return map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
		v1alpha1.LabelRun:       run.Name,
		v1alpha1.LabelRunUID:    string(run.UID),
	}
}

// userLabels are the labels of a run that its Jobs and pods have as well, for cost reports and selectors. Kueue's
// labels are not among them: the run is one Workload, and Kueue would queue each of its Jobs by itself.
func userLabels(run *v1alpha1.TrainingRun) map[string]string {
	labels := inheritable(run.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return isKueues(key) })
	return labels
}

// jobAnnotations returns the annotations of a run's Job: the annotations of the run, except those in which tools keep
// their own records, and the operator's own.
func jobAnnotations(run *v1alpha1.TrainingRun, own map[string]string) map[string]string {
	annotations := inheritable(run.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return isKueues(key) || slices.Contains(annotationDomains, domainOf(key))
	})
	return merged(annotations, own)
}

// isKueues reports whether a label or an annotation is for Kueue, whose Workload stands for all Jobs of a run.
func isKueues(key string) bool {
	domain := domainOf(key)
	return domain == kueueDomain || strings.HasSuffix(domain, "."+kueueDomain)
}

// inheritable returns the labels of an object without the labels of tools that manage it.
func inheritable(all map[string]string) map[string]string {
	labels := maps.Clone(all)
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return slices.Contains(toolDomains, domainOf(key)) || slices.Contains(jobLabels, key)
	})
	return labels
}

func domainOf(key string) string {
	domain, _, _ := strings.Cut(key, "/")
	return domain
}

// kueueDomain ends the domain of Kueue's labels and annotations.
const kueueDomain = "kueue.x-k8s.io"

var (
	// toolDomains are the domains of labels by which other tools and the operator find the objects that they manage.
	toolDomains = []string{
		"rl.tinker-operator.dev", "batch.kubernetes.io", "helm.sh", "argocd.argoproj.io", "kustomize.toolkit.fluxcd.io",
		"helm.toolkit.fluxcd.io",
	}
	// annotationDomains are the domains of annotations in which tools keep their records of one object.
	annotationDomains = []string{"kubectl.kubernetes.io", "meta.helm.sh"}
	// jobLabels are set by the Job controller and by the operator.
	jobLabels = []string{"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "controller-uid", "job-name"}
)

// LearnerLabels are on the Job and the pod of an attempt's learner.
func LearnerLabels(run *v1alpha1.TrainingRun, attempt int32) map[string]string {
	return merged(RunLabels(run), map[string]string{
		v1alpha1.LabelRole:    v1alpha1.RoleLearner,
		v1alpha1.LabelAttempt: strconv.Itoa(int(attempt)),
	})
}

// RolloutLabels are on the Job and the pods of the run's workers.
func RolloutLabels(run *v1alpha1.TrainingRun) map[string]string {
	return merged(RunLabels(run), map[string]string{v1alpha1.LabelRole: v1alpha1.RoleRollout})
}

// WorkerSelector finds the worker pods of a run, for autoscalers and people.
func WorkerSelector(run *v1alpha1.TrainingRun) string {
	return v1alpha1.LabelRun + "=" + run.Name + "," + v1alpha1.LabelRole + "=" + v1alpha1.RoleRollout
}

// EnvironmentLabels are on every object of a RewardEnvironment.
func EnvironmentLabels(env *v1alpha1.RewardEnvironment) map[string]string {
	return map[string]string{
		v1alpha1.LabelManagedBy:      v1alpha1.ManagedByValue,
		v1alpha1.LabelEnvironment:    env.Name,
		v1alpha1.LabelEnvironmentUID: string(env.UID),
		v1alpha1.LabelRole:           v1alpha1.RoleProbe,
	}
}

func probeLabels(env *v1alpha1.RewardEnvironment, definitionDigest string, try int32) map[string]string {
	return merged(EnvironmentLabels(env), map[string]string{
		v1alpha1.LabelDefinition: definitionDigest[:8],
		v1alpha1.LabelAttempt:    strconv.Itoa(int(try)),
	})
}

// merged returns base with the entries of over, which take precedence.
func merged(base, over map[string]string) map[string]string {
	merged := maps.Clone(base)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, over)
	return merged
}

// owned returns the metadata of an object that is deleted with its owner.
func owned(owner metav1.Object, kind, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: owner.GetNamespace(),
		Name:      name,
		Labels:    labels,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion:         v1alpha1.SchemeGroupVersion.String(),
			Kind:               kind,
			Name:               owner.GetName(),
			UID:                owner.GetUID(),
			Controller:         ptr.To(true),
			BlockOwnerDeletion: ptr.To(true),
		}},
	}
}

// OwnerOf returns the owner references by which an object of a run is deleted with the run.
func OwnerOf(run *v1alpha1.TrainingRun) []metav1.OwnerReference {
	return ownedByRun(run, "", nil).OwnerReferences
}

func ownedByRun(run *v1alpha1.TrainingRun, name string, labels map[string]string) metav1.ObjectMeta {
	return owned(run, "TrainingRun", name, labels)
}
