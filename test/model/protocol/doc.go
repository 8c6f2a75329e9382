// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package protocol is the model of attempts of the learner, which may crash anywhere and run beside each other for any
// time. It covers workers that store groups, listings, saves in flight, samplers, rows, claims, retention, expiry,
// restarts of the server, suspension and evaluation. A step is one transition here; package wire divides it into calls.
//
// Content is abstract: weights are the list of batches that were applied, a group is a slot with the version that was
// asked for and the version that was sampled, a lineage is a parent with members. A state is corrupt if its weights
// differ from the weights of its lineage. Any process may be slow for any time, so a process that is stopped and
// continued later needs no transition of its own.
package protocol
