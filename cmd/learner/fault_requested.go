// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package main

import (
	"os"

	"github.com/tinker-operator/tinker-operator/internal/learner"
)

// requestedFault returns the fault of TINKER_OPERATOR_FAULT, by which tests end or stop the process at a fault point.
func requestedFault() (learner.Fault, error) {
	return parseFault(os.Getenv("TINKER_OPERATOR_FAULT"))
}
