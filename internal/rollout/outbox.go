// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// outbox is the keys of held groups that are to be submitted. The zero outbox is ready.
type outbox struct {
	changed signal
	mu      sync.Mutex
	keys    []rl.Key
}

// add queues keys, those that are queued already once.
func (o *outbox) add(keys ...rl.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range keys {
		if !slices.Contains(o.keys, key) {
			o.keys = append(o.keys, key)
		}
	}
	o.changed.raise()
}

// remove takes keys out.
func (o *outbox) remove(unwanted func(rl.Key) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keys = slices.DeleteFunc(o.keys, unwanted)
}

// next takes out the key that the learner needs first, waiting for there to be one. An error is the
// context's.
func (o *outbox) next(ctx context.Context) (rl.Key, error) {
	for {
		changed := o.changed.next()
		if key, ok := o.take(); ok {
			return key, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return rl.Key{}, ctx.Err()
		}
	}
}

func (o *outbox) take() (rl.Key, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.keys) == 0 {
		return rl.Key{}, false
	}
	first := 0
	for i, key := range o.keys {
		if rank(key) < rank(o.keys[first]) {
			first = i
		}
	}
	key := o.keys[first]
	o.keys = slices.Delete(o.keys, first, first+1)
	return key, true
}
