// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package transformer

// The race detector makes arithmetic many times slower: sizes_test.go explains the constant.
const gradientSequences = 1
