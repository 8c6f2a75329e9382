// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of the runner. A program that has the runner within, such as kubectl tinker, runs
// it under Name.
package command

import "github.com/tinker-operator/tinker-operator/internal/runner/spawn"

// Name is the name of a program that is to be the runner, for any file.
const Name = "runner"

// IsRunner reports whether a program is to be the runner, or a part of it, by its arguments.
func IsRunner(arguments []string) bool {
	return len(arguments) > 1 && (arguments[0] == Name || arguments[1] == spawn.Argument)
}
