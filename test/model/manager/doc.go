// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager is the model of the reconciler: stale caches, restarts between any two writes, and late writes of a
// dead manager. Training is not modelled.
package manager
