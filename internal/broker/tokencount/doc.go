// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokencount counts the tokens of requests and results of the Tinker API while they pass, without holding them.
// Counters are writers. Where a body says something twice, all of it counts, so that no body counts less than the
// server reads.
package tokencount
