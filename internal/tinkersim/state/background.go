// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"sync"
)

// background runs goroutines until it is closed. Its lock is the last to be taken.
type background struct {
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu sync.Mutex // keeps start from adding to the group while close waits for it
}

func newBackground() *background {
	b := &background{}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// start runs a function in a goroutine that close waits for, or returns ErrClosed.
func (b *background) start(run func()) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isClosed() {
		return ErrClosed
	}
	b.group.Go(run)
	return nil
}

func (b *background) isClosed() bool { return b.ctx.Err() != nil }

// close cancels the context and waits for all goroutines.
func (b *background) close() {
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.group.Wait()
}
