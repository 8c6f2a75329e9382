// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// lingering says, as a further sentence, which pod keeps a run from being suspended, and how to repair that; empty if
// there is no such pod.
func (v view) lingering() string {
	if v.seen.Lingering == "" {
		return ""
	}
	return " The node of " + v.seen.Lingering + " does not report that the pod has ended: repair the node, or delete " +
		"its Node object if it is gone. " +
		"The run can be resumed all the same."
}

// awaitsNode reports whether a node has kept the run from being suspended for longer than stalledAfterSeconds.
func (v view) awaitsNode() bool {
	since, draining := status.Since(v.next.Conditions, v1alpha1.ConditionSuspended, metav1.ConditionUnknown)
	return draining && v.seen.Lingering != "" && v.lastsSince(since)
}
