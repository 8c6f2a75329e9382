// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package broker passes the Tinker requests of many runs on under one API key, which no run has. A run authorizes
// itself by a token of its own, and reaches nothing that another run made under the key.
//
// # Confinement
//
// The server gives one key access to everything that was made under it. The broker records which run owns each session,
// model, sampling session and future, by the replies that made them, and stores the record before the reply passes. A
// checkpoint belongs to the owner of its model. A request passes if the run may use everything that the request names;
// otherwise the answer is 404, as for an object that does not exist. A listing contains the run's own objects alone. A
// route that the broker does not know does not pass.
//
// # Passing through
//
// A request goes on as it came: with its sequence number, at once, and once. The server alone recognises repeats. The
// broker repeats a request only after the server rejected the JWT, which the broker exchanges for the key, and only
// where the server has not begun to read it. An answer of the broker's own has a code of package problem, and says
// whether the server may have executed the request.
//
// A body is held, and checked before any of it goes on. A large one goes on while it is parsed, but for its last part,
// which follows once all of the body is permitted: the server has no whole request that is not.
//
// # Settings
//
// What the manager says of an endpoint and its runs takes force while the broker serves. Command broker has the
// process: of several the one that holds a Lease admits requests and records owners.
//
// # Counting and sharing
//
// With a Meter, what the server bills is counted by run, and a run whose budget is reached gets 402. With a Gate, a
// submit waits for its turn. Polls wait for nothing. Both are asked in admit, before a request is forwarded, and told
// in passReply and delivered what became of it.
package broker
