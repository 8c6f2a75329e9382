// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package measure turns groups of episodes into metrics: those of a training step, and those of an evaluation.
// Everything is a pure function of its arguments.
package measure
