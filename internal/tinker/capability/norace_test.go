// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package capability

// simulatedDecisions is how many models are drawn for each noise and spread of logits.
const simulatedDecisions = 1000
