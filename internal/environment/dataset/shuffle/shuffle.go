// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package shuffle permutes rows exactly as Dataset.shuffle(seed) of the Python library datasets does, so that a split
// that was published with its seed has the same rows here. That function is NumPy's default_rng(seed).permutation(n):
// a SeedSequence seeds PCG64 in its XSL-RR variant, which is not the variant of math/rand/v2.
package shuffle

import "math/bits"

// Permutation returns the numbers from 0 to n-1 in the order of the seed. It takes 4 bytes of memory for each of them;
// n must be below 2^32.
func Permutation(seed uint64, n int64) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	generator := newPCG64(seed)
	for i := n - 1; i > 0; i-- {
		j := generator.upTo(uint32(i))
		order[i], order[j] = order[j], order[i]
	}
	return order
}

// uint128 is an unsigned number of 128 bits.
type uint128 struct{ high, low uint64 }

func (a uint128) add(b uint128) uint128 {
	low, carry := bits.Add64(a.low, b.low, 0)
	high, _ := bits.Add64(a.high, b.high, carry)
	return uint128{high, low}
}

func (a uint128) multiply(b uint128) uint128 {
	high, low := bits.Mul64(a.low, b.low)
	return uint128{high + a.high*b.low + a.low*b.high, low}
}

// multiplier is the multiplier of the generator's steps.
var multiplier = uint128{0x2360ed051fc65da4, 0x4385df649fccf645}

// pcg64 is NumPy's generator of that name.
type pcg64 struct {
	state, increment uint128
	// rest is the upper half of the last number of 64 bits, if restKnown.
	rest      uint32
	restKnown bool
}

func newPCG64(seed uint64) *pcg64 {
	words := seedWords(seed)
	sequence := uint128{words[2], words[3]}
	g := &pcg64{increment: uint128{sequence.high<<1 | sequence.low>>63, sequence.low<<1 | 1}}
	g.step()
	g.state = g.state.add(uint128{words[0], words[1]})
	g.step()
	return g
}

func (g *pcg64) step() { g.state = g.state.multiply(multiplier).add(g.increment) }

func (g *pcg64) next64() uint64 {
	g.step()
	return bits.RotateLeft64(g.state.high^g.state.low, -int(g.state.high>>58))
}

// next32 returns the lower half of a number of 64 bits, and its upper half on the next call.
func (g *pcg64) next32() uint32 {
	if g.restKnown {
		g.restKnown = false
		return g.rest
	}
	n := g.next64()
	g.rest, g.restKnown = uint32(n>>32), true
	return uint32(n)
}

// upTo returns a number from 0 to largest. It rejects numbers above it, as NumPy's random_interval does.
func (g *pcg64) upTo(largest uint32) uint32 {
	mask := uint32(1)<<bits.Len32(largest) - 1
	for {
		if n := g.next32() & mask; n <= largest {
			return n
		}
	}
}

// seedWords returns the 256 bits that NumPy's SeedSequence makes of a seed.
func seedWords(seed uint64) [4]uint64 {
	const shift = 16
	entropy := [4]uint32{uint32(seed), uint32(seed >> 32)}
	factor := uint32(0x43b0d7e5)
	hash := func(value, multiplier uint32) uint32 {
		value ^= factor
		factor *= multiplier
		value *= factor
		return value ^ value>>shift
	}
	var pool [4]uint32
	for i := range pool {
		pool[i] = hash(entropy[i], 0x931e8875)
	}
	for from := range pool {
		for to := range pool {
			if from != to {
				mixed := 0xca01f9dd*pool[to] - 0x4973f715*hash(pool[from], 0x931e8875)
				pool[to] = mixed ^ mixed>>shift
			}
		}
	}
	factor = 0x8b51f9dd
	var words [4]uint64
	for i := range 8 {
		words[i/2] |= uint64(hash(pool[i%4], 0x58f38ded)) << (32 * (i % 2))
	}
	return words
}
