// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of the runner. A program that contains the runner, such as kubectl tinker, runs
// it under Name.
package command

import "github.com/tinker-operator/tinker-operator/internal/runner/spawn"

// Name is the name under which any file that contains the runner is executed as the runner.
const Name = "runner"

// IsRunner reports whether the arguments of a program, with its name first, make it the runner or a part of the
// runner.
func IsRunner(arguments []string) bool {
	return len(arguments) > 1 && (arguments[0] == Name || arguments[1] == spawn.Argument)
}
