// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// Expect returns the result of CheckFeatures for a run without asking the endpoint, by the capabilities in the run
// file: the features that the first attempt would have to check, and the error with which the endpoint would be
// refused, if any.
func Expect(file contract.RunFile) (unchecked []capability.Feature, refused error) {
	needs, report := needsOf(file), known(file)
	return report.Missing(featuresOf(file, needs)), refusal(file, needs, Assumed(report))
}
