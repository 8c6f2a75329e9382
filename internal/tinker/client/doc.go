// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package client is a client of the Tinker API for sessions, training, sampling and checkpoints. It never
// logs keys, tokens or prompts.
//
// # Operations of a model
//
// A Model numbers its operations from 1 and submits them one after the other. If the reply to a submit is lost, the
// client sends the submit again under the same number, and no other operation ever gets this number, so that the
// server can distinguish a repeat from a new operation. A submit returns a request id, and a Future fetches the
// result by long polls in the background.
//
// # Encodings
//
// Training data are sent in protobuf, or in JSON to servers that do not read protobuf, which FindEncoding finds out.
// Results are accepted in both.
//
// # Retries
//
// Replies 408, 429, 402 and 5xx, and calls without a reply, are repeated until the context ends. The delay is the one
// that the server asks for, or it doubles from half a second to thirty seconds; each delay is up to a quarter longer
// than that. After 413 the data of forward_backward are sent in smaller chunks; if the server, or a proxy in front of
// it, rejects the size of a single datum, the call waits until it is accepted. Replies 409 to other calls than saves
// are repeated four times. All other errors are final. Config.Observe receives the errors that a call retries.
package client
