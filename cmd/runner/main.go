// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// The runner is process 1 of the container that runs the code of users: it starts programs for a worker, bounds them
// and has them answer calls. docs/runner.md describes it.
package main

import (
	"os"

	"github.com/tinker-operator/tinker-operator/internal/runner/command"
)

func main() { os.Exit(command.Main(os.Args[1:], os.Getenv)) }
