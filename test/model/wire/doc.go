// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire is the model of one learner's requests: chunks, sequence numbers, submits whose answer is lost, replies
// that are lost, chunks that fail, and a server that restarts. Content is kept as counts: how often each step's chunks
// entered each optimizer update.
package wire
