// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"slices"
)

// phase is one act of the protocol. Once do has succeeded the fault point of its name is passed.
type phase[S sequence] struct {
	name string
	// interruptible phases end early when the learner is to drain; the others run to their end.
	interruptible bool
	do            func(S, context.Context) error
}

// sequence is the state that the phases of one table share.
type sequence interface {
	// number is the step that is being made, and -1 while no state is loaded.
	number() int64
}

// The order of these tables is the protocol: see the package comment.
var (
	// beginPhases are done once in an attempt.
	beginPhases = []phase[*beginning]{
		{name: "open.claimed", interruptible: true, do: (*beginning).claim},
		{name: "open.pinned", interruptible: true, do: (*beginning).pinTokenizer},
		{name: "open.probed", interruptible: true, do: (*beginning).check},
		{name: "open.connected", interruptible: true, do: (*beginning).connect},
	}
	// openPhases open a model from the newest state, at the beginning and after a model was thrown away.
	openPhases = []phase[*modelOpening]{
		{name: "open.listed", interruptible: true, do: (*modelOpening).list},
		{name: "open.loaded", interruptible: true, do: (*modelOpening).load},
		{name: "open.saved", do: (*modelOpening).save},
		{name: "open.looked", do: (*modelOpening).look},
		{name: "open.admitted", do: (*modelOpening).admit},
	}
	// stepPhases make the next version and have it sampled.
	stepPhases = []phase[*step]{
		{name: "step.sampled", interruptible: true, do: (*step).collect},
		{name: "step.submitted", do: (*step).submit},
		{name: "replies.clean", do: (*step).wait},
		{name: "sampler.announced", do: (*step).announce},
		{name: "step.measured", do: (*step).record},
	}
	// commitPhases make the version at hand durable; the clean reply to the save is the commit.
	commitPhases = []phase[*commit]{
		{name: "row.written", do: (*commit).writeRows},
		{name: "save.submitted", do: (*commit).submit},
		{name: "save.done-unanswered", do: (*commit).wait},
		{name: "save.answered", do: (*commit).add},
		{name: "claim.looked", do: (*commit).look},
		{name: "covered.sent", do: (*commit).cover},
		{name: "retire.before", do: (*commit).evaluate},
		{name: "retire.begun", do: (*commit).retire},
	}
)

// FaultPoints names the points at which Config.Fault is called, in the order in which a run passes them.
func FaultPoints() []string {
	return slices.Concat(names(beginPhases), names(openPhases), names(stepPhases), names(commitPhases))
}

func names[S sequence](phases []phase[S]) []string {
	list := make([]string, 0, len(phases))
	for _, p := range phases {
		list = append(list, p.name)
	}
	return list
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
