// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenarios lists the configurations that are explored, and the result of each.
//
// The first part of a name is the subject of a scenario: first-version is the protocol as it was first written,
// protocol the protocol as it is, minus the protocol less one clause, with a counterpart that keeps the clause,
// alternative another way to write rows, no-store a run without artifact storage, claims the same run with claims,
// unload a fence that unloads models, by-record a listing of recorded models, base-record another way to rank
// checkpoints, manager-record a resume from the manager's record; refill, capacity, expiry and cost are questions of
// their own; manager, sampling, wire, conversations, agents, adapter, credentials, suspects and spending are the models
// of these names.
package scenarios
