// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package transformer

// gradientSequences is how many sequences the gradient of a pass is checked on, and half as many long ones.
const gradientSequences = 4
