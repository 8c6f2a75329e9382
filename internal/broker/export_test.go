// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import "time"

// HoldAtMost has the broker hold smaller bodies alone.
func (b *Broker) HoldAtMost(bytes int64) { b.held = bytes }

// ReadFor has clients send bodies that are held within a time.
func (b *Broker) ReadFor(patience time.Duration) { b.patience = patience }
