// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command model checks models of the protocol between learner, workers, manager and Tinker server (docs/design.md)
// by exploring all their states, breadth first, so that the trace of a broken invariant is a shortest one.
//
//	go run ./test/model                      # explores the small scenarios; exits with 1 if one differs from recorded.go
//	go run ./test/model -big                 # explores the big ones too (under 4 GB)
//	go run ./test/model -v -run written/     # prints traces of the scenarios whose name contains written/
//	go run ./test/model -list                # lists names and notes
//	go run ./test/model -big -record         # prints the table of recorded.go, to be read before it is taken over
//
// engine.go explores, fingerprints.go stores states as 64-bit fingerprints, and liveness.go requires that from every
// state a path without faults leads to completion. There are four models. protocol*.go is that of attempts of the
// learner, which may crash anywhere and run beside each other for any time, with workers that store groups, listings,
// saves in flight, samplers, rows, claims, retention, expiry, restarts of the server, suspension and evaluation.
// wire*.go is that of one learner's requests: chunks, sequence numbers, lost submits and replies, failed chunks.
// manager.go is that of the reconciler: stale caches, restarts between any two writes, late writes of a dead manager.
// sampling.go is that of one group's samples: lost futures, re-posts, workers and sessions that end.
//
// The first part of a scenario's name says what it explores: written is the protocol as it was first written, P the
// protocol as it is, minus the protocol less one clause (each breaks something), candidate another way to write rows,
// no-store a run without artifact storage, unload a fence made of unloading models, base-record another way to rank
// checkpoints; refill, room, expiry and cost are questions of their own.
//
// Content is abstract: weights are the list of batches that were applied, a group is a slot with the version that was
// asked for and the version that was sampled, a lineage is a parent with members. A state is poisoned when its weights
// are not those of its lineage. Any process may be slow for any time, so that stopping a process and continuing it
// later needs no transition of its own.
//
// The models take for granted that a request under a known (model, sequence number) is not executed again, that a
// server that lost a model answers 404 and never reuses a request id, that a listing shows every completed save, and
// that the artifact store lists what was just written. wire/no-dedupe, wire/resurrect and wire/rid-reuse show what
// happens otherwise. Constants are small: 2 or 3 steps, 1 or 2 slots a step, a lag of 0 to 2, 2 workers, 3 attempts,
// one or two faults of each kind. A finding is a real trace; a scenario that holds is proven for these constants only.
package main
