// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusal reads refusals by Kubernetes: objects that the API server does not accept, and pods that it does not
// accept from the controller of a Job.
package refusal

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// Of returns the problem that an answer of the API server to a create shows, with its words as evidence: CreateRefused
// if the object may pass later, as with a quota, SpecRefused if it cannot pass without a change, and
// NamespaceTerminating if it cannot pass at all. It returns false for an answer that is uncertain, or that refuses
// nothing.
func Of(err error) (problem.Problem, bool) {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return problem.Problem{Code: problem.NamespaceTerminating, Evidence: err.Error()}, true
	case apierrors.IsForbidden(err), denied(err), needsRepair(err):
		return problem.Problem{Code: problem.CreateRefused, Evidence: err.Error()}, true
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return problem.Problem{Code: problem.SpecRefused, Evidence: err.Error()}, true
	default:
		return problem.Problem{}, false
	}
}

// OfObject returns a refusal with the object that was refused and the field by which a person corrects it; the zero
// value for the zero value.
func OfObject(refused problem.Problem, object, field string) problem.Problem {
	if refused.Code == "" {
		return refused
	}
	return problem.Problem{Code: refused.Code, Evidence: object + ": " + refused.Evidence, Field: field}
}

// denied reports whether an admission webhook or policy refuses, with any status. It may be changed while the object
// stays.
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
