// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package engine

// Successors collects the successors of one state. A rule calls Copy, changes the copy, and calls Step or Fault.
type Successors[S any] struct {
	// From is the state, and To the latest copy of it.
	From *S
	To   S
	emit func(act Act, fault bool, to *S)
}

// NewSuccessors returns a collector of the successors of a state. It calls emit with each successor.
func NewSuccessors[S any](from *S, emit func(act Act, fault bool, to *S)) *Successors[S] {
	return &Successors[S]{From: from, emit: emit}
}

// Copy sets To to a copy of From, and returns a pointer to To.
func (x *Successors[S]) Copy() *S {
	x.To = *x.From
	return &x.To
}

// Step emits To as the system's next step.
func (x *Successors[S]) Step(kind uint8, operands ...uint8) {
	x.emit(act(kind, operands), false, &x.To)
}

// Fault emits To as the result of a fault.
func (x *Successors[S]) Fault(kind uint8, operands ...uint8) {
	x.emit(act(kind, operands), true, &x.To)
}

// act labels a transition with up to three operands.
func act(kind uint8, operands []uint8) Act {
	var all [3]uint8
	copy(all[:], operands)
	return Act{Kind: kind, A: all[0], B: all[1], C: all[2]}
}
