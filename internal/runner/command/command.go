// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of the runner. A program that has the runner within, such as kubectl tinker, runs
// it under Name.
package command

// Name is what a program is called that is to be the runner, whatever its file.
const Name = "runner"

// IsRunner reports whether a program is to be the runner, by its arguments.
func IsRunner(arguments []string) bool { return len(arguments) > 1 && arguments[0] == Name }
