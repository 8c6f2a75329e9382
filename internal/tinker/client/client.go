// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Config says which server is spoken to, and how.
type Config struct {
	// BaseURL of the server, without /api/v1.
	BaseURL string
	// APIKey is sent with every call, or exchanged for a JWT where the server says so.
	APIKey string
	// UserAgent names the program.
	UserAgent string
	// HTTP sends the calls; nil for a client that holds thousands of idle long polls. Redirects are never
	// followed with the key.
	HTTP *http.Client
	// Logger gets each repeated call at debug level; nil discards.
	Logger *slog.Logger
	// Observe is told of each trouble that a call waits out. It is called by many goroutines and must
	// return at once; nil is nobody.
	Observe func(Event)
}

// Event is a trouble that a call waits out, or its end.
type Event struct {
	// Op is the operation that waits.
	Op string
	// Category is CategoryThrottled, CategoryPayment, CategoryServer, CategoryUnreachable, CategoryTimeout
	// or CategoryPaused.
	Category tinker.Category
	// Status is the HTTP status, 0 without an answer.
	Status int
	// QueueState is set for CategoryPaused; Reason is the server's, for people.
	QueueState tinker.QueueState
	Reason     string
	// Wait until the call is repeated.
	Wait time.Duration
	// Over says that the call is out of the trouble of this category.
	Over bool
}

// Client speaks to one server with one key. All methods are safe for concurrent use, and all repeat what
// is worth repeating until their context ends.
type Client struct {
	base        *url.URL
	userAgent   string
	api         *http.Client
	files       *http.Client
	log         *slog.Logger
	observe     func(Event)
	credentials *credentials
	connecting  turn
	config      atomic.Pointer[tinker.ServerConfig]
	responses   *budget
}

// New checks the configuration. It does not call the server.
func New(config Config) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(config.BaseURL, "/"))
	if err != nil {
		return nil, fmt.Errorf("parsing base URL: %w", err)
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("base URL %q is not of http or https", base.Redacted())
	}
	key := strings.TrimSpace(config.APIKey)
	if key == "" {
		return nil, fmt.Errorf("API key is empty")
	}
	files := config.HTTP
	if files == nil {
		files = &http.Client{Transport: newTransport()}
	}
	api := *files
	api.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{
		base: base, userAgent: config.UserAgent, api: &api, files: files, log: config.Logger, observe: config.Observe,
		credentials: newCredentials(key), connecting: newTurn(), responses: newBudget(),
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.observe == nil {
		c.observe = func(Event) {}
	}
	return c, nil
}

// Connect fetches the server's configuration, and a JWT where that asks for one. Every other method does
// it first if it has not been done.
func (c *Client) Connect(ctx context.Context) error {
	_, err := c.connect(ctx)
	return err
}

func (c *Client) connect(ctx context.Context) (tinker.ServerConfig, error) {
	if config := c.config.Load(); config != nil {
		return *config, nil
	}
	if err := c.connecting.take(ctx); err != nil {
		return tinker.ServerConfig{}, canceled("client_config", err)
	}
	defer c.connecting.give()
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
	c.responses.add(max(config.InflightResponseBytes, 1))
	c.config.Store(&config)
	return config, nil
}

// fetchConfig uses the key itself: the answer says whether a JWT is wanted.
func (c *Client) fetchConfig(ctx context.Context) (tinker.ServerConfig, error) {
	ask, err := postJSON("client_config", "client/config", tinker.ConfigRequest{SDKVersion: tinker.SDKVersion})
	if err != nil {
		return tinker.ServerConfig{}, err
	}
	answer, err := c.persist(ctx, ask, c.exchangeWithKey)
	if err != nil {
		return tinker.ServerConfig{}, err
	}
	return decodeJSON[tinker.ServerConfig](ask.op, answer)
}
