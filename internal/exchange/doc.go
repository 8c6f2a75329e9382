// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package exchange is how the learner and the rollout workers of a run speak to one another: gRPC over TLS
// with the run's own certificate and token. It carries leases one way and finished groups the other, checks
// that both sides are of the same run and that no learner of a superseded attempt is obeyed, and checks what
// it hands on. It decides nothing about slots, leases or groups: the learner's scheduler does, behind
// Handler. It knows neither Tinker nor Kubernetes.
//
// # Fencing
//
// A worker states the highest attempt that it has heard of. A learner of a lower one is a zombie: it
// answers FENCED to everything from then on, and is told so, once, by ServerConfig.Fenced. A learner of a
// higher one is new: its reply teaches the worker. Replies of a lower attempt than the highest heard of are
// never believed.
//
// # Hello
//
// A learner answers nothing to a worker that has not said Hello to it. The worker dials anew, through DNS,
// after every error and whenever a Renew stream ends, after 60 s at most, and says Hello on each new
// connection. A learner that is stopped, or a network that swallows everything, is noticed within 20 s by
// pings of the connection.
package exchange
