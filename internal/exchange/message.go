// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// These messages need no conversion. The others have Go types of their own, because they contain keys of groups or
// lineages, which are parsed once, compared, and used as keys of maps, or counters (spending.Usage), which are added
// up.
type (
	// Epoch names the sender of a message. Every message has one.
	Epoch = pb.Epoch
	// WorkerState has the waits of a worker and its observations of the endpoint.
	WorkerState = pb.WorkerState
	// EndpointProblem describes requests to the endpoint that fail.
	EndpointProblem = pb.EndpointProblem
	// Problem is a problem of the table in the package problem.
	Problem = pb.Problem
	// DataState is the progress of a worker with its data sets.
	DataState = pb.DataState
	// SubmitReply answers Submit. The server fills in its epoch.
	SubmitReply = pb.SubmitReply
	// SubmitStatus is the outcome of a submitted group. The worker stores the group until CoveredIndex passes it, with any
	// status.
	SubmitStatus = pb.SubmitReply_Status
)

// The states of a submitted group.
const (
	// Accepted means that the learner has it now.
	Accepted = pb.SubmitReply_ACCEPTED
	// Duplicate means that the learner already had it.
	Duplicate = pb.SubmitReply_DUPLICATE
	// Closed means that the slot was decided without this group.
	Closed = pb.SubmitReply_CLOSED
	// Stale means that the learner no longer trains on groups of its version.
	Stale = pb.SubmitReply_STALE
	// Invalid means that a field is wrong, such as members[2].reward; the reply names it.
	Invalid = pb.SubmitReply_INVALID
)

// The states of a worker's data sets.
const (
	// DataSettled needs no download: everything is read, or nothing can be.
	DataSettled = pb.DataState_SETTLED
	// DataWaiting waits for the permit to download.
	DataWaiting = pb.DataState_WAITING
	// DataDownloading has the permit.
	DataDownloading = pb.DataState_DOWNLOADING
)

// HelloRequest lists the groups of a worker. It is the first message to every learner.
type HelloRequest struct {
	// Stored are the finished groups and tombstones that the worker keeps.
	Stored []StoredGroup
	// Playing are the groups in progress.
	Playing []rl.Key
	// Spent is the usage of the worker's process. It names the process, so that two processes with the same worker name
	// can be told apart.
	Spent Spent
	// Groups are all groups that no saved state covers yet and for which the worker has made requests to the endpoint.
	Groups []GroupSpent
}

// GroupSpent is the usage of one group, a part of the worker's counters.
type GroupSpent struct {
	Key  rl.Key
	Used spending.Usage
}

// Spent is the usage of a worker process's requests to the endpoint since it began. Its unconfirmed tokens are the
// maximum cost of unanswered requests.
type Spent struct {
	// Process names the process; it is empty for a worker that does not count. Another process with the same worker name
	// has another value here, and its counters begin at zero.
	Process string
	Used    spending.Usage
	// Uncovered is the part of Used that belongs to groups that no saved state covers yet.
	Uncovered spending.Usage
	// Sequence rises with each message of the process, in the order in which the counters were read. The messages may
	// arrive in another order. It is 0 for a process that does not number its messages.
	Sequence int64
}

// StoredGroup is a finished group, or a tombstone, that a worker keeps.
type StoredGroup struct {
	Key     rl.Key
	Outcome rl.Outcome
}

// HelloReply answers a HelloRequest.
type HelloReply struct {
	// Wanted are the stored groups to submit.
	Wanted []rl.Key
	// Keep are the leases of those groups in progress that the worker continues; it stops the others.
	Keep []Lease
	// CoveredIndex is the first slot whose training group is still to be stored. A learner that had to open an
	// older state may name a lower one than its predecessor.
	CoveredIndex int64
	// Play is the JSON of contract.Play.
	Play []byte
	// Session is the rollout session to sample in.
	Session string
}

// Lease allows a worker to play a group.
type Lease struct {
	Key rl.Key
	// Environment is a name within the run; Split and Task belong to it.
	Environment, Split string
	Task               int64
	GroupSize          int
	MinMembers         int
	// Sampler is the path of the weights that play the group, tinker://RUN/sampler_weights/NAME, or the name of a base
	// model.
	Sampler string
	// Seed is the seed of the run, from which rl.Request.Seed derives the seeds of samples.
	Seed uint64
	// SamplingSession names the policy's sampling session within the rollout session.
	SamplingSession int64
	// Transcript says that the conversations of the members are recorded for people.
	Transcript bool
	// Alone says that the members are played one after the other, in the order of their indexes, each after a Permit
	// with its index has arrived, because workers have died while they played the group.
	Alone bool
	// Faulty are the members that are not played, since workers died while each of them was alone in play. They count as
	// faults of the environment.
	Faulty []int
}

// Permit allows a worker to play the members of a group up to an index.
type Permit struct {
	Key    rl.Key
	Member int
}

// Reasons for releasing leases.
const (
	// Drained means that the worker ends, or has lost the group.
	Drained = "drain"
	// PolicyMissing means that the sampler weights of the lease do not exist.
	PolicyMissing = "policy_gone"
	// EnvironmentDown means that the group was not played, because its environment could not be prepared.
	EnvironmentDown = "environment_down"
	// NotPlayed means that the group was not played, because the worker has said Hello since it asked for the lease.
	NotPlayed = "not_played"
	// SamplesUnanswered means that the worker does not know whether the endpoint has drawn all samples of the group, or
	// will draw one later. The worker keeps the lease, and submits the group next.
	SamplesUnanswered = "samples_unanswered"
)

// Renewal is a worker's report of its leases and of itself.
type Renewal struct {
	Progress []Progress
	Spent    Spent
	// Groups are the groups that have used more than the last message of the connection says.
	Groups []GroupSpent
	// State may be nil, since another build may leave it out.
	State *WorkerState
}

// Progress is the progress of a group.
type Progress struct {
	Key           rl.Key
	MembersDone   int
	SampledTokens int64
	// Next is the maximum cost of UnreportedRequests of each member without an outcome; it is 0 before the first request.
	Next int64
}

// UnreportedRequests is the assumed number of requests of a member since the last report of a lost worker: one for a
// reply, and one for the reference of a KL penalty, for a judge or for the next reply.
const UnreportedRequests = 2

// Directive has the orders and values for a worker. It describes the current state and not the changes, so that the
// next directive replaces a lost one.
type Directive struct {
	// Revoked are the leases that the worker no longer has. It stops playing their groups.
	Revoked []rl.Key
	// Credits limits the sample requests that the worker may have in flight.
	Credits int
	// CoveredIndex is the first slot whose training group is still to be stored.
	CoveredIndex int64
	// CoveredEvaluations are durable: their groups may be dropped.
	CoveredEvaluations []Evaluation
	// Session is the rollout session to sample in.
	Session string
	// Wanted are stored groups to submit, perhaps again.
	Wanted []rl.Key
	// Rejected groups become tombstones.
	Rejected []RejectedGroup
	// Download permits the worker to download its data sets.
	Download bool
	// Skipped are the environments whose training groups become tombstones as long as they are unavailable.
	Skipped []string
	// Permits are for groups that were leased with Alone.
	Permits []Permit
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
