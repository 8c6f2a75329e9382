// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package adapter is the model of a run at a server whose sampler weights are not snapshots: it samples them in the
// adapter that trains, and loads them into it unless they were loaded last. A worker that the learner has lost may
// continue to sample, and a sample that nobody waits for may be drawn at any later time.
package adapter
