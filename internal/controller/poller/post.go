// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/heartbeat"
)

// NewPoster posts over HTTPS, trusting each run's own certificate. The connections of a run are kept
// between heartbeats and closed when it has not been polled for a while.
func NewPoster(managerKey []byte) Poster {
	clients := &clients{managerKey: managerKey, byRun: map[clientKey]heartbeat.Client{}}
	return func(ctx context.Context, target Target) (contract.HeartbeatReply, error) {
		client, err := clients.of(target)
		if err != nil {
			return contract.HeartbeatReply{}, err
		}
		return client.Post(ctx, target.Address, target.Request)
	}
}

// maxClients bounds what is kept; deriving a run's again costs less than a millisecond.
const maxClients = 1024

type clients struct {
	managerKey []byte

	mu    sync.Mutex
	byRun map[clientKey]heartbeat.Client
}

// clientKey is a run, and which token its learner takes.
type clientKey struct {
	runUID      string
	workerToken bool
}

func (c *clients) of(target Target) (heartbeat.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := clientKey{target.Request.RunUID, target.WorkerToken}
	if client, ok := c.byRun[key]; ok {
		return client, nil
	}
	secrets, err := contract.DeriveCredentials(c.managerKey, key.runUID)
	if err != nil {
		return heartbeat.Client{}, err
	}
	trust, err := secrets.ClientTLS()
	if err != nil {
		return heartbeat.Client{}, err
	}
	if len(c.byRun) >= maxClients {
		clear(c.byRun)
	}
	token := secrets.ManagerToken
	if key.workerToken {
		token = secrets.Token
	}
	client := heartbeat.Client{Token: token, HTTP: &http.Client{Transport: &http.Transport{
		TLSClientConfig:     trust,
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		TLSHandshakeTimeout: 2 * time.Second,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     30 * time.Second,
		// A learner is reached by its pod's address, which no proxy can resolve.
		Proxy: nil,
	}}}
	c.byRun[key] = client
	return client, nil
}
