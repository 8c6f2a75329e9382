// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package tinkersim_test

import "time"

// longPromptLimit bounds the time until a prompt of 30,000 tokens is answered.
const longPromptLimit = 5 * time.Second
