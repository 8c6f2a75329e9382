// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving answers people and programs with the weights of checkpoints. It renders conversations with the
// renderer of the run, and serves the dialects of package dialect over HTTP. The caller decides on the sampling,
// unlike in an episode.
//
// The Tinker API returns a sample once it is complete. So a reply that streams is sampled in pieces. Each piece
// continues the prompt with the tokens before it. The text of a piece is shown only as far as no later token can change
// its meaning.
package serving
