// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package runner starts programs for a caller, passes calls to them, and bounds their resources. Programs may be
// hostile: their output is checked line by line, and nothing that they do ends the runner. docs/runner.md has the
// protocol and the states of a process and of a session.
package runner
