// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import "github.com/tinker-operator/tinker-operator/internal/rl"

// Epoch says whose message it is. Every message carries one.
type Epoch struct {
	RunUID string
	// SpecDigest digests the fixed part of the run's spec.
	SpecDigest string
	// Attempt of the learner; from a worker, the highest that it has heard of, 0 at first.
	Attempt int32
}

// HelloRequest is what a worker has, said first to every learner it gets to speak to.
type HelloRequest struct {
	// Stored are the finished groups and tombstones that it keeps.
	Stored []StoredGroup
	// Playing are the groups that it has under way.
	Playing []rl.Key
}

// StoredGroup is a finished group, or a tombstone, that a worker keeps.
type StoredGroup struct {
	Key     rl.Key
	Outcome rl.Outcome
}

// HelloReply is what the learner answers.
type HelloReply struct {
	// Wanted are the held groups to submit.
	Wanted []rl.Key
	// Keep are the leases of what the worker is playing and is to go on with; the rest of it is to be
	// given up.
	Keep []Lease
	// CoveredIndex is the first slot whose training group is still to be held. A learner that had to open
	// an older state may name a lower one than its predecessor.
	CoveredIndex int64
	// Play is the JSON of runspec.Play.
	Play []byte
	// Session to sample under.
	Session string
}

// Lease allows a worker to play a group.
type Lease struct {
	Key rl.Key
	// Environment by its name in the run, and Split and Task of it.
	Environment, Split string
	Task               int64
	GroupSize          int
	MinMembers         int
	// Sampler is the weights that play the group, tinker://RUN/sampler_weights/NAME.
	Sampler string
	// Seed of the run; rl.Seed derives those of samples.
	Seed uint64
	// SamplingSession names the policy's sampling session within the rollout session.
	SamplingSession int64
}

// Renewal is what a worker says of its leases.
type Renewal struct {
	Progress []Progress
	// Throttled counts the endpoint's answers 429 since the last renewal.
	Throttled int
	// QueueState is active, paused_capacity or paused_rate_limit; empty when the endpoint says nothing.
	QueueState string
}

// Progress of a group under way.
type Progress struct {
	Key           rl.Key
	MembersDone   int
	SampledTokens int64
}

// Directive is what a worker has to know by now. It states how things are, not what changed, so that one
// that is lost is made good by the next.
type Directive struct {
	// Revoked leases are no longer the worker's: it stops to play them.
	Revoked []rl.Key
	// Credits are the sample requests that the worker may have under way.
	Credits int
	// CoveredIndex is the first slot whose training group is still to be held.
	CoveredIndex int64
	// CoveredEvaluations are durable: their groups may be let go of.
	CoveredEvaluations []Evaluation
	// Session to sample under.
	Session string
	// Wanted are held groups to submit, again perhaps.
	Wanted []rl.Key
	// Rejected groups become tombstones.
	Rejected []RejectedGroup
}

// Evaluation names one evaluation of one version of the policy.
type Evaluation struct {
	Digest  string
	Lineage rl.Lineage
}

// RejectedGroup is a group that turned out to be untrainable.
type RejectedGroup struct {
	Key     rl.Key
	Outcome rl.Outcome
	Reason  string
}

// SubmitStatus is what became of a submitted group. None of them frees it: CoveredIndex does.
type SubmitStatus uint8

// The verdicts.
const (
	// Accepted: the learner has it now.
	Accepted SubmitStatus = iota
	// Duplicate: the learner had it.
	Duplicate
	// Closed: the slot was decided without this group.
	Closed
	// Stale: its policy is of no use.
	Stale
	// Invalid: a field is wrong.
	Invalid
)

// String gives the verdict's name in lower case.
func (v SubmitStatus) String() string {
	switch v {
	case Accepted:
		return "accepted"
	case Duplicate:
		return "duplicate"
	case Closed:
		return "closed"
	case Stale:
		return "stale"
	default:
		return "invalid"
	}
}

// SubmitReply answers Submit.
type SubmitReply struct {
	Status SubmitStatus
	// Field that is wrong, such as members[2].reward, for Invalid.
	Field string
}
