// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import "encoding/binary"

// Use is the purpose of a request. Each use has seeds and numbers of its own.
type Use string

// The uses of requests.
const (
	// UsePolicy is a reply of one member.
	UsePolicy Use = "policy"
	// UseSharedPrompt is one reply for each of several members. The request names the first member.
	UseSharedPrompt Use = "shared prompt"
	// UseReference is the log-probabilities of a reference.
	UseReference Use = "reference"
	// UseTeacher is the log-probabilities of a teacher.
	UseTeacher Use = "teacher"
	// UsePrompt is the log-probabilities of a prompt under the policy.
	UsePrompt Use = "prompt"
	// UseJudge grades the reply to a request.
	UseJudge Use = "judge"
)

// Request identifies a request of an episode by its content. The order of requests is no part of it, since the
// conversations of an episode may ask at the same time. The run's name and uid, the worker and the tries of the network
// are no parts of it either, so that every worker that plays the slot gets the same tokens.
type Request struct {
	Kind   Kind
	Slot   int64
	Member int
	// Try counts faults of the environment or judge.
	Try int
	// Conversation is the key of the conversation that asks.
	Conversation string
	// Content of the request.
	Content Digest
	// Repeat counts how often the conversation has asked the same before.
	Repeat int
}

// Content is a prompt with the settings of its sampling.
type Content struct {
	Prompt      []int32
	MaxTokens   int
	Temperature float64
	TopP        float64
	TopK        int
	StopTokens  []int32
	StopStrings []string
}

// Digest covers every field.
func (c Content) Digest() Digest {
	d := newCanonical("tinker-operator request content 1")
	d.int32s(c.Prompt)
	d.int(int64(c.MaxTokens))
	d.float(c.Temperature)
	d.float(c.TopP)
	d.int(int64(c.TopK))
	d.int32s(c.StopTokens)
	d.int(int64(len(c.StopStrings)))
	for _, stop := range c.StopStrings {
		d.text(stop)
	}
	return d.sum()
}

// Seed is the seed of the request in a run. It has 63 bits: servers keep it in a signed integer.
func (r Request) Seed(use Use, runSeed uint64) uint64 {
	c := newCanonical("tinker-operator request seed 1")
	r.write(c, use)
	c.uint(runSeed)
	return first63(c)
}

// maxNumber bounds the numbers of requests.
const maxNumber = 1_000_000_000_000_000_000

// Number numbers the request within its sampling session. A worker that makes the same request again is answered with
// the samples that are already paid for. The number of reposts counts replies that the server lost permanently; it is
// not a part of the seed.
func (r Request) Number(use Use, reposts int) int64 {
	c := newCanonical("tinker-operator request number 1")
	r.write(c, use)
	c.int(int64(reposts))
	return int64(first63(c) % maxNumber)
}

func (r Request) write(c *canonical, use Use) {
	c.text(string(use))
	c.int(int64(r.Kind))
	c.int(r.Slot)
	c.int(int64(r.Member))
	c.int(int64(r.Try))
	c.text(r.Conversation)
	c.bytes(r.Content[:])
	c.int(int64(r.Repeat))
}

// EpisodeSeed is the seed of an environment's own random numbers in one episode.
func EpisodeSeed(runSeed uint64, kind Kind, slot int64, member, try int) uint64 {
	c := newCanonical("tinker-operator episode seed 1")
	for _, n := range []uint64{runSeed, uint64(kind), uint64(slot), uint64(member), uint64(try)} {
		c.uint(n)
	}
	return first63(c)
}

// first63 ends a digest, and returns its first 63 bits.
func first63(c *canonical) uint64 {
	sum := c.sum()
	return binary.LittleEndian.Uint64(sum[:8]) >> 1
}

// SamplingSession numbers the sampling session of a policy within a rollout session, in 48 bits. Since it is keyed by
// the whole lineage, it never answers with samples of another policy. An evaluation has a session of its own, since its
// groups are numbered from 0 as well.
func SamplingSession(kind Kind, lineage Lineage, plan string) int64 {
	c := newCanonical("tinker-operator sampling session 1")
	Key{Kind: kind, Lineage: lineage, Evaluation: plan}.write(c)
	sum := c.sum()
	return int64(binary.LittleEndian.Uint64(sum[:8]) & (1<<48 - 1))
}
