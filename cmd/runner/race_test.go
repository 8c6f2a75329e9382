// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && race

package main

// The runner is built with the race detector, as the tests are. It needs cgo.
func init() { buildFlags, buildEnv = []string{"-race"}, "CGO_ENABLED=1" }
