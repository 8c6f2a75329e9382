// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package shuffle

import "math/bits"

// Python returns the indexes 0 to n-1 in the order of Python's random.Random(seed).shuffle.
func Python(seed uint32, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	g := newTwister(seed)
	for i := n - 1; i > 0; i-- {
		j := g.below(uint32(i + 1))
		order[i], order[j] = order[j], order[i]
	}
	return order
}

// The parameters of MT19937.
const (
	twisterWords  = 624
	twisterMiddle = 397
	upperBit      = 0x80000000
	twist         = 0x9908b0df
)

// twister is the generator MT19937.
type twister struct {
	state [twisterWords]uint32
	next  int
}

// newTwister returns a generator that is seeded by an array of one number, as in Python.
func newTwister(seed uint32) *twister {
	g := &twister{next: twisterWords}
	s := &g.state
	s[0] = 19650218
	for i := 1; i < twisterWords; i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + uint32(i)
	}
	i := 1
	step := func(factor, add uint32, subtract bool) {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*factor) + add
		if subtract {
			s[i] -= uint32(i)
		}
		if i++; i >= twisterWords {
			s[0], i = s[twisterWords-1], 1
		}
	}
	for range twisterWords {
		step(1664525, seed, false)
	}
	for range twisterWords - 1 {
		step(1566083941, 0, true)
	}
	s[0] = upperBit
	return g
}

// next32 returns 32 bits.
func (g *twister) next32() uint32 {
	if g.next >= twisterWords {
		g.refill()
	}
	y := g.state[g.next]
	g.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (g *twister) refill() {
	s := &g.state
	for i := range s {
		y := s[i]&upperBit | s[(i+1)%twisterWords]&^upperBit
		s[i] = s[(i+twisterMiddle)%twisterWords] ^ y>>1
		if y&1 == 1 {
			s[i] ^= twist
		}
	}
	g.next = 0
}

// below returns a number from 0 to n-1; n must be positive.
func (g *twister) below(n uint32) uint32 {
	for {
		if r := g.next32() >> (32 - bits.Len32(n)); r < n {
			return r
		}
	}
}
