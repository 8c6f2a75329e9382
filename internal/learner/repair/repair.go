// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package repair keeps how long a learner has waited for a user to repair how the run reaches its endpoint, or what the
// endpoint offers.
package repair

import (
	"errors"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// problems are what heartbeats report while a user has to repair something.
var problems = map[failure.Kind]string{
	failure.CredentialsRefused: contract.UpstreamCredentials,
	failure.NotTinker:          contract.UpstreamNotTinker,
	failure.UnknownModel:       contract.UpstreamUnknownModel,
	failure.ShortContext:       contract.UpstreamShortContext,
}

// Awaited reports whether a run waits for the repair of what caused failures of a kind.
func Awaited(kind failure.Kind) bool {
	_, awaited := problems[kind]
	return awaited
}

// status receives the problems that heartbeats report.
type status interface {
	AddProblem(kind, evidence string)
	RemoveProblem(kind string)
}

// Wait is what a learner knows of such a problem.
type Wait struct {
	Status status
	// Patience is how long a problem is tried again before the learner ends.
	Patience time.Duration
	Now      func() time.Time
	// since is zero while there is no problem, and problem is then empty.
	since   time.Time
	problem string
}

// Retries reports whether an error is such a problem, which is tried again for a while: a learner that ends then is
// followed by one that reads the spec and the Secret anew.
func (w *Wait) Retries(err error) bool {
	problem, ok := problems[failure.KindOf(err)]
	if !ok {
		return false
	}
	if problem != w.problem {
		w.Accept()
	}
	w.Status.AddProblem(problem, evidenceOf(err))
	if w.since.IsZero() {
		w.since, w.problem = w.Now(), problem
	}
	return w.Now().Sub(w.since) < w.Patience
}

// Left returns how long the next try may be away: no longer than the problem is still tried again, and at most longest.
func (w *Wait) Left(longest time.Duration) time.Duration {
	if w.since.IsZero() {
		return longest
	}
	return min(longest, max(0, w.since.Add(w.Patience).Sub(w.Now())))
}

// evidenceOf returns what shows such a problem: the request that failed, or what the check of the endpoint found.
func evidenceOf(err error) string {
	var found *preflight.RejectedError
	if errors.As(err, &found) {
		return found.Message
	}
	return client.EvidenceOf(err)
}

// Accept records that the endpoint serves the run.
func (w *Wait) Accept() {
	if !w.since.IsZero() {
		w.Status.RemoveProblem(w.problem)
		w.since, w.problem = time.Time{}, ""
	}
}
