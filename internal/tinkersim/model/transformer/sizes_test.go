// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package transformer

// gradientSequences is the number of sequences on which the gradient of a pass is checked, and on half as many long
// ones.
const gradientSequences = 4
