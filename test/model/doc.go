// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command model checks models of the protocol between learner, workers, manager and Tinker server (docs/design.md)
// by exploring all their states, breadth first, so that the trace of a broken invariant is a shortest one.
//
//	go run ./test/model                            # explores the small scenarios; exits with 1 if one differs from its record
//	go run ./test/model -big                       # explores the big ones too (under 4 GB)
//	go run ./test/model -v -run first-version/     # prints traces of the scenarios whose name contains first-version/
//	go run ./test/model -list                      # lists names and notes
//	go run ./test/model -big -record               # prints the table of scenarios/recorded.go, to be read before it is taken over
//
// Package engine explores. Each model is a package: protocol models attempts of the learner, with workers and server;
// wire one learner's requests; manager the reconciler; sampling one group's samples; conversations a program that asks
// the policy in several conversations at once; agents an agent that does not say which conversation it continues;
// adapter a server that samples in the adapter that trains; credentials who may fence a learner; suspects a member that
// ends workers; spending the records of learners' requests. Package scenarios lists the scenarios.
//
// The models take for granted that a request under a known (model, sequence number) is not executed again, that a
// server that lost a model answers 404 and never reuses a request id, that a listing shows every completed save, and
// that the artifact store lists files that were just written. wire/no-dedupe, wire/resurrect and wire/reuse-request-id
// show what happens otherwise. Constants are small: 2 or 3 steps, 1 or 2 slots a step, a lag of 0 to 2, 2 workers,
// 3 attempts, one or two faults of each kind. A finding is a real trace; a scenario that holds is proven for these
// constants only.
package main
