// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package survival kills, stops and misleads learners and workers at every point that matters, against the
// real simulator, and checks that the run ends as an undisturbed one does: with the same weights, bit for
// bit, and each step once in metrics.jsonl.
package survival
