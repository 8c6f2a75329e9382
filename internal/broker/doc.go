// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package broker passes on the Tinker requests of many runs under one API key, which no run has. A run authorizes
// itself by a token of its own, and reaches nothing that another run made under the key.
//
// # Confinement
//
// The server gives one key access to everything that was made under it. When the reply to a run's request names a new
// session, model, sampling session or future, the broker records the run as its owner, and stores the record before
// the reply passes. A checkpoint belongs to the owner of its model. A request passes if the run may use everything
// that the request names; otherwise the answer is 404, as for an object that does not exist. A listing contains only
// the run's own objects. A route that the broker does not know does not pass.
//
// # Passing through
//
// A request goes on as it came: with its sequence number, at once, and only once. The server alone recognises
// repeats. The broker repeats a request only if the server rejected the JWT that the broker had got for the key, or
// if an idle connection was closed before anything was written. A large body is not repeated after a rejection,
// because its start is not held any more. An answer of the broker's own has a code of package problem, and says
// whether the server may have executed the request.
//
// A body is held, and checked before any of it goes on. A large body goes on while it is parsed. Its last part waits
// until the whole body is permitted, so that the server never has a whole request that is not permitted.
//
// # Settings
//
// The manager's settings of an endpoint and its runs take effect while the broker serves. Command broker is the
// process. Of several such processes, only the holder of a Lease admits requests and records owners.
//
// # Counting and sharing
//
// With a Meter, the broker counts for each run what the server bills, and answers 402 to a run whose budget is
// reached. With a Gate, a submit waits for its turn. Polls wait for neither. Method admit asks both before a request
// is forwarded; passReply and delivered note in both what became of the request.
package broker
