// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// A configuration is used for configAge, because limits may change while a client runs for days. If it cannot be
// fetched then, the old one is used for another configPause.
const (
	configAge   = time.Hour
	configPause = time.Minute
)

// opConfig is the first request of a client.
const opConfig = "client_config"

// serverConfig is a configuration with the time from which it is stale.
type serverConfig struct {
	tinker.ServerConfig
	expiry atomic.Pointer[time.Time]
}

func (s *serverConfig) expireAfter(age time.Duration) { s.expiry.Store(new(time.Now().Add(age))) }

func (s *serverConfig) stale() bool { return !time.Now().Before(*s.expiry.Load()) }

// connect returns the server's configuration. The first call fetches it, and a JWT if the server requires one.
func (c *caller) connect(ctx context.Context) (tinker.ServerConfig, error) {
	if config := c.config.Load(); config != nil {
		return c.upToDate(ctx, config), nil
	}
	if err := acquire(ctx, c.connecting); err != nil {
		return tinker.ServerConfig{}, canceled(opConfig, err)
	}
	defer c.connecting.Release(1)
	if config := c.config.Load(); config != nil {
		return config.ServerConfig, nil
	}
	config, err := c.fetchConfig(ctx, c.retryWithKey)
	if err != nil {
		return tinker.ServerConfig{}, fmt.Errorf("connecting: %w", err)
	}
	if config.PJWTAuthEnabled {
		if _, err := c.renew(ctx, ""); err != nil {
			return tinker.ServerConfig{}, fmt.Errorf("connecting: %w", err)
		}
	}
	c.setConfig(config)
	return config, nil
}

// setConfig makes a configuration the current one. The caller holds connecting.
func (c *caller) setConfig(config tinker.ServerConfig) {
	var old tinker.ServerConfig
	if known := c.config.Load(); known != nil {
		old = known.ServerConfig
	}
	c.downloads.resize(old.InflightResponseBytes, config.InflightResponseBytes)
	c.dispatches.resize(old.SampleDispatchBytes, config.SampleDispatchBytes)
	c.samples.resize(int64(old.SampleMaxConcurrent), int64(config.SampleMaxConcurrent))
	fresh := &serverConfig{ServerConfig: config}
	fresh.expireAfter(configAge)
	c.config.Store(fresh)
}

// upToDate returns the current configuration. If it is stale, it tries once to fetch it again, and keeps the old one if
// that fails or if another call does so.
func (c *caller) upToDate(ctx context.Context, current *serverConfig) tinker.ServerConfig {
	if !current.stale() || !c.connecting.TryAcquire(1) {
		return current.ServerConfig
	}
	defer c.connecting.Release(1)
	if newer := c.config.Load(); newer != current {
		return newer.ServerConfig
	}
	config, err := c.fetchConfig(ctx, c.exchangeOnceWithKey)
	if err == nil && config.PJWTAuthEnabled && c.credentials.token.Load() == nil {
		_, err = c.fetchToken(ctx, c.exchangeOnceWithKey)
	}
	if err != nil {
		c.log.Debug("keeping the configuration", "err", err)
		current.expireAfter(configPause)
		return current.ServerConfig
	}
	c.setConfig(config)
	return config
}

// retryWithKey sends the first request.
func (c *caller) retryWithKey(ctx context.Context, req request) (response, error) {
	return c.retry(ctx, req, func(ctx context.Context, req request) (response, error) {
		resp, err := c.exchangeWithKey(ctx, req)
		return resp, asNotTinker(err)
	})
}

// exchangeOnceWithKey sends a request whose failure does not fail a call: the former value stays in use.
func (c *caller) exchangeOnceWithKey(ctx context.Context, req request) (response, error) {
	req.timeout = 10 * time.Second
	return c.exchangeWithKey(ctx, req)
}

// fetchConfig fetches the configuration by send, which authenticates with the key itself: the response says whether the
// server requires a JWT.
func (c *caller) fetchConfig(ctx context.Context, send sender) (tinker.ServerConfig, error) {
	req, err := postJSON(opConfig, "client/config", tinker.ConfigRequest{SDKVersion: tinker.SDKVersion})
	if err != nil {
		return tinker.ServerConfig{}, err
	}
	resp, err := send(ctx, req)
	if err != nil {
		return tinker.ServerConfig{}, err
	}
	config, err := decode[tinker.ServerConfig](c, req, resp)
	return config, asNotTinker(err)
}
