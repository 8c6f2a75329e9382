// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"iter"
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
)

// Advantage is the advantage of the sampled tokens of one trajectory: a single value for all of them or, if the run
// compares single steps, one for each step.
type Advantage struct {
	Values []float32
	// ByStep is set where Values has one for each step.
	ByStep bool
	// Dropped marks the values whose advantage group is dropped. It is nil when none is.
	Dropped []bool
}

// fits reports whether the advantage has the shape of a valid trajectory.
func (a Advantage) fits(t Trajectory) bool {
	if !a.ByStep {
		return len(a.Values) == 1
	}
	return len(a.Values) == len(t.StepRewards) && (len(t.StepRewards) > 0 || len(t.Segments) == 0)
}

// ofSteps returns the advantage of each target of a segment, whose steps have advantages of their own.
func (a Advantage) ofSteps(s Segment) []float32 {
	advantages := make([]float32, len(s.Tokens)-1)
	start := 1
	for _, step := range s.Steps {
		for i := start; i < step.End; i++ {
			if s.Actions[i] {
				advantages[i-1] = a.Values[step.Index]
			}
		}
		start = max(start, step.End)
	}
	return advantages
}

// isDropped reports whether the advantage groups of all parts of a segment are dropped.
func (a Advantage) isDropped(s Segment) bool {
	if a.Dropped == nil {
		return false
	}
	if !a.ByStep {
		return a.Dropped[0]
	}
	return !slices.ContainsFunc(s.Steps, func(step Step) bool { return !a.Dropped[step.Index] })
}

// Advantages returns the advantage of each trajectory, by group, place in Group.Members and place in
// Member.Trajectories. Groups that are tombstones and members that are not usable get no advantage, and are not part of
// any mean.
//
// Trajectories are compared within advantage groups, which the algorithm's grouping forms (see IsConstant). A reward
// is first centred: GroupMean subtracts the mean of the advantage group, LeaveOneOut the mean of the others in it,
// BatchMean the mean over all rewards of the role, None nothing. Then GroupStd or BatchStd divides the difference by
// its standard deviation over the advantage group or over the role, with the divisor n - DDoF. Each role has its own
// baseline and scale. If the algorithm drops constant groups, advantage groups of equal rewards are dropped first,
// unless a teacher has scored them.
//
// If all centred values are equal, the deviation is 0 and a scale gives zeros; so does a deviation that DDoF leaves
// undefined. A group of equal rewards gives exact zeros under GroupMean and LeaveOneOut, and so does a trajectory
// without others under LeaveOneOut. Sums are taken in float64 in the order of the groups, results are rounded to
// float32.
func Advantages(groups []Group, alg algorithm.Algorithm) [][][]Advantage {
	out := make([][][]Advantage, len(groups))
	var cells []cell
	for g, group := range groups {
		out[g] = make([][]Advantage, len(group.Members))
		if group.Outcome != Usable {
			continue
		}
		for m, member := range group.Members {
			if member.Outcome != Usable {
				continue
			}
			for _, t := range member.Trajectories {
				out[g][m] = append(out[g][m], Advantage{
					Values: make([]float32, len(t.rewards(alg.Grouping))), ByStep: alg.Grouping == algorithm.GroupingStep,
				})
			}
		}
		cells = append(cells, cellsOf(group, g, alg.Grouping)...)
	}
	if alg.ConstantGroups == algorithm.DropConstantGroups {
		taught := make([]bool, len(groups))
		for i, group := range groups {
			taught[i] = group.isTaught()
		}
		cells = dropConstant(cells, out, taught)
	}
	centre(cells, alg)
	rescale(cells, alg)
	for _, c := range cells {
		out[c.group.group][c.member][c.trajectory].Values[c.step] = float32(c.value)
	}
	return out
}

// IsConstant reports whether a usable group has nothing to learn from: whether all rewards are equal in each of its
// advantage groups. These are, by the algorithm's grouping, the trajectories of one role (Trajectory), the steps of one
// index of the trajectories of one role (Step), or the trajectories of one member (Episode). A group that a teacher has
// scored is never constant.
func (g Group) IsConstant(grouping algorithm.Grouping) bool {
	if g.isTaught() {
		return false
	}
	for _, cells := range partition(cellsOf(g, 0, grouping), byGroup) {
		if !isConstant(cells) {
			return false
		}
	}
	return true
}

// isTaught reports whether a teacher has scored the group.
func (g Group) isTaught() bool {
	for _, m := range g.Members {
		for _, t := range m.Trajectories {
			for _, s := range t.Segments {
				if s.TeacherLogprobs != nil {
					return true
				}
			}
		}
	}
	return false
}

// cell is a reward on its way to an advantage.
type cell struct {
	// group is the advantage group.
	group groupKey
	// role is the role whose baseline and scale apply.
	role                     string
	member, trajectory, step int
	value                    float64
}

// groupKey identifies an advantage group within a batch. Fields that do not distinguish groups are zero.
type groupKey struct {
	// group is the place of the slot's group in the batch.
	group  int
	role   string
	step   int
	member int
}

// cellsOf returns the rewards of the usable members of a group, in the order of members, trajectories and steps.
func cellsOf(group Group, place int, grouping algorithm.Grouping) []cell {
	var cells []cell
	for m, member := range group.Members {
		if member.Outcome != Usable {
			continue
		}
		for t, trajectory := range member.Trajectories {
			for step, reward := range trajectory.rewards(grouping) {
				key := groupKey{group: place, role: trajectory.Role, step: step}
				if grouping == algorithm.GroupingEpisode {
					key = groupKey{group: place, member: m}
				}
				cells = append(cells, cell{group: key, role: trajectory.Role, member: m, trajectory: t, step: step, value: reward})
			}
		}
	}
	return cells
}

// rewards returns the rewards of a trajectory that are compared: its steps' rewards, or its own.
func (t Trajectory) rewards(grouping algorithm.Grouping) []float64 {
	if grouping == algorithm.GroupingStep {
		return t.StepRewards
	}
	return []float64{t.Reward}
}

func byGroup(c *cell) groupKey { return c.group }

func byRole(c *cell) string { return c.role }

// partition returns the cells of each key, in the order of the keys' first cells. The cells are shared with the
// argument.
func partition[K comparable](cells []cell, key func(*cell) K) [][]*cell {
	var parts [][]*cell
	places := map[K]int{}
	for i := range cells {
		c := &cells[i]
		place, ok := places[key(c)]
		if !ok {
			place = len(parts)
			places[key(c)] = place
			parts = append(parts, nil)
		}
		parts[place] = append(parts[place], c)
	}
	return parts
}

// dropConstant leaves out the advantage groups whose rewards are all equal, and marks them in the result. It keeps
// groups that are taught.
func dropConstant(cells []cell, out [][][]Advantage, taught []bool) []cell {
	dropped := map[groupKey]bool{}
	for _, part := range partition(cells, byGroup) {
		dropped[part[0].group] = isConstant(part) && !taught[part[0].group.group]
	}
	return slices.DeleteFunc(cells, func(c cell) bool {
		if !dropped[c.group] {
			return false
		}
		a := &out[c.group.group][c.member][c.trajectory]
		if a.Dropped == nil {
			a.Dropped = make([]bool, len(a.Values))
		}
		a.Dropped[c.step] = true
		return true
	})
}

// centre subtracts the baselines of their roles from rewards.
func centre(cells []cell, alg algorithm.Algorithm) {
	of := func(b algorithm.Baseline) func(algorithm.Advantage) bool {
		return func(a algorithm.Advantage) bool { return a.Baseline == b }
	}
	var results transformation
	for _, group := range partition(cells, byGroup) {
		results.apply(group, alg, of(algorithm.BaselineGroupMean), subtractMean)
		results.apply(group, alg, of(algorithm.BaselineLeaveOneOut), subtractOthers)
	}
	for _, role := range partition(cells, byRole) {
		results.apply(role, alg, of(algorithm.BaselineBatchMean), subtractMean)
	}
	results.store()
}

// rescale divides centred rewards by the scales of their roles.
func rescale(cells []cell, alg algorithm.Algorithm) {
	var results transformation
	for ddof := range int32(2) {
		of := func(s algorithm.Scale) func(algorithm.Advantage) bool {
			return func(a algorithm.Advantage) bool { return a.Scale == s && a.DDoF == ddof }
		}
		divide := func(values []float64) { divideByDeviation(values, int(ddof)) }
		for _, group := range partition(cells, byGroup) {
			results.apply(group, alg, of(algorithm.ScaleGroupStd), divide)
		}
		for _, role := range partition(cells, byRole) {
			results.apply(role, alg, of(algorithm.ScaleBatchStd), divide)
		}
	}
	results.store()
}

// transformation collects new values, so that all of them are computed from the old ones: an advantage group may
// contain several roles.
type transformation struct {
	cells  []*cell
	values []float64
}

// apply computes new values from the values of all cells of a part, and sets them in the cells whose role's estimator
// wants them.
func (t *transformation) apply(part []*cell, alg algorithm.Algorithm, wants func(algorithm.Advantage) bool,
	f func([]float64)) {
	if !slices.ContainsFunc(part, func(c *cell) bool { return wants(alg.AdvantageOf(c.role)) }) {
		return
	}
	values := make([]float64, len(part))
	for i, c := range part {
		values[i] = c.value
	}
	f(values)
	for i, c := range part {
		if wants(alg.AdvantageOf(c.role)) {
			t.cells, t.values = append(t.cells, c), append(t.values, values[i])
		}
	}
}

// store replaces the old values.
func (t *transformation) store() {
	for i, c := range t.cells {
		c.value = t.values[i]
	}
}

// subtractMean subtracts the mean. It gives exact zeros if all values are equal except for rounding.
func subtractMean(values []float64) {
	if areConstant(slices.Values(values)) {
		clear(values)
		return
	}
	baseline := mean(values)
	for i := range values {
		values[i] -= baseline
	}
}

func subtractOthers(values []float64) {
	n := float64(len(values))
	subtractMean(values)
	if n == 1 {
		return
	}
	for i := range values {
		values[i] *= n / (n - 1)
	}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func isConstant(part []*cell) bool {
	return areConstant(func(yield func(float64) bool) {
		for _, c := range part {
			if !yield(c.value) {
				return
			}
		}
	})
}

// constantWithin is the difference of numbers that may be due to rounding, relative to the greatest of them or to 1.
const constantWithin = 1e-8

// areConstant reports whether numbers are equal except for rounding: sums of the same rewards in another order differ
// in the last bits.
func areConstant(numbers iter.Seq[float64]) bool {
	low, high := math.Inf(1), math.Inf(-1)
	for v := range numbers {
		low, high = min(low, v), max(high, v)
	}
	return high-low <= constantWithin*max(1, math.Abs(low), math.Abs(high))
}

func divideByDeviation(values []float64, ddof int) {
	deviation := deviation(values, ddof)
	if deviation == 0 {
		clear(values)
		return
	}
	for i := range values {
		values[i] /= deviation
	}
}

// deviation returns the standard deviation of values, or 0 if it is undefined.
func deviation(values []float64, ddof int) float64 {
	if len(values) <= ddof || areConstant(slices.Values(values)) {
		return 0
	}
	centre, squares := mean(values), 0.0
	for _, v := range values {
		d := v - centre
		squares += float64(d * d)
	}
	return math.Sqrt(squares / float64(len(values)-ddof))
}
