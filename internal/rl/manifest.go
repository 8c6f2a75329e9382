// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

// Manifest lists the slots of a step's batch in slot order: the groups that were trained on and the tombstones that
// were passed.
type Manifest struct {
	Step  int64
	Slots []SlotDigest
}

// SlotDigest is one slot of a batch.
type SlotDigest struct {
	Slot    int64
	Digest  Digest
	Outcome Outcome
}

// Digest covers every field of the manifest.
func (m Manifest) Digest() Digest {
	c := newCanonical("tinker-operator manifest 1")
	c.int(m.Step)
	c.int(int64(len(m.Slots)))
	for _, s := range m.Slots {
		c.int(s.Slot)
		c.int(int64(s.Outcome))
		c.bytes(s.Digest[:])
	}
	return c.sum()
}

// Digest covers everything of the group that affects the weights: its key and outcome and, if it is usable, the
// trajectories of its usable members in the order of their indexes. It leaves out values that may differ between two
// plays that are the same to the optimizer: counts of tokens and retries, reasons, metrics, the rewards of whole
// episodes, and members that faulted. The digest of a tombstone covers its key and outcome alone.
func (g Group) Digest() Digest {
	c := newCanonical("tinker-operator group 1")
	g.Key.write(c)
	c.int(int64(g.Outcome))
	if g.Outcome != Usable {
		return c.sum()
	}
	members := g.UsableMembers()
	c.int(int64(len(members)))
	for _, m := range members {
		c.int(int64(m.Index))
		c.int(int64(len(m.Trajectories)))
		for _, t := range m.Trajectories {
			t.write(c)
		}
	}
	return c.sum()
}

func (t Trajectory) write(c *canonical) {
	c.text(t.Role)
	c.text(t.Key)
	c.float(t.Reward)
	c.int(int64(len(t.StepRewards)))
	for _, reward := range t.StepRewards {
		c.float(reward)
	}
	c.int(int64(len(t.Segments)))
	for _, s := range t.Segments {
		s.write(c)
		c.int(int64(len(s.Steps)))
		for _, step := range s.Steps {
			c.int(int64(step.Index))
			c.int(int64(step.End))
		}
	}
}

func (k Key) write(c *canonical) {
	c.int(int64(k.Kind))
	c.int(k.Slot)
	c.bytes(k.Lineage[:])
	c.text(k.Evaluation)
}

func (s Segment) write(c *canonical) {
	c.int(int64(s.Turn))
	c.int32s(s.Tokens)
	c.bools(s.Actions)
	c.float32s(s.Logprobs)
	c.float32s(s.ReferenceLogprobs)
	if s.Weights != nil {
		c.float32s(s.Weights)
	}
	if s.TeacherLogprobs != nil {
		c.text("teacher")
		c.float32s(s.TeacherLogprobs)
	}
}
