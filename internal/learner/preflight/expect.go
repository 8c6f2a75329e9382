// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// Expect returns what CheckFeatures would say of a run without asking the endpoint, by the capabilities in its file:
// the error with which the endpoint would be refused, if any, and the features that the first attempt would have to
// check.
func Expect(file contract.RunFile) (unchecked []capability.Feature, refused error) {
	needs, report := needsOf(file), known(file)
	return report.Missing(featuresOf(file, needs)), refusal(file, needs, Assumed(report))
}
