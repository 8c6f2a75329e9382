// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import "context"

// Credential returns the credential of a request that the caller sends itself: the key, or a JWT if the server requires
// one.
func (c *Client) Credential(ctx context.Context) (string, error) {
	if _, err := c.connect(ctx); err != nil {
		return "", err
	}
	current := c.credentials.token.Load()
	if current == nil {
		return c.credentials.key, nil
	}
	if current.stale.Load() {
		current = c.tryRenew(ctx, current)
	}
	return current.jwt, nil
}

// RenewCredential returns the replacement of a credential that the server rejected, or "" if it was the key, which has
// no replacement.
func (c *Client) RenewCredential(ctx context.Context, rejected string) (string, error) {
	if rejected == c.credentials.key {
		return "", nil
	}
	return c.renew(ctx, rejected)
}
