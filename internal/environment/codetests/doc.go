// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package codetests rewards programs: it runs the program of a reply in a sandbox, once for each test of the row, and
// compares its output with the expected output. No expected output reaches the sandbox. A program over its own limits
// has failed its test; if the sandbox cannot run programs, the test is run later.
package codetests
