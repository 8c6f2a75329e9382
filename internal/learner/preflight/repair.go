// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"errors"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// status receives the problems that heartbeats report.
type status interface {
	AddProblem(found problem.Problem)
	RemoveProblem(code problem.Code)
}

// RepairWait is a learner's wait for the repair of a problem that only a person can repair.
type RepairWait struct {
	Status status
	// Patience is the time for which a problem is tried again before the learner ends.
	Patience time.Duration
	// Unattended says that no person repairs anything: no problem is tried again for longer than Patience.
	Unattended bool
	Now        func() time.Time
	// since is the time since which there is a problem, and code the code of the problem. Both are zero if there is
	// none.
	since time.Time
	code  problem.Code
}

// Retries reports whether an error is such a problem that is still tried again. In most cases a problem is tried
// again only for a while. Then the learner ends, and another learner reads the spec and the Secret again.
func (w *RepairWait) Retries(err error) bool {
	code := failure.CodeOf(err)
	if !failure.Awaited(code) {
		return false
	}
	if code != w.code {
		w.Accept()
	}
	w.Status.AddProblem(problem.Problem{Code: code, Evidence: evidenceOf(err)})
	if w.since.IsZero() {
		w.since, w.code = w.Now(), code
	}
	return w.isEndless() || w.Now().Sub(w.since) < w.Patience
}

// isEndless reports whether the problem is tried again without limit. Another learner would not help: the manager
// replaces this one anyway when the spec changes, and another one would train the refused step once more.
func (w *RepairWait) isEndless() bool {
	return !w.Unattended && problem.Lookup(w.code).Retry == problem.Always
}

// Left returns the longest pause before the next try: longest, or less if the problem is not tried again for that
// long.
func (w *RepairWait) Left(longest time.Duration) time.Duration {
	if w.since.IsZero() || w.isEndless() {
		return longest
	}
	return min(longest, max(0, w.since.Add(w.Patience).Sub(w.Now())))
}

// evidenceOf returns the evidence of a problem: the failed request, or the finding of the endpoint's check.
func evidenceOf(err error) string {
	if found, ok := errors.AsType[*RejectedError](err); ok {
		return found.Message
	}
	return cmp.Or(client.EvidenceOf(err), err.Error())
}

// Accept records that the endpoint serves the run.
func (w *RepairWait) Accept() {
	if !w.since.IsZero() {
		w.Status.RemoveProblem(w.code)
		w.since, w.code = time.Time{}, ""
	}
}

// Opened records that the run has a model and that the endpoint now accepts the settings that it refused. A problem
// that is tried again only for a while counts until a step is committed.
func (w *RepairWait) Opened() {
	if w.isEndless() {
		w.Accept()
	}
}
