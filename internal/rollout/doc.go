// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout is a rollout worker: it leases groups from the learner, plays them with the policy that
// the lease names, and holds what it finished until the learner's saved state covers it. It knows neither
// Kubernetes nor how groups become gradients.
//
// # What was paid for is used
//
// A group leaves the worker's hands for one reason: covered_index passed it, or its evaluation is durable.
// That it was accepted, is a duplicate, or came too late is no reason. A learner that starts anew is told
// what is held and what is being played, and asks for what it wants. Without a learner the worker plays on
// what it has leased.
//
// # The same tokens whoever plays
//
// A reply is seeded by the run's seed, slot, member, request and try, and numbered by the same and a
// counter of re-posts within the sampling session of its policy. A worker that takes over a group posts the
// same numbers and is answered with the samples that are already paid for. A promise that is lost for good
// is asked for under the next counter, with the same seed.
//
// # Goroutines
//
// Run starts them all and joins them: one attends the learner, one acquires leases, one submits, one keeps
// the rollout session alive, and each leased group has one, with one more for each of its members.
package rollout
