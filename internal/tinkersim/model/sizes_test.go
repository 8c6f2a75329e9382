// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package model

// independenceBatch is the number of requests of the test of batch independence.
const independenceBatch = 256
