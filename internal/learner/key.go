// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/report"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// problemCredentials is what heartbeats report while the endpoint refuses the API key.
const problemCredentials = "credentials"

// keyRefusal records how long the endpoint has refused the API key.
type keyRefusal struct {
	status   *report.Status
	patience time.Duration
	now      func() time.Time
	// since is zero while the endpoint accepts the key.
	since time.Time
}

// retries reports whether an error says that the endpoint refuses the key, which is tried again for a while.
func (k *keyRefusal) retries(err error) bool {
	if failure.KindOf(err) != failure.CredentialsRefused {
		return false
	}
	k.status.AddProblem(problemCredentials, client.EvidenceOf(err))
	if k.since.IsZero() {
		k.since = k.now()
	}
	return k.now().Sub(k.since) < k.patience
}

// accept records that the endpoint accepts the key.
func (k *keyRefusal) accept() {
	if !k.since.IsZero() {
		k.since = time.Time{}
		k.status.RemoveProblem(problemCredentials)
	}
}
