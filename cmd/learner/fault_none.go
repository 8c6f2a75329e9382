// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !faults

package main

import (
	"github.com/tinker-operator/tinker-operator/internal/learner"
)

// requestedFault returns no fault: only tests build a learner that has some.
func requestedFault() (learner.Fault, error) { return nil, nil }
