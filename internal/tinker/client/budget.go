// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// byteBudget limits the bytes of the results that are fetched at the same time. It admits a result while any
// bytes are left, so that one large result always passes. Its zero value has no bytes.
type byteBudget struct {
	freed wait.Signal
	mu    sync.Mutex
	left  int64
	sized bool
}

// resize changes the size of the budget, which is at least 1.
func (b *byteBudget) resize(from, to int64) {
	b.mu.Lock()
	if !b.sized {
		b.sized, from = true, 0
	} else {
		from = max(from, 1)
	}
	b.mu.Unlock()
	b.Add(max(to, 1) - from)
}

// Add returns bytes to the budget.
func (b *byteBudget) Add(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += bytes
	b.freed.Notify()
}

// Reserve waits until bytes are left and takes its share.
func (b *byteBudget) Reserve(ctx context.Context, bytes int64) error {
	_, err := wait.For(ctx, &b.freed, func() (struct{}, bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.left <= 0 {
			return struct{}{}, false
		}
		b.left -= bytes
		return struct{}{}, true
	})
	return err
}
