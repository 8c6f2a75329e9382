// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// outbox holds the keys of stored groups that are to be submitted. The zero outbox is ready.
type outbox struct {
	changes wait.Signal
	mu      sync.Mutex
	keys    []rl.Key
}

// add queues keys that are not queued yet.
func (o *outbox) add(keys ...rl.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range keys {
		if !slices.Contains(o.keys, key) {
			o.keys = append(o.keys, key)
		}
	}
	o.changes.Notify()
}

// remove takes the unwanted keys out.
func (o *outbox) remove(unwanted func(rl.Key) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keys = slices.DeleteFunc(o.keys, unwanted)
}

// next waits for a key and takes out the one that the learner needs first. An error is the context's.
func (o *outbox) next(ctx context.Context) (rl.Key, error) { return wait.For(ctx, &o.changes, o.take) }

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
