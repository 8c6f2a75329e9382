// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package spending is the model of how attempts record the requests of their learners. A frozen learner may be replaced
// and later continue beside its successors. Its spending must then be in the usage that the newest attempt reports, or
// be unconfirmed there.
package spending
