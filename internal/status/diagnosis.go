// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/diagnosis"
)

// maxDiagnosis limits the message of a diagnosis, in bytes.
const maxDiagnosis = 1024

// Diagnoses returns findings as a status has them.
func Diagnoses(findings []diagnosis.Finding) []v1alpha1.Diagnosis {
	var list []v1alpha1.Diagnosis
	for _, f := range findings {
		list = append(list, v1alpha1.Diagnosis{Cause: string(f.Cause), Message: contract.Truncate(f.Message, maxDiagnosis)})
	}
	return list
}

// SameCauses reports whether two lists of diagnoses differ at most in their figures.
func SameCauses(a, b []v1alpha1.Diagnosis) bool {
	return slices.EqualFunc(a, b, func(a, b v1alpha1.Diagnosis) bool { return a.Cause == b.Cause })
}
