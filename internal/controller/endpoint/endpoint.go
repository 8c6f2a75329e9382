// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoint bounds the evidence about a run's endpoint, and decides which run's check of an endpoint another run
// may rely on, and which TinkerEndpoint and budgets apply to a run.
package endpoint

import (
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Trimmed returns a problem with the evidence bounded, as a condition shows it.
func Trimmed(found problem.Problem) problem.Problem {
	found.Evidence = status.Trim(found.Evidence, MaxEvidence)
	return found
}

// TrustAuthority returns the repair of a certificate whose authority a pod does not trust, of a server other than the
// endpoint; it is empty for other evidence.
func TrustAuthority(evidence string) string {
	if !strings.Contains(evidence, "x509: certificate signed by unknown authority") {
		return ""
	}
	return "Mount the authority of the server (volumes, volumeMounts) and name its file in the variable SSL_CERT_FILE " +
		"(env), in pod of the RewardEnvironment and in podOverrides of its runs, or in the chart's value pods."
}

// MaxEvidence bounds a learner's evidence of a failed request, in bytes.
const MaxEvidence = 512
