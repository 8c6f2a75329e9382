// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"encoding/binary"
	"fmt"
)

// Seed is the seed of one sample request: a function of the algorithm's seed and of what is sampled, never of a
// run's name or uid, a worker or a try of the network, so that every worker that plays the slot gets
// the same tokens. The turn counts the requests of an episode in the order in which the environment asked; the try
// counts faults of the environment or judge. The seed has 63 bits: servers keep it in a signed integer.
func Seed(runSeed uint64, kind Kind, slot int64, member, turn, try int) uint64 {
	return derive("tinker-operator sample seed 1", runSeed, uint64(kind), uint64(slot), uint64(member), uint64(turn),
		uint64(try))
}

// SharedSeed is the seed of a sample request that several members share. Member is the first of them, and sample i of
// the request is that of member+i. No request of one member has the same seed.
func SharedSeed(runSeed uint64, kind Kind, slot int64, member, turn int) uint64 {
	return derive("tinker-operator shared sample seed 1", runSeed, uint64(kind), uint64(slot), uint64(member),
		uint64(turn))
}

// EpisodeSeed is for what an environment draws itself in one episode.
func EpisodeSeed(runSeed uint64, kind Kind, slot int64, member, try int) uint64 {
	return derive("tinker-operator episode seed 1", runSeed, uint64(kind), uint64(slot), uint64(member), uint64(try))
}

// JudgeSeed is for what grades the reply to one sample request.
func JudgeSeed(runSeed uint64, kind Kind, slot int64, member, turn, try int) uint64 {
	return derive("tinker-operator judge seed 1", runSeed, uint64(kind), uint64(slot), uint64(member), uint64(turn),
		uint64(try))
}

// derive hashes numbers to 63 bits.
func derive(tag string, numbers ...uint64) uint64 {
	c := newCanonical(tag)
	for _, n := range numbers {
		c.uint(n)
	}
	sum := c.sum()
	return binary.LittleEndian.Uint64(sum[:8]) >> 1
}

// Bits of a sequence id, lowest first. They sum up to 63.
const (
	repostBits = 8
	tryBits    = 6
	turnBits   = 11
	memberBits = 10
	slotBits   = 27
)

// SequenceID numbers a sample request within its sampling session. A worker that plays a slot again under
// the same numbers is answered with the samples that are already paid for. repost counts replies that
// the server lost permanently, and is not part of the seed. A number that does not fit is an error.
func SequenceID(kind Kind, slot int64, member, turn, try, repost int) (int64, error) {
	id := int64(kind)
	for _, part := range []struct {
		name  string
		value int64
		bits  uint
	}{
		{"slot", slot, slotBits},
		{"member", int64(member), memberBits},
		{"turn", int64(turn), turnBits},
		{"try", int64(try), tryBits},
		{"repost", int64(repost), repostBits},
	} {
		if part.value < 0 || part.value >= 1<<part.bits {
			return 0, fmt.Errorf("numbering sample: %s %d is not below %d", part.name, part.value, int64(1)<<part.bits)
		}
		id = id<<part.bits | part.value
	}
	return id, nil
}

// SamplingSession numbers the sampling session of a policy within a rollout session, in 48 bits. Keyed by
// the whole lineage it never answers with samples of another policy; an evaluation has one of its own,
// since its groups are numbered from 0, too.
func SamplingSession(kind Kind, lineage Lineage, plan string) int64 {
	c := newCanonical("tinker-operator sampling session 1")
	Key{Kind: kind, Lineage: lineage, Evaluation: plan}.write(c)
	sum := c.sum()
	return int64(binary.LittleEndian.Uint64(sum[:8]) & (1<<48 - 1))
}
