// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusal reads what Kubernetes refuses: objects that the API server does not accept, and pods that it does not
// accept from the controller of a Job.
package refusal

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// Refusal is why Kubernetes did not accept an object. Its zero value means that it was accepted.
type Refusal struct {
	// Reason is CreateRefused for what may pass later, as with a quota, SpecRefused for what cannot pass until the
	// object is another one, or NamespaceTerminating for what cannot pass at all.
	Reason string
	// Words are the API server's own.
	Words string
}

// Final says that trying again with the same object is pointless.
func (r Refusal) Final() bool { return r.Reason == v1alpha1.ReasonSpecRefused }

// Of reads an answer of the API server to a create; false for one that is uncertain, or that refuses nothing.
func Of(err error) (Refusal, bool) {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Refusal{v1alpha1.ReasonNamespaceTerminating, err.Error()}, true
	case apierrors.IsForbidden(err), denied(err), needsRepair(err):
		return Refusal{v1alpha1.ReasonCreateRefused, err.Error()}, true
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return Refusal{v1alpha1.ReasonSpecRefused, err.Error()}, true
	default:
		return Refusal{}, false
	}
}

// denied says that an admission webhook or policy refuses: it may be changed while the object stays, whatever status
// it answers.
func denied(err error) bool {
	if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		return false
	}
	return strings.Contains(err.Error(), "denied the request") || strings.Contains(err.Error(), "denied request")
}

// needsRepair reports an internal error of the API server that lasts until a person repairs it: an admission webhook
// does not answer, or the cluster has no address left for a Service.
func needsRepair(err error) bool {
	if !apierrors.IsInternalError(err) {
		return false
	}
	return strings.Contains(err.Error(), "failed calling webhook") || strings.Contains(err.Error(), "range is full")
}
