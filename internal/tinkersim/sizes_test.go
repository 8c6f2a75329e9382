// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package tinkersim_test

import "time"

// longPromptLimit bounds the processor time that the reply to a prompt of 30,000 tokens takes.
const longPromptLimit = 5 * time.Second
