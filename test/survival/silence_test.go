// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// silentNetwork is the network of a worker. From the moment at which silent is closed it drops all packets, as when a
// node loses its power: neither data nor the end of a connection arrives.
type silentNetwork struct {
	fixture *fixture
	silent  chan struct{}
}

// isSilent reports whether the network already drops all packets.
func (n *silentNetwork) isSilent() bool {
	select {
	case <-n.silent:
		return true
	default:
		return false
	}
}

func (n *silentNetwork) dial(ctx context.Context, address string) (net.Conn, error) {
	if n.isSilent() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	conn, err := n.fixture.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	n.fixture.t.Cleanup(func() { _ = conn.Close() })
	return &silentConn{Conn: conn, network: n, closed: make(chan struct{})}, nil
}

// silentConn is a connection of a silentNetwork.
type silentConn struct {
	net.Conn
	network *silentNetwork
	once    sync.Once
	closed  chan struct{}
}

func (c *silentConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.network.isSilent() {
		return n, err
	}
	<-c.closed
	return 0, net.ErrClosed
}

func (c *silentConn) Write(p []byte) (int, error) {
	if c.network.isSilent() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// Close closes the connection at this end alone once the network is silent.
func (c *silentConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	if c.network.isSilent() {
		return nil
	}
	return c.Conn.Close()
}

// TestWorkerFallsSilent stops the messages of a worker that has leases and a call that waits for more, while its
// connections stay: another worker gets the leases, and the run equals the undisturbed one.
func TestWorkerFallsSilent(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	cases := map[string]func(b *behavior, n *silentNetwork){
		"its network loses everything":                        func(b *behavior, n *silentNetwork) { b.dial = n.dial },
		"its process hangs, and its connection answers pings": func(b *behavior, _ *silentNetwork) { b.renew = time.Hour },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			w.silence = 2 * time.Second
			network := &silentNetwork{fixture: w, silent: make(chan struct{})}
			sampling := make(chan struct{}, 64)
			b := behavior{delay: func(int64) time.Duration {
				sampling <- struct{}{}
				return time.Hour
			}}
			change(&b, network)
			w.startWorker("w0", b)
			a := w.startLearner(1, nil)
			<-sampling
			close(network.silent)
			w.startWorker("w1", behavior{})
			w.compare(w.waitFor(a, contract.CauseCompleted), want)
		})
	}
}
