// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenarios lists the configurations that are explored, and the result of each.
//
// The first part of a name is the subject of a scenario: first-version is the protocol as it was first written,
// protocol the protocol as it is, minus the protocol less one clause (each breaks something), alternative another way
// to write rows, no-store a run without artifact storage, unload a fence made of unloading models, base-record another
// way to rank checkpoints; refill, capacity, expiry and cost are questions of their own; manager, sampling, wire,
// adapter and credentials are the models of these names.
package scenarios
