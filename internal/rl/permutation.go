// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import "math/bits"

// permutation is a seeded bijection of [0, n), computed element by element in constant memory: a balanced
// Feistel network over the next power of four, walked until it comes back into range.
type permutation struct {
	n    uint64
	half uint
	keys [feistelRounds]uint64
}

const (
	feistelRounds = 8
	// feistelMinHalf keeps the network of a small range from having few permutations.
	feistelMinHalf = 4
)

// newPermutation is a function of its arguments; the scope distinguishes permutations under one seed.
func newPermutation(n int64, seed uint64, scope string, pass int64) permutation {
	p := permutation{n: uint64(n), half: feistelMinHalf}
	for p.half < 31 && uint64(1)<<(2*p.half) < p.n {
		p.half++
	}
	c := newCanonical("tinker-operator permutation 1")
	c.uint(seed)
	c.text(scope)
	c.int(pass)
	key := c.sum()
	state := uint64(0)
	for i := range p.keys {
		for _, b := range key[4*i : 4*i+4] {
			state = mix(state ^ uint64(b))
		}
		p.keys[i] = state
	}
	return p
}

// at returns the element at position i of [0, n).
func (p permutation) at(i int64) int64 {
	x := uint64(i)
	for {
		x = p.encrypt(x)
		if x < p.n {
			return int64(x)
		}
	}
}

func (p permutation) encrypt(x uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	left, right := x>>p.half, x&mask
	for _, key := range p.keys {
		left, right = right, left^(mix(right^key)&mask)
	}
	return left<<p.half | right
}

// mix is a bijection of 64 bits in which every output bit depends on every input bit: multiplications by
// odd constants between shifts.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// interleave spreads counts evenly: of the sum(counts) positions, source s gets counts[s], its j-th at about (j + 1/2)
// / counts[s] of the way. It returns the source at a position, and the rank of the position among the source's. Ties go
// to the first source. All arithmetic is in integers, so that the result is the same on every machine.
func interleave(counts []int64, position int64) (source int, rank int64) {
	low, high := uint64(0), uint64(1)<<interleaveBits
	for low < high {
		middle := low + (high-low)/2
		if dueSum(counts, middle) > position {
			high = middle
			continue
		}
		low = middle + 1
	}
	before := position
	if low > 0 {
		before = position - dueSum(counts, low-1)
	}
	for s, n := range counts {
		first := int64(0)
		if low > 0 {
			first = due(n, low-1)
		}
		if due(n, low) == first {
			continue
		}
		if before == 0 {
			return s, first
		}
		before--
	}
	return len(counts) - 1, counts[len(counts)-1] - 1
}

const interleaveBits = 62

// due counts the elements of a source of n that lie at or before time/2^62 of the way: the whole part of
// n * time/2^62 + 1/2.
func due(n int64, time uint64) int64 {
	high, low := bits.Mul64(2*uint64(n), time)
	low, carry := bits.Add64(low, 1<<interleaveBits, 0)
	return int64((high+carry)<<(63-interleaveBits) | low>>(interleaveBits+1))
}

func dueSum(counts []int64, time uint64) int64 {
	sum := int64(0)
	for _, n := range counts {
		sum += due(n, time)
	}
	return sum
}
