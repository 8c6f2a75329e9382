// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import "errors"

// FaultKind says whose fault it was.
type FaultKind uint8

// The kinds of faults. A fault never becomes a reward: it is retried, then left out and counted.
const (
	EnvironmentFault FaultKind = iota
	JudgeFault
)

// Fault is a failure of the environment or of a judge.
type Fault struct {
	Kind FaultKind
	// Permanent says that a retry would fail alike.
	Permanent bool
	Err       error
}

// Error implements error.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap gives the cause.
func (f *Fault) Unwrap() error { return f.Err }

// AsFault gives err as a Fault. An error that is none counts as the environment's and as passing; the
// caller has dealt with the context's own errors before.
func AsFault(err error) *Fault {
	var fault *Fault
	if errors.As(err, &fault) {
		return fault
	}
	return &Fault{Kind: EnvironmentFault, Err: err}
}
