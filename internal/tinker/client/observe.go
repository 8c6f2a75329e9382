// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import "context"

type observerKey struct{}

// WithObserver returns a context whose calls report their events to observe, besides Config.Observe.
func WithObserver(ctx context.Context, observe func(Event)) context.Context {
	return context.WithValue(ctx, observerKey{}, observe)
}

// notify reports an event of a call.
func (c *caller) notify(ctx context.Context, event Event) {
	c.observe(event)
	if observe, ok := ctx.Value(observerKey{}).(func(Event)); ok {
		observe(event)
	}
}
