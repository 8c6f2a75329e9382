// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// claimEvery is how often the claim to the endpoint is read, and claimPatience how long a reading may take.
const (
	claimEvery    = 3 * time.Second
	claimPatience = 5 * time.Second
)

// claim knows which release serves the endpoint: the status of the TinkerEndpoint has the namespace of that release.
// A broker may outlive the manager of its release, and must not serve once another release serves the endpoint.
type claim struct {
	endpoint, namespace string
	// read returns the TinkerEndpoint in JSON.
	read func(context.Context) ([]byte, error)
	now  func() time.Time
	seen atomic.Pointer[sight]
}

// sight is the claim as it was when a reading of it began.
type sight struct {
	namespace string
	at        time.Time
}

// errUnknownClaim is the error of a broker that has not read the claim yet.
var errUnknownClaim = errors.New("it has not read which release serves the endpoint")

// valid returns why the broker may not act, or nil. It compares both clocks, as lease.valid does.
func (c *claim) valid() error {
	seen, now := c.seen.Load(), c.now()
	switch {
	case seen == nil:
		return errUnknownClaim
	case seen.namespace != c.namespace:
		return fmt.Errorf("the release in namespace %q serves the endpoint", seen.namespace)
	case now.Sub(seen.at) > endpoint.ClaimUse || now.Round(0).Sub(seen.at.Round(0)) > endpoint.ClaimUse:
		return fmt.Errorf("it could not read for %s which release serves the endpoint", endpoint.ClaimUse)
	}
	return nil
}

// look reads the claim once.
func (c *claim) look(ctx context.Context) error {
	at := c.now()
	ctx, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	text, err := c.read(ctx)
	if err != nil {
		return fmt.Errorf("reading TinkerEndpoint %s: %w", c.endpoint, err)
	}
	var of struct {
		Status struct {
			Namespace string `json:"namespace"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return fmt.Errorf("decoding TinkerEndpoint %s: %w", c.endpoint, err)
	}
	c.seen.Store(&sight{of.Status.Namespace, at})
	return nil
}

// follow reads the claim now and then until ctx ends, and logs each change of the result.
func (c *claim) follow(ctx context.Context, log *slog.Logger) {
	said := ""
	for {
		err := c.look(ctx)
		if err == nil {
			err = c.valid()
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			said = ""
		case err.Error() != said:
			said = err.Error()
			log.Warn("the claim to the endpoint is in doubt", "err", err)
		}
		if wait.Sleep(ctx, claimEvery) != nil {
			return
		}
	}
}
