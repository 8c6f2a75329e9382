// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package measure turns groups of episodes into the metrics of training steps and evaluations. Everything is a pure
// function of its arguments.
package measure
