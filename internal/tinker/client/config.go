// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// connect returns the server's configuration. The first call fetches it, and a JWT if the server requires one.
func (c *caller) connect(ctx context.Context) (tinker.ServerConfig, error) {
	if config := c.config.Load(); config != nil {
		return *config, nil
	}
	if err := acquire(ctx, c.connecting); err != nil {
		return tinker.ServerConfig{}, canceled("client_config", err)
	}
	defer c.connecting.Release(1)
	if config := c.config.Load(); config != nil {
		return *config, nil
	}
	config, err := c.fetchConfig(ctx)
	if err != nil {
		return tinker.ServerConfig{}, fmt.Errorf("connecting: %w", err)
	}
	if config.PJWTAuthEnabled {
		if _, err := c.renew(ctx, ""); err != nil {
			return tinker.ServerConfig{}, fmt.Errorf("connecting: %w", err)
		}
	}
	c.downloads.add(max(config.InflightResponseBytes, 1))
	c.config.Store(&config)
	return config, nil
}

// fetchConfig authenticates with the key itself: the response says whether the server requires a JWT.
func (c *caller) fetchConfig(ctx context.Context) (tinker.ServerConfig, error) {
	req, err := postJSON("client_config", "client/config", tinker.ConfigRequest{SDKVersion: tinker.SDKVersion})
	if err != nil {
		return tinker.ServerConfig{}, err
	}
	resp, err := c.retry(ctx, req, c.exchangeWithKey)
	if err != nil {
		return tinker.ServerConfig{}, err
	}
	return decodeJSON[tinker.ServerConfig](req.op, resp)
}
