// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
)

// Config says which server the client calls, and how.
type Config struct {
	// BaseURL is the address of the server, without /api/v1.
	BaseURL string
	// APIKey is sent with every call, or exchanged for a JWT if the server requires one.
	APIKey string
	// UserAgent names the program.
	UserAgent string
	// HTTP sends the requests; nil means a client that holds thousands of idle long polls. Redirects are never
	// followed.
	HTTP *http.Client
	// Logger receives each retry at debug level; nil discards them.
	Logger *slog.Logger
	// Observe receives an event for each error that a call retries. It is called by many goroutines and must
	// return at once; it may be nil.
	Observe func(Event)
	// Spread returns a number from 0 to 1 for each delay between attempts or polls. The delay grows by this part of a
	// quarter, so that calls that fail together are not repeated together. nil means a random number.
	Spread func() float64
	// Meter counts the cost of the calls; nil means that it is not counted.
	Meter *Meter
	// Session has the values of every session of the client.
	Session SessionRequest
}

// Event reports an error that a call retries, or that the error is over.
type Event struct {
	// Op is the operation that waits.
	Op string
	// Category is CategoryThrottled, CategoryPayment, CategoryServer, CategoryUnreachable, CategoryTimeout,
	// CategoryConflict, CategoryTooLarge or CategoryPaused.
	Category tinker.Category
	// Code is the code of an answer that a broker in front of the server made itself, or of a connection for which
	// client and server do not agree on TLS; otherwise it is empty.
	Code problem.Code
	// Method and Path are the method and the path of the failed request. Status is the HTTP status, or 0 without a
	// response.
	Method, Path string
	Status       int
	// QueueState is set for CategoryPaused; Reason is the server's message, or why there was no response, for people.
	QueueState tinker.QueueState
	Reason     string
	// Wait is the time until the next attempt.
	Wait time.Duration
	// Over says that the call no longer fails with this category.
	Over bool
	// Unanswered says that the server may have accepted a request that it did not answer. It is never set for polls.
	Unanswered bool
}

// Client calls one server with one key. All methods are safe for concurrent use, and all retry temporary errors
// until their context ends.
type Client struct {
	*caller
	session SessionRequest
}

// New returns a client for a valid configuration. It does not call the server.
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
	plain, err := transport.New(transport.Options{})
	if err != nil {
		return nil, err
	}
	api := http.Client{Transport: plain}
	if config.HTTP != nil {
		api = *config.HTTP
	}
	api.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &caller{
		base: base, userAgent: config.UserAgent, http: &api, log: config.Logger, observe: config.Observe,
		spread: config.Spread, meter: config.Meter,
		credentials: newCredentials(key), connecting: newLock(),
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.observe == nil {
		c.observe = func(Event) {}
	}
	if c.spread == nil {
		c.spread = rand.Float64
	}
	return &Client{caller: c, session: config.Session}, nil
}

// Connect fetches the server's configuration, and a JWT if the server requires one. Every other method does so
// first if it has not been done.
func (c *Client) Connect(ctx context.Context) error {
	_, err := c.connect(ctx)
	return err
}
