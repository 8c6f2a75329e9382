// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// problems are what heartbeats report while a user has to repair something.
var problems = map[failure.Kind]string{
	failure.CredentialsRefused: contract.UpstreamCredentials,
	failure.NotTinker:          contract.UpstreamNotTinker,
	failure.UnknownModel:       contract.UpstreamUnknownModel,
	failure.ShortContext:       contract.UpstreamShortContext,
	failure.SettingsRefused:    contract.UpstreamSettingsRefused,
	failure.DataRefused:        contract.UpstreamDataRefused,
	failure.MissingCheckpoint:  contract.UpstreamMissingCheckpoint,
}

// lasting are the kinds that a learner tries again for as long as it takes: another learner would know no more, since
// the manager replaces this one when the spec changes, and it would train the step that was refused once more.
var lasting = []failure.Kind{failure.SettingsRefused, failure.DataRefused, failure.MissingCheckpoint}

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

// RepairWait is what a learner knows of such a problem.
type RepairWait struct {
	Status status
	// Patience is how long a problem is tried again before the learner ends.
	Patience time.Duration
	Now      func() time.Time
	// since is zero while there is no problem, and problem is then empty.
	since   time.Time
	problem string
	// endless says that the problem is one of those that are tried again for as long as it takes.
	endless bool
}

// Retries reports whether an error is such a problem, which is tried again, in most cases for a while: a learner that
// ends then is followed by one that reads the spec and the Secret anew.
func (w *RepairWait) Retries(err error) bool {
	kind := failure.KindOf(err)
	problem, ok := problems[kind]
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
	w.endless = slices.Contains(lasting, kind)
	return w.endless || w.Now().Sub(w.since) < w.Patience
}

// Left returns how long the next try may be away: no longer than the problem is still tried again, and at most longest.
func (w *RepairWait) Left(longest time.Duration) time.Duration {
	if w.since.IsZero() || w.endless {
		return longest
	}
	return min(longest, max(0, w.since.Add(w.Patience).Sub(w.Now())))
}

// evidenceOf returns what shows such a problem: the request that failed, or what the check of the endpoint found.
func evidenceOf(err error) string {
	if found, ok := errors.AsType[*RejectedError](err); ok {
		return found.Message
	}
	return cmp.Or(client.EvidenceOf(err), err.Error())
}

// Accept records that the endpoint serves the run.
func (w *RepairWait) Accept() {
	if !w.since.IsZero() {
		w.Status.RemoveProblem(w.problem)
		w.since, w.problem, w.endless = time.Time{}, "", false
	}
}

// Opened records that the run has a model and that the endpoint accepts now what it refused. A problem that is tried
// again for a while counts until a step is committed.
func (w *RepairWait) Opened() {
	if w.endless {
		w.Accept()
	}
}
