// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout is a rollout worker: it leases groups from the learner, plays them with the policy that the lease
// names, and stores finished groups until the learner's saved state covers them. It depends neither on Kubernetes nor
// on how groups become gradients.
//
// # Every group that was paid for is used
//
// A worker drops a group once covered_index has passed it or its evaluation is durable, and before that only for lack
// of room (package groupstore). It does not drop a group because the group was accepted, is a duplicate, or came too
// late. The worker reports to a new learner which groups it stores and plays, and the learner requests those that it
// wants. Without a learner the worker continues to play its leases.
//
// # The same tokens from every worker
//
// A reply is seeded by the run's seed, slot, member, try, conversation and content of the request, and numbered by the
// same and a counter of re-posts within the sampling session of its policy (rl.Request). A worker that takes over a
// group posts the same numbers and is answered with the samples that are already paid for. A future that is lost
// permanently is posted under the next counter, with the same seed.
//
// # Goroutines
//
// Run starts and joins all goroutines: one stays connected to the learner, one reads the tokenizer and data sets, one
// acquires leases, one submits groups, one keeps the rollout session alive, and each leased group has one, with one
// more for each of its members.
package rollout
