// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import "time"

// HoldAtMost sets the size up to which the broker holds bodies.
func (b *Broker) HoldAtMost(bytes int64) { b.held = bytes }

// ReadFor sets the time within which clients must send bodies that are held.
func (b *Broker) ReadFor(patience time.Duration) { b.patience = patience }
