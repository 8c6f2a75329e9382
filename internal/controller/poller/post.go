// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/heartbeat"
)

// NewPoster returns a Poster that posts over HTTPS and trusts each run's own certificate. The connections of a run are
// kept between heartbeats and closed when it has not been polled for a while.
func NewPoster(managerKey []byte, now func() time.Time) Poster {
	clients := &clients{managerKey: managerKey, now: now, byRun: map[clientKey]*client{}}
	return func(ctx context.Context, target Target) (contract.HeartbeatReply, error) {
		client, err := clients.of(target)
		if err != nil {
			return contract.HeartbeatReply{}, err
		}
		return client.Post(ctx, target.Address, target.Request)
	}
}

const (
	// manyClients is the number of clients that are kept even if they are not used; deriving the client of a run again
	// costs less than a millisecond.
	manyClients = 1024
	// idleTimeout is the time for which a connection without a heartbeat is kept. Beyond manyClients, an unused client is
	// dropped after the same time.
	idleTimeout = 30 * time.Second
)

type clients struct {
	managerKey []byte
	now        func() time.Time

	mu    sync.Mutex
	byRun map[clientKey]*client
}

// client posts to the learners of a run.
type client struct {
	heartbeat.Client
	used time.Time
}

// clientKey identifies a run and the token that its learner accepts.
type clientKey struct {
	runUID      string
	workerToken bool
}

func (c *clients) of(target Target) (heartbeat.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := clientKey{target.Request.RunUID, target.WorkerToken}
	if known, ok := c.byRun[key]; ok {
		known.used = c.now()
		return known.Client, nil
	}
	secrets, err := contract.DeriveCredentials(c.managerKey, key.runUID)
	if err != nil {
		return heartbeat.Client{}, err
	}
	trust, err := secrets.ClientTLS()
	if err != nil {
		return heartbeat.Client{}, err
	}
	if len(c.byRun) >= manyClients {
		maps.DeleteFunc(c.byRun, func(_ clientKey, known *client) bool { return c.now().Sub(known.used) > idleTimeout })
	}
	token := secrets.ManagerToken
	if key.workerToken {
		token = secrets.Token
	}
	made := heartbeat.Client{Token: token, HTTP: &http.Client{Transport: &http.Transport{
		TLSClientConfig:     trust,
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		TLSHandshakeTimeout: 2 * time.Second,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     idleTimeout,
		// A learner is reached by its pod's address, which no proxy can resolve.
		Proxy: nil,
	}}}
	c.byRun[key] = &client{made, c.now()}
	return made, nil
}
