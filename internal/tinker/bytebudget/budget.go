// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package bytebudget limits how many bytes are fetched at the same time.
package bytebudget

import (
	"context"
	"sync"
)

// Budget limits the bytes of the results that are fetched at the same time. It admits a result while any
// bytes are left, so that one large result always passes.
type Budget struct {
	mu    sync.Mutex
	left  int64
	freed chan struct{}
}

// New returns a budget of 0 bytes.
func New() *Budget { return &Budget{freed: make(chan struct{})} }

// Add returns bytes to the budget.
func (b *Budget) Add(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += bytes
	close(b.freed)
	b.freed = make(chan struct{})
}

// Reserve waits until bytes are left and takes its share.
func (b *Budget) Reserve(ctx context.Context, bytes int64) error {
	for {
		freed, ok := b.tryReserve(bytes)
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *Budget) tryReserve(bytes int64) (<-chan struct{}, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left <= 0 {
		return b.freed, false
	}
	b.left -= bytes
	return nil, true
}

// Left returns how many bytes are left; it is negative while a large result has taken more.
func (b *Budget) Left() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}
