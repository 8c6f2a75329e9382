// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package kueue represents a TrainingRun as one Workload of Kueue: the pods of the run start when Kueue has admitted
// the Workload, and stop at a saved state when Kueue evicts it. The package has the part of Kueue's API that this
// needs, and none of its code: Kueue's modules require other versions of Kubernetes' libraries.
//
// The contract between Kueue and an integration is in Kueue's documentation ("Integrate a custom Job") and in its
// package pkg/controller/jobframework. Names of this package are Kueue's.
package kueue

import (
	"crypto/sha1" //nolint:gosec // Kueue names Workloads so.
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// Labels and annotations of Kueue's API.
const (
	// LabelQueue on a run names the LocalQueue that admits it.
	LabelQueue = Prefix + "queue-name"
	// LabelPriority on a run names its WorkloadPriorityClass.
	LabelPriority = Prefix + "priority-class"
	// LabelLongest on a run is the total number of seconds for which Kueue lets the run be admitted.
	LabelLongest = Prefix + "max-exec-time-seconds"
	// Prefix begins every label and annotation of Kueue.
	Prefix = "kueue.x-k8s.io/"

	// prefixProvisioning begins the annotations of a run that are parameters of ProvisioningRequests.
	prefixProvisioning = "provreq.kueue.x-k8s.io/"

	labelJobUID       = Prefix + "job-uid"
	labelPodSet       = Prefix + "podset"
	labelLocalQueue   = Prefix + "local-queue-name"
	labelClusterQueue = Prefix + "cluster-queue-name"
)

// annotationDigest is the digest of a Workload's inputs.
const annotationDigest = "rl.tinker-operator.dev/workload-digest"

// Group is Kueue's API group.
const Group = "kueue.x-k8s.io"

// Versions are the versions of the API that this package writes, the preferred one first.
var Versions = []string{"v1beta2", "v1beta1"}

// The conditions of a Workload.
const (
	conditionQuotaReserved = "QuotaReserved"
	conditionAdmitted      = "Admitted"
	conditionEvicted       = "Evicted"
	conditionFinished      = "Finished"
	conditionPodsReady     = "PodsReady"
	conditionRequeued      = "Requeued"
)

// Workload is the part of a Kueue Workload that a run needs.
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// Spec is the spec of a Workload.
type Spec struct {
	PodSets   []PodSet `json:"podSets"`
	QueueName string   `json:"queueName,omitempty"`
	// PriorityClassRef names the class from which Priority comes, in v1beta2.
	PriorityClassRef *PriorityClassRef `json:"priorityClassRef,omitempty"`
	// PriorityClassName and PriorityClassSource name the class in v1beta1.
	PriorityClassName   string `json:"priorityClassName,omitempty"`
	PriorityClassSource string `json:"priorityClassSource,omitempty"`
	Priority            *int32 `json:"priority,omitempty"`
	// MaximumExecutionTimeSeconds is the time for which the Workload may be admitted. Kueue then deactivates it.
	MaximumExecutionTimeSeconds *int32 `json:"maximumExecutionTimeSeconds,omitempty"`
}

// PriorityClassRef refers to a class of priorities.
type PriorityClassRef struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
}

// PodSet is a number of like pods.
type PodSet struct {
	Name     string                 `json:"name"`
	Count    int32                  `json:"count"`
	MinCount *int32                 `json:"minCount,omitempty"`
	Template corev1.PodTemplateSpec `json:"template"`
}

// Status is the status of a Workload, which Kueue and the manager of the run write.
type Status struct {
	Conditions      []metav1.Condition    `json:"conditions,omitempty"`
	Admission       *Admission            `json:"admission,omitempty"`
	AdmissionChecks []AdmissionCheckState `json:"admissionChecks,omitempty"`
}

// Admission is Kueue's reservation.
type Admission struct {
	ClusterQueue      string             `json:"clusterQueue"`
	PodSetAssignments []PodSetAssignment `json:"podSetAssignments"`
}

// PodSetAssignment is Kueue's reservation for a pod set: a flavor for each resource.
type PodSetAssignment struct {
	Name    string            `json:"name"`
	Flavors map[string]string `json:"flavors,omitempty"`
	Count   *int32            `json:"count,omitempty"`
}

// AdmissionCheckState is the state of an admission check, and its changes of the pods.
type AdmissionCheckState struct {
	Name          string         `json:"name"`
	PodSetUpdates []PodSetUpdate `json:"podSetUpdates,omitempty"`
}

// PodSetUpdate is an admission check's change of the pods of a pod set.
type PodSetUpdate struct {
	Name         string              `json:"name"`
	Labels       map[string]string   `json:"labels,omitempty"`
	Annotations  map[string]string   `json:"annotations,omitempty"`
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
}

// Kind is the kind Workload in a version of Kueue's API.
func Kind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: Group, Version: version, Kind: "Workload"}
}

// Name returns the name of a run's Workload, which is the name that Kueue gives to the Workload of a Job: kind and
// name, and five digits of a hash, in at most 253 characters.
func Name(run *v1alpha1.TrainingRun) string {
	const kind, longest, digits = "TrainingRun", 253, 5
	sum := sha1.Sum([]byte(strings.Join( //nolint:gosec // It tells runs of one name apart, and protects nothing.
		[]string{kind, v1alpha1.SchemeGroupVersion.Group, run.Name, string(run.UID)}, "\n")))
	prefix := strings.ToLower(kind) + "-" + run.Name
	return prefix[:min(len(prefix), longest-1-digits)] + "-" + hex.EncodeToString(sum[:])[:digits]
}

// Parse decodes a Workload from an object of the API server.
func Parse(object *unstructured.Unstructured) (*Workload, error) {
	var w Workload
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &w); err != nil {
		return nil, fmt.Errorf("reading workload %s: %w", object.GetName(), err)
	}
	return &w, nil
}

// Object returns the Workload as it is created.
func (w *Workload) Object() (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w)
	if err != nil {
		return nil, fmt.Errorf("encoding workload %s: %w", w.Name, err)
	}
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}, nil
}

// is reports whether a condition holds.
func (w *Workload) is(condition string) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, condition)
}

// Queue returns the LocalQueue that a run names, or "".
func Queue(run *v1alpha1.TrainingRun) string { return run.Labels[LabelQueue] }

// Build returns the Workload of a run in a version of Kueue's API. priority is nil for the default priority.
func Build(run *v1alpha1.TrainingRun, version string, sets []PodSet, priority *Priority) *Workload {
	w := &Workload{
		TypeMeta: metav1.TypeMeta{APIVersion: Group + "/" + version, Kind: "Workload"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: run.Namespace, Name: Name(run), OwnerReferences: desired.OwnerOf(run),
			Labels:      map[string]string{labelJobUID: string(run.UID), v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue},
			Annotations: provisioning(run),
		},
		Spec: Spec{PodSets: sets, QueueName: Queue(run), MaximumExecutionTimeSeconds: longest(run)},
	}
	w.Annotations[annotationDigest] = Digest(run, sets)
	if priority != nil {
		priority.set(&w.Spec, version)
	}
	return w
}

// provisioning returns the annotations of a run that its Workload has as well: an admission check passes them on to the
// ProvisioningRequest that it makes.
func provisioning(run *v1alpha1.TrainingRun) map[string]string {
	annotations := maps.Clone(run.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !strings.HasPrefix(key, prefixProvisioning) })
	if annotations == nil {
		annotations = map[string]string{}
	}
	return annotations
}

// longest returns the number of seconds for which a run may be admitted; nil if there is no limit. Like Kueue, it
// ignores a label that is not a positive number.
func longest(run *v1alpha1.TrainingRun) *int32 {
	seconds, err := strconv.ParseInt(run.Labels[LabelLongest], 10, 32)
	if err != nil || seconds <= 0 {
		return nil
	}
	return new(int32(seconds))
}

// Priority is the priority of a Workload, and the class from which it comes.
type Priority struct {
	Class PriorityClassRef
	Value int32
}

func (p *Priority) set(spec *Spec, version string) {
	spec.Priority = &p.Value
	if version == Versions[0] {
		spec.PriorityClassRef = &p.Class
		return
	}
	spec.PriorityClassName = p.Class.Name
	spec.PriorityClassSource = p.Class.Group + "/" + strings.ToLower(p.Class.Kind)
}

// PriorityClassOf returns the class of a run's priority: the WorkloadPriorityClass of its label, else the PriorityClass
// of the first pod set that has one; the zero value if there is none.
func PriorityClassOf(run *v1alpha1.TrainingRun, sets []PodSet) PriorityClassRef {
	if name := run.Labels[LabelPriority]; name != "" {
		return PriorityClassRef{Group: Group, Kind: "WorkloadPriorityClass", Name: name}
	}
	i := slices.IndexFunc(sets, func(s PodSet) bool { return s.Template.Spec.PriorityClassName != "" })
	if i < 0 {
		return PriorityClassRef{}
	}
	return PriorityClassRef{Group: "scheduling.k8s.io", Kind: "PriorityClass",
		Name: sets[i].Template.Spec.PriorityClassName}
}
