// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package command

import (
	"fmt"
	"os"
)

// Main reports that the runner needs Linux. It returns the exit code.
func Main([]string, func(string) string) int {
	fmt.Fprintln(os.Stderr, "The runner needs Linux.")
	return 1
}
