// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// ErrKeyRefused ends a worker whose API key the endpoint refuses for Config.KeyPatience. The key may have been replaced
// in its Secret, which a new pod reads.
var ErrKeyRefused = errors.New("the endpoint refuses the API key that this pod began with: " +
	"the next pod reads the Secret that tinker.apiKeySecretKeyRef names again")

// DefaultKeyPatience is short enough for a new pod within a minute. With the 10 s after which a Job first replaces a
// pod, it is long enough that at most one pod starts every 45 s.
const DefaultKeyPatience = 36 * time.Second

// keyWatch is an endpoint that measures how long its answers refuse the API key.
type keyWatch struct {
	Endpoint
	patience time.Duration

	mu sync.Mutex
	// giveUp is called once the key has been refused for as long as patience. It is nil before the worker runs.
	giveUp func(error)
	// timer runs while the newest answers refuse the key.
	timer *time.Timer
}

func watchKey(endpoint Endpoint, patience time.Duration) *keyWatch {
	return &keyWatch{Endpoint: endpoint, patience: cmp.Or(patience, DefaultKeyPatience)}
}

// start makes the watch call giveUp once the key has been refused for as long as the patience. stop stops a running
// timer.
func (k *keyWatch) start(giveUp func(error)) (stop func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.giveUp = giveUp
	return func() { k.observe(nil) }
}

// refused reports whether the newest answers refuse the key.
func (k *keyWatch) refused() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.timer != nil
}

// observe takes the outcome of a call. An error that does not concern the key changes nothing.
func (k *keyWatch) observe(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil && k.timer != nil:
		k.timer.Stop()
		k.timer = nil
	case err != nil && client.CategoryFrom(err) == tinker.CategoryUnauthorized && k.timer == nil && k.giveUp != nil:
		giveUp := k.giveUp
		k.timer = time.AfterFunc(k.patience, func() { giveUp(ErrKeyRefused) })
	}
}

// CreateSamplingSession implements Endpoint.
func (k *keyWatch) CreateSamplingSession(ctx context.Context, session string, seq int64, modelPath,
	baseModel string) (string, error) {
	id, err := k.Endpoint.CreateSamplingSession(ctx, session, seq, modelPath, baseModel)
	k.observe(err)
	return id, err
}

// Sample implements Endpoint.
func (k *keyWatch) Sample(ctx context.Context, request tinker.SampleRequest) (tinker.SampleResult, error) {
	result, err := k.Endpoint.Sample(ctx, request)
	k.observe(err)
	return result, err
}

// Heartbeat implements Endpoint.
func (k *keyWatch) Heartbeat(ctx context.Context, session string) error {
	err := k.Endpoint.Heartbeat(ctx, session)
	k.observe(err)
	return err
}
