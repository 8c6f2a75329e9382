// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package spending is the model of how attempts record the requests of their learners. A learner may be replaced while
// it runs: it was frozen, and continues beside its successors. Whatever it spends then must be in the usage that the
// newest attempt reports, or be unconfirmed there.
package spending
