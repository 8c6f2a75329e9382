// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"errors"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/learner/report"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// repairableProblems are what heartbeats report while a user has to repair how the run reaches its endpoint, or what that offers.
var repairableProblems = map[failure.Kind]string{
	failure.CredentialsRefused: contract.UpstreamCredentials,
	failure.NotTinker:          contract.UpstreamNotTinker,
	failure.UnknownModel:       contract.UpstreamUnknownModel,
	failure.ShortContext:       contract.UpstreamShortContext,
}

// repairable records for how long such a problem has lasted.
type repairable struct {
	status   *report.Status
	patience time.Duration
	now      func() time.Time
	// since is zero while there is no problem, and problem is then empty.
	since   time.Time
	problem string
}

// retries reports whether an error is such a problem, which is tried again for a while: a learner that ends then is
// followed by one that reads the spec and the Secret anew.
func (r *repairable) retries(err error) bool {
	problem, ok := repairableProblems[failure.KindOf(err)]
	if !ok {
		return false
	}
	if problem != r.problem {
		r.accept()
	}
	r.status.AddProblem(problem, evidenceOf(err))
	if r.since.IsZero() {
		r.since, r.problem = r.now(), problem
	}
	return r.now().Sub(r.since) < r.patience
}

// left returns how long the next try may be away: no longer than the problem is still tried again.
func (r *repairable) left() time.Duration {
	if r.since.IsZero() {
		return longestPause
	}
	return min(longestPause, max(0, r.since.Add(r.patience).Sub(r.now())))
}

// evidenceOf returns what shows such a problem: the request that failed, or what the check of the endpoint found.
func evidenceOf(err error) string {
	var found *preflight.RejectedError
	if errors.As(err, &found) {
		return found.Message
	}
	return client.EvidenceOf(err)
}

// accept records that the endpoint serves the run.
func (r *repairable) accept() {
	if !r.since.IsZero() {
		r.status.RemoveProblem(r.problem)
		r.since, r.problem = time.Time{}, ""
	}
}
