// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package model

// The race detector makes arithmetic many times slower: sizes_test.go says what these are.
const independenceBatch = 20
