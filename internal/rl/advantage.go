// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"iter"
	"math"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// Advantages gives the advantage of each member, by group and place in Group.Members. Members that are not
// usable, and groups that are tombstones, get zeros and count for no mean.
//
// A member's reward is first centred: GroupMean subtracts the mean of the group, LeaveOneOut the mean of
// the others in it, BatchMean the mean over all groups, None nothing. Then GroupStd or BatchStd divides by
// the standard deviation of what is left, over the group or over all groups, with the divisor n - DDoF.
// Where all centred values are equal the deviation is 0 and a scale gives zeros; so does a deviation that
// DDoF leaves undefined. A group of equal rewards gives exact zeros under GroupMean and LeaveOneOut, and so
// does a member without others under LeaveOneOut. Sums are taken in float64 in the order of the groups,
// results are rounded to float32.
func Advantages(groups []Group, a contract.Advantage) [][]float32 {
	rewards := make([]cell, 0, len(groups))
	for g, group := range groups {
		for m, member := range group.Members {
			if group.Outcome == Usable && member.Outcome == Usable {
				rewards = append(rewards, cell{group: g, member: m, value: member.Reward})
			}
		}
	}
	centre(rewards, a.Baseline)
	rescale(rewards, a)
	out := make([][]float32, len(groups))
	for g := range groups {
		out[g] = make([]float32, len(groups[g].Members))
	}
	for _, c := range rewards {
		out[c.group][c.member] = float32(c.value)
	}
	return out
}

// cell is a member's value on its way from reward to advantage.
type cell struct {
	group, member int
	value         float64
}

func centre(cells []cell, baseline contract.Baseline) {
	switch baseline {
	case contract.BaselineGroupMean:
		eachGroup(cells, subtractMean)
	case contract.BaselineLeaveOneOut:
		eachGroup(cells, subtractOthers)
	case contract.BaselineBatchMean:
		subtractMean(cells)
	case contract.BaselineNone:
	}
}

func rescale(cells []cell, a contract.Advantage) {
	switch a.Scale {
	case contract.ScaleGroupStd:
		eachGroup(cells, func(group []cell) { divideByDeviation(group, a.DDoF) })
	case contract.ScaleBatchStd:
		divideByDeviation(cells, a.DDoF)
	case contract.ScaleNone:
	}
}

// eachGroup calls f with the cells of one group after the other.
func eachGroup(cells []cell, f func([]cell)) {
	for start := 0; start < len(cells); {
		end := start
		for end < len(cells) && cells[end].group == cells[start].group {
			end++
		}
		f(cells[start:end])
		start = end
	}
}

// subtractMean gives exact zeros where all values are equal but for rounding.
func subtractMean(cells []cell) {
	if isConstant(cells) {
		for i := range cells {
			cells[i].value = 0
		}
		return
	}
	baseline := mean(cells)
	for i := range cells {
		cells[i].value -= baseline
	}
}

func subtractOthers(cells []cell) {
	n := float64(len(cells))
	subtractMean(cells)
	if n == 1 {
		return
	}
	for i := range cells {
		cells[i].value *= n / (n - 1)
	}
}

func mean(cells []cell) float64 {
	sum := 0.0
	for _, c := range cells {
		sum += c.value
	}
	return sum / float64(len(cells))
}

func isConstant(cells []cell) bool {
	return AreConstant(func(yield func(float64) bool) {
		for _, c := range cells {
			if !yield(c.value) {
				return
			}
		}
	})
}

// constantWithin is how much numbers may differ by rounding, relative to the greatest of them or to 1.
const constantWithin = 1e-8

// AreConstant reports whether numbers are equal but for rounding: sums of the same rewards in another order differ in
// the last bits.
func AreConstant(numbers iter.Seq[float64]) bool {
	low, high := math.Inf(1), math.Inf(-1)
	for v := range numbers {
		low, high = min(low, v), max(high, v)
	}
	return high-low <= constantWithin*max(1, math.Abs(low), math.Abs(high))
}

func divideByDeviation(cells []cell, ddof int) {
	deviation := deviation(cells, ddof)
	for i := range cells {
		if deviation == 0 {
			cells[i].value = 0
			continue
		}
		cells[i].value /= deviation
	}
}

// deviation is 0 where it is undefined.
func deviation(cells []cell, ddof int) float64 {
	if len(cells) <= ddof || isConstant(cells) {
		return 0
	}
	centre, squares := mean(cells), 0.0
	for _, c := range cells {
		d := c.value - centre
		squares += float64(d * d)
	}
	return math.Sqrt(squares / float64(len(cells)-ddof))
}
