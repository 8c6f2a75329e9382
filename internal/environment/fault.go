// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import "errors"

// FaultKind tells whether the environment or a judge has failed.
type FaultKind uint8

// A fault is the environment's or a judge's. It never becomes a reward: the episode is retried, then left out and
// counted.
const (
	EnvironmentFault FaultKind = iota
	JudgeFault
)

// Fault is a failure of the environment or of a judge.
type Fault struct {
	Kind FaultKind
	// Permanent means that a retry would fail, too.
	Permanent bool
	// Unavailable means that the episode could not begin, because the environment's server accepts no sessions at all.
	// It says nothing about the task: the same try begins again once the server is available.
	Unavailable bool
	// Interrupted means that the episode has met an outage that is not its own. It says nothing about the task or the
	// environment: the same try is played again.
	Interrupted bool
	Err         error
}

// Error implements error.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// AsFault returns err as a Fault. An error that is not a Fault counts as a temporary fault of the environment. The
// caller must handle the context's own errors first.
func AsFault(err error) *Fault {
	if fault, ok := errors.AsType[*Fault](err); ok {
		return fault
	}
	return &Fault{Kind: EnvironmentFault, Err: err}
}
