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

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// A JWT is renewed renewAhead before it expires, or at half its life if that is short. After a renewal
// that failed the old one serves for another renewPause.
const (
	renewAhead    = 5 * time.Minute
	renewPause    = time.Minute
	renewTimeout  = 10 * time.Second
	assumedLife   = 10 * time.Minute
	operationAuth = "auth_token"
)

// credentials holds the key, and the JWT that it was exchanged for.
type credentials struct {
	key      string
	token    atomic.Pointer[token]
	renewing turn
}

// token is a JWT. A timer marks it stale, so no clock is read when it is used.
type token struct {
	jwt   string
	stale atomic.Bool
}

func newCredentials(key string) *credentials {
	return &credentials{key: key, renewing: newTurn()}
}

// exchangeWithKey makes one exchange with the key itself.
func (c *Client) exchangeWithKey(ctx context.Context, ask call) (reply, error) {
	return c.send(ctx, ask, c.credentials.key)
}

// exchange makes one exchange with the key, or with the JWT where there is one. A JWT that is refused is
// renewed once: the server may have forgotten it, or its clock may differ.
func (c *Client) exchange(ctx context.Context, ask call) (reply, error) {
	current := c.credentials.token.Load()
	if current == nil {
		return c.exchangeWithKey(ctx, ask)
	}
	if current.stale.Load() {
		current = c.freshen(ctx, current)
	}
	answer, err := c.send(ctx, ask, current.jwt)
	if e := asError(ask.op, err); err == nil || e.Status != http.StatusUnauthorized {
		return answer, err
	}
	jwt, err := c.renew(ctx, current.jwt)
	if err != nil {
		return reply{}, err
	}
	return c.send(ctx, ask, jwt)
}

// freshen tries once to replace a stale token. It keeps the old one if another call is at it, or if it
// fails.
func (c *Client) freshen(ctx context.Context, old *token) *token {
	if !c.credentials.renewing.tryTake() {
		return old
	}
	defer c.credentials.renewing.give()
	if current := c.credentials.token.Load(); current != old {
		return current
	}
	ask, err := postJSON(operationAuth, "auth/token", struct{}{})
	if err != nil {
		return old
	}
	ask.timeout = renewTimeout
	answer, err := c.exchangeWithKey(ctx, ask)
	if err == nil {
		var renewed *token
		if renewed, err = newToken(answer); err == nil {
			c.credentials.token.Store(renewed)
			return renewed
		}
	}
	c.log.Warn("renewing the access token is put off", "error", err)
	old.stale.Store(false)
	time.AfterFunc(renewPause, func() { old.stale.Store(true) })
	return old
}

// renew replaces the refused JWT, unless another call has done so, and returns the one that holds.
func (c *Client) renew(ctx context.Context, refused string) (string, error) {
	if err := c.credentials.renewing.take(ctx); err != nil {
		return "", canceled(operationAuth, err)
	}
	defer c.credentials.renewing.give()
	if current := c.credentials.token.Load(); current != nil && current.jwt != refused {
		return current.jwt, nil
	}
	ask, err := postJSON(operationAuth, "auth/token", struct{}{})
	if err != nil {
		return "", err
	}
	answer, err := c.persist(ctx, ask, c.exchangeWithKey)
	if err != nil {
		return "", err
	}
	renewed, err := newToken(answer)
	if err != nil {
		return "", err
	}
	c.credentials.token.Store(renewed)
	return renewed.jwt, nil
}

// newToken reads the answer of auth/token and starts the token's timer.
func newToken(answer reply) (*token, error) {
	body, err := decodeJSON[tinker.TokenResponse](operationAuth, answer)
	if err != nil {
		return nil, err
	}
	life, err := lifetime(body.JWT, answer.header.Get("Date"))
	if err != nil {
		return nil, protocolError(operationAuth, err)
	}
	fresh := &token{jwt: body.JWT}
	time.AfterFunc(max(life-renewAhead, life/2, time.Second), func() { fresh.stale.Store(true) })
	return fresh, nil
}

// lifetime is how long a JWT holds, counted by the server's clock: from the date of the answer, or else
// from when the token was issued. The signature is the server's to check.
func lifetime(jwt, date string) (time.Duration, error) {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return 0, fmt.Errorf("access token has not three parts")
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
	return assumedLife, nil
}

// seconds bounds what a server claims to the range of durations that timers like.
func seconds(s float64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(max(0, min(s, year)) * float64(time.Second))
}
