// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Flavor is the part of a ResourceFlavor that reaches pods.
type Flavor struct {
	NodeLabels  map[string]string   `json:"nodeLabels,omitempty"`
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// Placement has the labels, tolerations and selectors that an admission adds to the pods of one pod set. The zero value
// adds nothing.
type Placement struct {
	Labels, Annotations, NodeSelector map[string]string
	Tolerations                       []corev1.Toleration
}

// Flavors returns the names of the flavors that a Workload was admitted with, sorted.
func (w *Workload) Flavors() []string {
	names := map[string]bool{}
	if w.Status.Admission != nil {
		for _, a := range w.Status.Admission.PodSetAssignments {
			for _, name := range a.Flavors {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Placement returns the additions of the admission to the pods of a set: node labels and tolerations of its flavors,
// the updates of admission checks, and the labels by which Kueue counts pods. It is an error if two of these give one
// key two values.
func (w *Workload) Placement(set string, flavors map[string]Flavor) (Placement, error) {
	var p Placement
	if w.Status.Admission == nil {
		return p, nil
	}
	p.Labels = map[string]string{labelPodSet: set, labelLocalQueue: w.Spec.QueueName}
	if queue := w.Status.Admission.ClusterQueue; len(validation.IsDNS1123Label(queue)) == 0 {
		p.Labels[labelClusterQueue] = queue
	}
	for _, a := range w.Status.Admission.PodSetAssignments {
		if a.Name != set {
			continue
		}
		for _, name := range slices.Compact(slices.Sorted(maps.Values(a.Flavors))) {
			flavor := flavors[name]
			if err := p.add(PodSetUpdate{NodeSelector: flavor.NodeLabels, Tolerations: flavor.Tolerations}); err != nil {
				return Placement{}, fmt.Errorf("placing %s by resource flavor %s: %w", set, name, err)
			}
		}
	}
	for _, check := range w.Status.AdmissionChecks {
		for _, update := range check.PodSetUpdates {
			if update.Name != set {
				continue
			}
			if err := p.add(update); err != nil {
				return Placement{}, fmt.Errorf("placing %s by admission check %s: %w", set, check.Name, err)
			}
		}
	}
	return p, nil
}

func (p *Placement) add(update PodSetUpdate) error {
	for _, m := range []struct {
		into *map[string]string
		from map[string]string
	}{{&p.Labels, update.Labels}, {&p.Annotations, update.Annotations}, {&p.NodeSelector, update.NodeSelector}} {
		if err := merge(m.into, m.from); err != nil {
			return err
		}
	}
	p.Tolerations = addTolerations(p.Tolerations, update.Tolerations)
	return nil
}

// Apply adds the placement to a template. An error reports that the template has another value for a key.
func (p Placement) Apply(template *corev1.PodTemplateSpec) error {
	if err := merge(&template.Labels, p.Labels); err != nil {
		return fmt.Errorf("adding labels: %w", err)
	}
	if err := merge(&template.Annotations, p.Annotations); err != nil {
		return fmt.Errorf("adding annotations: %w", err)
	}
	if err := merge(&template.Spec.NodeSelector, p.NodeSelector); err != nil {
		return fmt.Errorf("adding node selector: %w", err)
	}
	template.Spec.Tolerations = addTolerations(template.Spec.Tolerations, p.Tolerations)
	return nil
}

// merge adds from to a copy of into.
func merge(into *map[string]string, from map[string]string) error {
	if len(from) == 0 {
		return nil
	}
	merged := maps.Clone(*into)
	if merged == nil {
		merged = map[string]string{}
	}
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if value, given := merged[key]; given && value != from[key] {
			return fmt.Errorf("%s is %q and is to be %q", key, value, from[key])
		}
		merged[key] = from[key]
	}
	*into = merged
	return nil
}

func addTolerations(own, more []corev1.Toleration) []corev1.Toleration {
	own = slices.Clone(own)
	for _, t := range more {
		if !slices.ContainsFunc(own, func(o corev1.Toleration) bool { return equality.Semantic.DeepEqual(o, t) }) {
			own = append(own, t)
		}
	}
	return own
}
