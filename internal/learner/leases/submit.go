// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"maps"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Counters counts the outcomes of groups since the table was made.
type Counters struct {
	Accepted int64
	// Outcomes counts how often the outcome of a group became known or changed.
	Outcomes int64
}

// Submit receives a group. It is accepted once.
func (h *Handler) Submit(name string, group rl.Group, digest rl.Digest) *exchange.SubmitReply {
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.workers.observe(name, t.now())
	delete(w.playing, group.Key)
	delete(w.requested, group.Key)
	t.holders.end(name, group.Key)
	e := t.demands.entries[group.Key]
	reply := t.decide(e, group)
	switch reply.Status {
	case exchange.Accepted:
		t.counters.Accepted++
		t.counters.Outcomes++
		t.noteFault(group)
		t.demands.complete(e, t.kept(group))
		e.digest, e.from = digest, name
		if e.group.Outcome != group.Outcome {
			e.digest = e.group.Digest()
		}
	case exchange.Invalid:
		t.demands.assign(e, "")
		t.config.Logger.Warn("group is not as leased", "worker", name, "slot", group.Key.Slot, "field", reply.Field)
	}
	if reply.Status != exchange.Invalid {
		w.store(group.Key, group.Outcome)
	}
	t.changes.notify(&t.demands.tally)
	return reply
}

// maxFault limits the description of a fault, in bytes.
const maxFault = 1024

// noteFault keeps the reason of a group in which an episode ended with a fault, as the newest of its environment.
func (t *Table) noteFault(group rl.Group) {
	for _, m := range group.Members {
		if m.Outcome == rl.EnvironmentFault || m.Outcome == rl.JudgeFault {
			t.faults[group.Environment] = contract.Truncate(group.Reason, maxFault)
			return
		}
	}
}

// Faults returns the newest fault of each environment in which episodes have ended with one since the table was made.
func (t *Table) Faults() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.faults)
}

// kept returns an accepted group as the table keeps it: a group of an evaluation without segments, and a constant
// group as a tombstone if the run drops constant groups.
func (t *Table) kept(group rl.Group) *rl.Group {
	switch {
	case group.Key.Kind == rl.Evaluate:
		group = group.WithoutSegments()
	case group.Outcome == rl.Usable && t.config.DropConstant != nil && t.config.DropConstant(group):
		group = group.Tombstone(rl.Constant, "the rewards of each advantage group are equal")
	}
	return &group
}

// decide accepts or refuses a submitted group. e is nil if no consumer demands the group.
func (t *Table) decide(e *entry, group rl.Group) *exchange.SubmitReply {
	key := group.Key
	switch {
	case e == nil && key.Kind == rl.Train && key.Slot >= t.notices.covered && !t.demands.hasPolicy(key.Lineage):
		return &exchange.SubmitReply{Status: exchange.Stale}
	case e == nil:
		return &exchange.SubmitReply{Status: exchange.Closed}
	case e.isKnown():
		return &exchange.SubmitReply{Status: exchange.Duplicate}
	}
	if field := t.config.mismatch(e.lease, group); field != "" {
		return &exchange.SubmitReply{Status: exchange.Invalid, Field: field}
	}
	return &exchange.SubmitReply{Status: exchange.Accepted}
}

// mismatch names the field of a group that is not as the lease says.
func (c Config) mismatch(lease exchange.Lease, group rl.Group) string {
	if group.Environment != lease.Environment {
		return "environment"
	}
	if len(group.Members) > lease.GroupSize {
		return "members"
	}
	for i, member := range group.Members {
		if member.Index >= lease.GroupSize {
			return fmt.Sprintf("members[%d].index", i)
		}
		for j, trajectory := range member.Trajectories {
			if field := c.unfilled(trajectory, group); field != "" {
				return fmt.Sprintf("members[%d].trajectories[%d].%s", i, j, field)
			}
		}
	}
	if group.Outcome == rl.Usable && len(group.UsableMembers()) < lease.MinMembers {
		return "outcome"
	}
	return ""
}

// unfilled names a field of a trajectory that is set although the run does not want it, or missing although it does.
func (c Config) unfilled(trajectory rl.Trajectory, group rl.Group) string {
	train := group.Key.Kind == rl.Train
	if wanted := c.StepRewards && train; len(trajectory.Segments) > 0 && wanted != (len(trajectory.StepRewards) > 0) {
		return "step_rewards"
	}
	for k, segment := range trajectory.Segments {
		if wanted := c.References && train; wanted != (segment.ReferenceLogprobs != nil) {
			return fmt.Sprintf("segments[%d].reference_logprobs", k)
		}
		if wanted := c.Teachers[group.Environment] && train; wanted != (segment.TeacherLogprobs != nil) {
			return fmt.Sprintf("segments[%d].teacher_logprobs", k)
		}
	}
	return ""
}
