// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package exchange connects the rollout workers of a run to its learner: by gRPC over TLS with the run's own
// certificate and token. It carries leases one way and finished groups the other. It checks that both sides belong to
// the same run, refuses learners of superseded attempts, and validates messages. It decides nothing about slots, leases
// or groups: the learner does, by its Handler. It knows neither Tinker nor Kubernetes.
//
// # Fencing
//
// A worker sends the highest attempt that it knows of. A learner of a lower attempt is superseded: it answers FENCED
// to everything from then on, and ServerConfig.Fenced is called once. When a worker gets a reply of a learner with a
// higher attempt, it notes that attempt, and refuses every reply of a lower attempt.
//
// # Hello
//
// A learner refuses every call of a worker that has not said Hello to it. The worker dials again, through DNS,
// after every error and whenever a Renew stream ends, after 60 s at most, and says Hello on each new
// connection. Pings notice within 20 s that a learner was stopped or that the network drops everything.
package exchange
