// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package sampling is the model of one group's samples: which of them enter the group, which are paid for twice, and
// whether the group can always be finished when futures, workers and sessions are lost.
package sampling
