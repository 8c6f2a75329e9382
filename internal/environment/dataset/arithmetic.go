// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"fmt"
	"sort"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// Arithmetic has these splits.
const (
	trainSplit = "train"
	testSplit  = "test"
)

// maxOperandBound keeps the search of a row fast and the table of counts small.
const maxOperandBound = 9999

// testThreshold is a fifth of the range of the hash.
const testThreshold = ^uint64(0) / 5

// Arithmetic consists of all sums a + b of operands from 0 to a maximum.
//
// About a fifth of the sums are in the split test, the others in train. A hash of the operands decides, and it is the
// same for a + b and b + a: a sum is never tested in one order and trained in the other. Rows are ordered by a, then
// b. Memory holds only one count for each a.
type Arithmetic struct {
	operands int64
	// tests[a] is the number of test rows whose left operand is below a.
	tests []int64
}

// NewArithmetic returns the sums of operands from 0 to maxOperand, which must be from 1 to 9999.
func NewArithmetic(maxOperand int) (*Arithmetic, error) {
	if maxOperand < 1 || maxOperand > maxOperandBound {
		return nil, fmt.Errorf("maxOperand is %d, it must be from 1 to %d", maxOperand, maxOperandBound)
	}
	d := &Arithmetic{operands: int64(maxOperand) + 1, tests: make([]int64, maxOperand+2)}
	for a := range d.operands {
		for b := range a {
			if isTestRow(a, b) {
				d.tests[a+1]++
				d.tests[b+1]++
			}
		}
		if isTestRow(a, a) {
			d.tests[a+1]++
		}
	}
	for a := range d.operands {
		d.tests[a+1] += d.tests[a]
	}
	return d, nil
}

// Splits implements Dataset. A split without rows is left out.
func (d *Arithmetic) Splits(context.Context) ([]environment.Split, error) {
	test := d.tests[d.operands]
	splits := make([]environment.Split, 0, 2)
	if test > 0 {
		splits = append(splits, environment.Split{Name: testSplit, Tasks: test})
	}
	return append(splits, environment.Split{Name: trainSplit, Tasks: d.operands*d.operands - test}), nil
}

// Row implements Dataset.
func (d *Arithmetic) Row(_ context.Context, split string, index int64) (Row, error) {
	count, ok := d.counter(split)
	if !ok || index < 0 || index >= count(d.operands) {
		return Row{}, noRow(split, index)
	}
	a := int64(sort.Search(int(d.operands), func(a int) bool { return count(int64(a)+1) > index }))
	left := index - count(a)
	for b := range d.operands {
		if isTestRow(a, b) != (split == testSplit) {
			continue
		}
		if left == 0 {
			return sum(a, b), nil
		}
		left--
	}
	return Row{}, noRow(split, index)
}

// counter returns a function that counts the rows of the split whose left operand is below a.
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
	return NewRow(fmt.Sprintf("What is %d + %d?", a, b), strconv.FormatInt(a+b, 10))
}

// isTestRow reports whether a + b belongs to the split test.
func isTestRow(a, b int64) bool {
	return mix(uint64(min(a, b))<<32|uint64(max(a, b))) < testThreshold
}

// mix is the finaliser of SplitMix64: each bit of x flips about half of the result's bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

var _ Dataset = (*Arithmetic)(nil)
