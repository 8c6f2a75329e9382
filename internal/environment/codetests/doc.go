// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package codetests rewards programs: it runs what a reply has written in a sandbox, once for each test of the row, and
// compares what it says with what the test expects. No expected output reaches the sandbox. A program over its own
// limits has failed its test; what keeps programs from running is nobody's fault, and the test is run later.
package codetests
