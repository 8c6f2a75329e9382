// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package adapter is the model of a run at a server whose sampler weights are not snapshots: the server samples in the
// adapter that trains, and first loads the sampler weights into this adapter unless it loaded them last. A worker that
// the learner has lost may continue to sample, and a sample that no worker waits for may be drawn at any later time.
package adapter
