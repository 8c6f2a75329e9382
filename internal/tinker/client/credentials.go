// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// A JWT is renewed renewAhead before it expires, or at half its lifetime if that is short. If a renewal fails,
// the old token is used for another renewPause.
const (
	renewAhead      = 5 * time.Minute
	renewPause      = time.Minute
	defaultLifetime = 10 * time.Minute
	opAuthToken     = "auth_token"
)

// credentials holds the key, and the JWT that it was exchanged for.
type credentials struct {
	key   string
	token atomic.Pointer[token]
	// renewing is held by the call that renews the token.
	renewing *semaphore.Weighted
}

// token is a JWT. A timer marks it stale, so that its use reads no clock.
type token struct {
	jwt   string
	stale atomic.Bool
}

func newCredentials(key string) *credentials {
	return &credentials{key: key, renewing: newLock()}
}

// exchangeWithKey makes one exchange with the key itself.
func (c *caller) exchangeWithKey(ctx context.Context, req request) (response, error) {
	return c.send(ctx, req, c.credentials.key)
}

// exchange makes one exchange with the JWT, or with the key if there is no JWT. It renews a rejected JWT once:
// the server may have forgotten it, or its clock may differ.
func (c *caller) exchange(ctx context.Context, req request) (response, error) {
	current := c.credentials.token.Load()
	if current == nil {
		return c.exchangeWithKey(ctx, req)
	}
	if current.stale.Load() {
		current = c.tryRenew(ctx, current)
	}
	resp, err := c.send(ctx, req, current.jwt)
	if e := asError(req.op, err); err == nil || e.Status != http.StatusUnauthorized {
		return resp, err
	}
	jwt, err := c.renew(ctx, current.jwt)
	if err != nil {
		return response{}, err
	}
	return c.send(ctx, req, jwt)
}

// tryRenew tries once to replace a stale token. It keeps the old one if another call is renewing it or if the
// renewal fails.
func (c *caller) tryRenew(ctx context.Context, old *token) *token {
	if !c.credentials.renewing.TryAcquire(1) {
		return old
	}
	defer c.credentials.renewing.Release(1)
	if current := c.credentials.token.Load(); current != old {
		return current
	}
	renewed, err := c.fetchToken(ctx, c.exchangeOnceWithKey)
	if err == nil {
		return renewed
	}
	c.log.Warn("postponing the renewal of the access token", "err", err)
	old.stale.Store(false)
	time.AfterFunc(renewPause, func() { old.stale.Store(true) })
	return old
}

// fetchToken exchanges the key for a JWT by send, which authenticates with the key, and uses the JWT from then on.
func (c *caller) fetchToken(ctx context.Context, send sender) (*token, error) {
	req, err := postJSON(opAuthToken, "auth/token", struct{}{})
	if err != nil {
		return nil, err
	}
	resp, err := send(ctx, req)
	if err != nil {
		return nil, err
	}
	fresh, err := newToken(resp)
	if err == nil {
		c.credentials.token.Store(fresh)
	}
	return fresh, err
}

// renew replaces the rejected JWT, unless another call has done so, and returns the valid one.
func (c *caller) renew(ctx context.Context, rejected string) (string, error) {
	if err := acquire(ctx, c.credentials.renewing); err != nil {
		return "", canceled(opAuthToken, err)
	}
	defer c.credentials.renewing.Release(1)
	if current := c.credentials.token.Load(); current != nil && current.jwt != rejected {
		return current.jwt, nil
	}
	renewed, err := c.fetchToken(ctx, func(ctx context.Context, req request) (response, error) {
		return c.retry(ctx, req, c.exchangeWithKey)
	})
	if err != nil {
		return "", err
	}
	return renewed.jwt, nil
}

// newToken reads the response of auth/token and starts the token's timer.
func newToken(resp response) (*token, error) {
	body, err := decodeJSON[tinker.TokenResponse](opAuthToken, resp)
	if err != nil {
		return nil, err
	}
	lifetime, err := lifetimeOf(body.JWT, resp.header.Get("Date"))
	if err != nil {
		return nil, protocolError(opAuthToken, err)
	}
	fresh := &token{jwt: body.JWT}
	time.AfterFunc(max(lifetime-renewAhead, lifetime/2, time.Second), func() { fresh.stale.Store(true) })
	return fresh, nil
}

// lifetimeOf returns how long a JWT is valid by the server's clock: from the date of the response, or else from
// when the token was issued. Only the server checks the signature.
func lifetimeOf(jwt, date string) (time.Duration, error) {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return 0, fmt.Errorf("access token does not have three parts")
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return 0, fmt.Errorf("decoding access token: %w", err)
	}
	var claims struct {
		Expires *float64 `json:"exp"`
		Issued  *float64 `json:"iat"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return 0, fmt.Errorf("decoding access token: %w", err)
	}
	if claims.Expires == nil {
		return 0, fmt.Errorf("access token does not say when it expires")
	}
	if now, err := http.ParseTime(date); err == nil {
		return seconds(*claims.Expires - float64(now.Unix())), nil
	}
	if claims.Issued != nil {
		return seconds(*claims.Expires - *claims.Issued), nil
	}
	return defaultLifetime, nil
}

// seconds converts a server's number of seconds to a duration between 0 and a year.
func seconds(s float64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(max(0, min(s, year)) * float64(time.Second))
}
