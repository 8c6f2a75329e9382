// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package wait lets goroutines wait for a change or for a time, as long as a context lasts, reads how long a server
// asks to wait, and says which requests may be repeated.
package wait

import (
	"context"
	"sync"
	"time"
)

// Signal informs all goroutines that wait for it that something may have changed. The zero Signal is ready to use,
// and its methods may be called concurrently.
type Signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// Changed returns a channel that the next Notify closes. A caller takes the channel before it reads the state that
// may change.
func (s *Signal) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

// Notify wakes all goroutines that wait.
func (s *Signal) Notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// For calls get, and calls it again after each Notify, until it returns true. The error is the cause of the end of
// ctx.
func For[T any](ctx context.Context, changes *Signal, get func() (T, bool)) (T, error) {
	for {
		changed := changes.Changed()
		if value, ok := get(); ok {
			return value, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
	}
}

// Sleep waits for d. The error is the cause of the end of ctx, if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// IsClosed reports whether a channel on which nothing is sent is closed.
func IsClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}
