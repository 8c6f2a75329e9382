// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoint bounds the evidence about a run's endpoint, and decides which run's check of an endpoint another run
// may rely on, and which TinkerEndpoint and budgets apply to a run.
package endpoint

import (
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Trimmed returns a problem with the evidence bounded, as a condition shows it.
func Trimmed(found problem.Problem) problem.Problem {
	found.Evidence = status.Trim(found.Evidence, MaxEvidence)
	return found
}

// MaxEvidence bounds a learner's evidence of a failed request, in bytes.
const MaxEvidence = 512
