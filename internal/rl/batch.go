// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

// Rules say which slots form the batch of a step.
type Rules struct {
	// TasksPerStep is G, the groups that a step wants.
	TasksPerStep int
	// Refill takes further slots in place of dropped groups, refillFactor*G slots in all; otherwise, and
	// beyond that, the batch shrinks.
	Refill bool
	// OwnSlots reserves a range of slots for each step, refills included, so that the beginning of a batch does not
	// depend on the outcomes of the batches before it. It needs Refill.
	OwnSlots bool
	// Lag is L: step k trains on groups that version max(0, k-L) sampled.
	Lag int
	// Steps is the number of steps of the run.
	Steps int64
	// OldestVersion is the oldest that can still be sampled: 0, unless versions of the lag's window were
	// lost permanently. A step that wants an older one takes this one instead.
	OldestVersion int64
}

// refillFactor bounds the slots of a step, as a multiple of the groups that it wants.
const refillFactor = 4

// Position is the position of a run: the first step that is not trained and the first slot that no step took.
type Position struct {
	Step, Cursor int64
}

// Known looks up the outcome of a slot that a version played. It returns false while that is not known.
type Known func(slot, version int64) (Outcome, bool)

// Batch has the known results of the slots of a step.
type Batch struct {
	Step int64
	// Version of the policy that samples the batch.
	Version int64
	// First slot of the batch, and Next, the first slot after it, as far as it is known. The batch has
	// the slots from First to Next at least.
	First, Next int64
	// Certain is set when the batch ends at Next, whatever the outcomes of Missing will be.
	Certain bool
	// Members are the slots that are trained on, as far as they are known, in order.
	Members []int64
	// Missing are the slots of the batch whose outcome is not known, in order. All of them will be
	// needed: they can be leased once Version can be sampled.
	Missing []int64
}

// Decided reports whether the step can be trained: all outcomes of the batch are known. A decided batch may have
// no member; the step then advances the lineage and trains nothing.
func (b Batch) Decided() bool { return b.Certain && len(b.Missing) == 0 }

// Manifest lists the slots of a decided batch.
func (b Batch) Manifest(lookup func(slot int64) (Outcome, Digest)) Manifest {
	m := Manifest{Step: b.Step, Slots: make([]SlotDigest, 0, b.Next-b.First)}
	for slot := b.First; slot < b.Next; slot++ {
		outcome, digest := lookup(slot)
		m.Slots = append(m.Slots, SlotDigest{Slot: slot, Digest: digest, Outcome: outcome})
	}
	return m
}

// VersionOf returns the version that samples the groups of a step.
func (r Rules) VersionOf(step int64) int64 {
	return max(0, r.OldestVersion, step-int64(r.Lag))
}

// limit returns the maximum number of slots of a step.
func (r Rules) limit() int64 {
	if r.Refill {
		return refillFactor * int64(r.TasksPerStep)
	}
	return int64(r.TasksPerStep)
}

// After returns the position after a batch, which has to be Certain unless steps have slots of their own.
func (r Rules) After(b Batch) Position {
	if r.OwnSlots {
		return Position{Step: b.Step + 1, Cursor: b.First + r.limit()}
	}
	return Position{Step: b.Step + 1, Cursor: b.Next}
}

// Task returns the task of a slot. If steps have slots of their own, the first TasksPerStep slots of each step
// continue the stream from step to step, and the others play its refills.
func (r Rules) Task(stream *Stream, slot int64) Task {
	if !r.OwnSlots {
		return stream.Task(slot)
	}
	want := int64(r.TasksPerStep)
	step, place := slot/r.limit(), slot%r.limit()
	if place < want {
		return stream.Task(step*want + place)
	}
	return stream.Refill(step*want + place)
}

// Batches lays out the batches from a position on, the one of the current step first, as far as their slots are
// certain and versions up to newest can sample them. It considers nothing but the outcomes, so that the batches are
// the same in whatever order the outcomes became known, and proposes no slot that a batch will not take: once every
// batch before its own is certain to end where it does, or steps have slots of their own, a slot keeps its step, and
// with it the version that has to sample it.
//
// The batch of a step takes slots in order until it has TasksPerStep groups that count or has reached the limit of
// slots, whether it has members or not. A group that the endpoint refused (InvalidTokens) keeps its place and is only
// left out: the refusal shows only when the step is trained, too late to move the slots after it to other steps.
func (r Rules) Batches(at Position, newest int64, known Known) []Batch {
	var batches []Batch
	for at.Step < r.Steps && r.VersionOf(at.Step) <= newest {
		batch := r.batch(at, known)
		batches = append(batches, batch)
		if !batch.Certain && !r.OwnSlots {
			break
		}
		at = r.After(batch)
	}
	return batches
}

// batch lays out one batch. A slot belongs to it for certain as long as those before it could not fill it
// even if every one that is not known yet turned out to count.
func (r Rules) batch(at Position, known Known) Batch {
	b := Batch{Step: at.Step, Version: r.VersionOf(at.Step), First: at.Cursor, Next: at.Cursor}
	want, limit := int64(r.TasksPerStep), r.limit()
	for places := int64(0); places < want && b.Next-b.First < limit; b.Next++ {
		outcome, ok := known(b.Next, b.Version)
		switch {
		case !ok:
			if b.Missing == nil {
				b.Missing = make([]int64, 0, want-places)
			}
			b.Missing = append(b.Missing, b.Next)
			places++
		case outcome == Usable:
			if b.Members == nil {
				b.Members = make([]int64, 0, want-places)
			}
			b.Members = append(b.Members, b.Next)
			places++
		case outcome == InvalidTokens:
			places++
		}
	}
	b.Certain = len(b.Missing) == 0 || b.Next-b.First == limit
	return b
}
