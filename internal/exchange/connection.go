// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// connection is one connection to a learner. It closes when its last user releases it.
type connection struct {
	grpc *grpc.ClientConn
	api  pb.ExchangeClient
	// failed is closed when a call failed.
	failed chan struct{}

	mu    sync.Mutex
	users int
	cause error
}

// dial prepares a connection with one user. Each connection dials the address anew, so that it reaches the host that
// the name stands for now.
func (c *Client) dial() (*connection, error) {
	conn, err := grpc.NewClient("passthrough:///"+c.config.Address,
		grpc.WithTransportCredentials(c.credentials),
		grpc.WithPerRPCCredentials(bearer(c.config.Credentials.Token)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn,
			error) {
			return c.config.Dial(ctx, address)
		}),
		grpc.WithUnaryInterceptor(c.unary),
		grpc.WithStreamInterceptor(c.stream),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout,
			PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: dialTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return &connection{grpc: conn, api: pb.NewExchangeClient(conn), failed: make(chan struct{}), users: 1}, nil
}

func (c *connection) retain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users++
}

func (c *connection) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	if c.users == 0 {
		// A connection that is not in use closes without an error that matters.
		_ = c.grpc.Close()
	}
}

// fail notes that a call failed. The first cause stays.
func (c *connection) fail(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = cause
		close(c.failed)
	}
}

// err returns the cause of the first failure of a call.
func (c *connection) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// bearer sends the run's token with each call, over TLS alone.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (b bearer) RequireTransportSecurity() bool { return true }

// redialPauses are the pauses after a failed connection. Jitter shortens them, so that a thousand workers do not dial
// in step after a learner has restarted.
var redialPauses = wait.Backoff{First: 100 * time.Millisecond, Longest: 2 * time.Second, Jitter: -0.5}
