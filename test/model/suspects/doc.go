// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package suspects is the model of the leases of two groups of two members. One member ends each process that plays it.
// Workers also die for other reasons, are cut off and come back. The learner, which knows only the last message of a
// worker, decides which groups to lease together, and which member to blame.
package suspects
