// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tinker speaks the Tinker API: the bodies of its requests and answers, the one table of errors,
// and a client for sessions, training, sampling and checkpoints. The simulator builds its server from the
// same bodies. The package knows nothing of reinforcement learning or Kubernetes, and never logs keys,
// tokens or prompts.
//
// # Operations of a model
//
// A Model numbers its operations from 1 and submits them one after the other. A submit whose answer was
// lost is sent again under its own number, and a number never goes to another operation; so the server can
// tell a repeat from something new. A submit ends in a request id, and the result is fetched by long polls
// that a Future does in the background.
//
// # Retries
//
// Answers 408, 429, 402 and 5xx, and calls without an answer, are repeated for as long as the context
// lives, after the delay that the server asks for or one that doubles from half a second to thirty.
// Everything else is final. Whoever wants to know meanwhile sets Config.Observe.
package tinker
