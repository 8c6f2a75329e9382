// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"errors"
	"fmt"
)

// Datum is a segment as the loss takes it: shifted by one, so that Targets[i] is the token that follows Tokens[i],
// and the other slices refer to the target. All slices that are not nil have the same length. They are parts of the
// segment's slices, so that a batch of data takes little memory beside its groups.
type Datum struct {
	// Slot, Member (its place in Group.Members), Trajectory and Segment identify its source.
	Slot                        int64
	Member, Trajectory, Segment int
	// Role is the role of the trajectory.
	Role            string
	Tokens, Targets []int32
	// Logprobs under the sampling policy; 0 if the target is not an action.
	Logprobs []float32
	// Advantage is the advantage of all actions. If they differ, Advantages has one for each target instead, which is 0 if
	// the target is not an action.
	Advantage  float32
	Advantages []float32
	// Mask marks actions. Only the loss gspo takes it; it stays with the client otherwise.
	Mask []bool
	// ReferenceLogprobs is nil if there is no KL penalty.
	ReferenceLogprobs []float32
	// TeacherLogprobs is nil if there is no teacher.
	TeacherLogprobs []float32
	// Weights of the loss cross_entropy; nil for data that the policy sampled.
	Weights []float32
}

// NewDatum returns the datum of a valid segment of a trajectory with the given advantage.
func NewDatum(s Segment, a Advantage) Datum {
	d := Datum{
		Tokens: s.Tokens[:len(s.Tokens)-1], Targets: s.Tokens[1:],
		Logprobs: s.Logprobs[1:], Mask: s.Actions[1:],
	}
	if a.ByStep {
		d.Advantages = a.ofSteps(s)
	} else {
		d.Advantage = a.Values[0]
	}
	if s.ReferenceLogprobs != nil {
		d.ReferenceLogprobs = s.ReferenceLogprobs[1:]
	}
	if s.TeacherLogprobs != nil {
		d.TeacherLogprobs = s.TeacherLogprobs[1:]
	}
	if s.Weights != nil {
		d.Weights = s.Weights[1:]
	}
	return d
}

// TargetAdvantages returns the advantage of each target, which is 0 if the target is not an action. The caller must not
// change it.
func (d Datum) TargetAdvantages() []float32 {
	if d.Advantages != nil {
		return d.Advantages
	}
	advantages := make([]float32, len(d.Targets))
	for i, action := range d.Mask {
		if action {
			advantages[i] = d.Advantage
		}
	}
	return advantages
}

// Spread sets Advantages from Advantage, so that they can be changed one by one.
func (d *Datum) Spread() {
	d.Advantages, d.Advantage = d.TargetAdvantages(), 0
}

// Datums turns the segments of usable members into training data, in the order of groups, members, trajectories and
// segments. advantages is the result of Advantages for the same groups. A segment whose advantage groups are all
// dropped has no datum.
func Datums(groups []Group, advantages [][][]Advantage) ([]Datum, error) {
	if len(advantages) != len(groups) {
		return nil, errors.New("making training data: advantages are not of these groups")
	}
	var datums []Datum
	for g, group := range groups {
		if group.Outcome != Usable {
			continue
		}
		if len(advantages[g]) != len(group.Members) {
			return nil, fmt.Errorf("making training data: %d advantages for the %d members of slot %d",
				len(advantages[g]), len(group.Members), group.Key.Slot)
		}
		for m, member := range group.Members {
			own, err := member.datums(advantages[g][m])
			if err != nil {
				return nil, fmt.Errorf("making training data of member %d of slot %d: %w", member.Index, group.Key.Slot, err)
			}
			for i := range own {
				own[i].Slot, own[i].Member = group.Key.Slot, m
			}
			datums = append(datums, own...)
		}
	}
	return datums, nil
}

// datums returns the training data of a member with the advantages of its trajectories.
func (m Member) datums(advantages []Advantage) ([]Datum, error) {
	if m.Outcome != Usable {
		return nil, nil
	}
	if len(advantages) != len(m.Trajectories) {
		return nil, fmt.Errorf("%d advantages for %d trajectories", len(advantages), len(m.Trajectories))
	}
	var datums []Datum
	for place, t := range m.Trajectories {
		a := advantages[place]
		if !a.fits(t) {
			return nil, fmt.Errorf("trajectory %d has rewards of %d steps and %d advantages", place, len(t.StepRewards),
				len(a.Values))
		}
		for i, s := range t.Segments {
			if a.isDropped(s) {
				continue
			}
			d := NewDatum(s, a)
			d.Trajectory, d.Segment, d.Role = place, i, t.Role
			datums = append(datums, d)
		}
	}
	return datums, nil
}

// SplitSubsteps returns the edges that part n datums into substeps: part i goes from edges[i] to edges[i+1], edge i
// being floor(i*n/parts). There are at most as many parts as datums.
func SplitSubsteps(n, substeps int) []int {
	parts := min(n, substeps)
	edges := make([]int, parts+1)
	for i := range edges {
		edges[i] = i * n / max(parts, 1)
	}
	return edges
}
