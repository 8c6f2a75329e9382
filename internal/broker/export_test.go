// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

// HoldAtMost has the broker hold smaller bodies alone.
func (b *Broker) HoldAtMost(bytes int64) { b.held = bytes }
