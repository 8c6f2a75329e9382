// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// maxFaults is how many tries in a row may end in faults, of at least two groups, before the breaker opens.
const maxFaults = 8

// breaker is the circuit breaker of one environment. Its monitor's lock guards it.
type breaker struct {
	name    string
	checker environment.Checker
	open    bool
	problem string
	// code is the code of the problem.
	code problem.Code
	// pauses are the pauses before checks. They grow until an episode succeeds.
	pauses wait.Pauses
	// running counts episodes that have begun and not ended.
	running int
	// faults counts the tries since the last success that have begun and ended in faults. firstSlot is the slot of the
	// first of them, and several says that they belong to several slots.
	faults    int
	firstSlot int64
	several   bool
}

// trip opens the breaker, or replaces the problem of a breaker that is open.
func (b *breaker) trip(err error) {
	b.open, b.problem = true, contract.Truncate(err.Error(), maxEvidence)
	b.code = transport.Refine(problem.EnvironmentUnavailable, err)
}

// close closes the breaker. The next episodes are a trial: the pause stays until one succeeds.
func (b *breaker) close() { b.open, b.problem, b.faults, b.several = false, "", 0, false }

// succeed notes an episode without a fault.
func (b *breaker) succeed() { b.pauses.Failures, b.faults, b.several = 0, 0, false }

// fail notes a try that ended in a fault, and reports whether the breaker has to open. A server that takes no session
// while episodes are in progress may be at its capacity.
func (b *breaker) fail(fault *environment.Fault, slot int64) bool {
	switch {
	case b.open || fault.Interrupted || fault.Kind != environment.EnvironmentFault:
		return false
	case fault.Unavailable:
		return b.running == 0
	}
	if b.faults == 0 {
		b.firstSlot = slot
	}
	b.faults++
	b.several = b.several || slot != b.firstSlot
	return b.faults >= maxFaults && b.several
}
