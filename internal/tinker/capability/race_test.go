// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package capability

// simulatedDecisions is lower under the race detector, which makes the simulation ten times slower.
const simulatedDecisions = 50
