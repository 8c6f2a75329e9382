// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"fmt"
	"sort"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// Names of the splits of arithmetic.
const (
	trainSplit = "train"
	testSplit  = "test"
)

// maxOperandBound keeps a row's search and the counts small.
const maxOperandBound = 9999

// testBelow is a fifth of the hash's range.
const testBelow = ^uint64(0) / 5

// Arithmetic is all sums a + b of operands from 0 to a largest one.
//
// About a fifth of the sums are in the split test, the others in train. A hash of the operands decides, and
// it is the same hash for a + b and b + a: a sum is never held out of one order and trained in the other.
// Rows are ordered by a, then b. Nothing but a count for each a is kept in memory.
type Arithmetic struct {
	operands int64
	// tests[a] is the number of test rows whose left operand is below a.
	tests []int64
}

// NewArithmetic gives the sums of operands from 0 to maxOperand, which is from 1 to 9999.
func NewArithmetic(maxOperand int) (*Arithmetic, error) {
	if maxOperand < 1 || maxOperand > maxOperandBound {
		return nil, fmt.Errorf("maxOperand is %d, it must be from 1 to %d", maxOperand, maxOperandBound)
	}
	d := &Arithmetic{operands: int64(maxOperand) + 1, tests: make([]int64, maxOperand+2)}
	for a := range d.operands {
		for b := range a {
			if heldOut(a, b) {
				d.tests[a+1]++
				d.tests[b+1]++
			}
		}
		if heldOut(a, a) {
			d.tests[a+1]++
		}
	}
	for a := range d.operands {
		d.tests[a+1] += d.tests[a]
	}
	return d, nil
}

// Splits implements Dataset. A split without rows is left out.
func (d *Arithmetic) Splits() []environment.Split {
	test := d.tests[d.operands]
	splits := make([]environment.Split, 0, 2)
	if test > 0 {
		splits = append(splits, environment.Split{Name: testSplit, Tasks: test})
	}
	return append(splits, environment.Split{Name: trainSplit, Tasks: d.operands*d.operands - test})
}

// Row implements Dataset.
func (d *Arithmetic) Row(split string, index int64) (Row, error) {
	count, ok := d.counter(split)
	if !ok || index < 0 || index >= count(d.operands) {
		return Row{}, &RowError{Split: split, Index: index}
	}
	a := int64(sort.Search(int(d.operands), func(a int) bool { return count(int64(a)+1) > index }))
	left := index - count(a)
	for b := range d.operands {
		if heldOut(a, b) != (split == testSplit) {
			continue
		}
		if left == 0 {
			return sum(a, b), nil
		}
		left--
	}
	return Row{}, &RowError{Split: split, Index: index}
}

// counter gives how many rows of the split have a left operand below a.
func (d *Arithmetic) counter(split string) (count func(a int64) int64, ok bool) {
	switch split {
	case testSplit:
		return func(a int64) int64 { return d.tests[a] }, true
	case trainSplit:
		return func(a int64) int64 { return a*d.operands - d.tests[a] }, true
	default:
		return nil, false
	}
}

func sum(a, b int64) Row {
	return Row{Prompt: fmt.Sprintf("What is %d + %d?", a, b), Answer: strconv.FormatInt(a+b, 10)}
}

// heldOut says whether a + b belongs to the split test.
func heldOut(a, b int64) bool {
	return mix(uint64(min(a, b))<<32|uint64(max(a, b))) < testBelow
}

// mix is the finaliser of SplitMix64: each bit of x decides about half of the result's.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

var _ Dataset = (*Arithmetic)(nil)
