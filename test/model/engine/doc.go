// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine explores all states of a finite model, breadth first: it checks invariants, and that from every
// state a path without faults leads to completion.
package engine
