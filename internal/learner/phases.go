// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
)

// phase is one action of the protocol. Once do has succeeded, the run passes the fault point of the same name.
type phase[S sequence] struct {
	name string
	// interruptible phases end early when the learner is to drain; the others run to their end.
	interruptible bool
	do            func(S, context.Context) error
}

// sequence is the state that the phases of one table share.
type sequence interface {
	// number returns the step that is being made, or -1 while no state is loaded.
	number() int64
}

// perform does the phases in order and stops at the first error. Interruptible phases end with soft; fault
// may be nil.
func perform[S sequence](ctx, soft context.Context, state S, phases []phase[S], fault Fault) error {
	for _, p := range phases {
		lasting := ctx
		if p.interruptible {
			lasting = soft
		}
		if err := p.do(state, lasting); err != nil {
			return err
		}
		if fault == nil {
			continue
		}
		if err := fault(ctx, p.name, state.number()); err != nil {
			return err
		}
	}
	return nil
}
