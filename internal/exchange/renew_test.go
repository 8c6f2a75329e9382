// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"errors"
	"testing"
	"time"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
)

func TestDisconnectedIsReportedForABrokenStreamOnly(t *testing.T) {
	t.Parallel()
	l, w := newLearner(), newWorker()
	s := serve(t, "", epochOf(1), l, Timing{Stream: 30 * time.Millisecond})
	runClient(t, clientConfig(t, s.address), w)
	for range 5 {
		take(t, "Hello", l.hellos)
	}
	if len(l.disconnected) != 0 {
		t.Errorf("a worker whose streams came to their regular end was reported as disconnected: got %v, want none",
			l.disconnected)
	}

	lasting := newLearner()
	s = serve(t, "", epochOf(1), lasting, Timing{})
	a := runClient(t, clientConfig(t, s.address), w)
	take(t, "first renewal", lasting.renewed)
	a.stop()
	if got := take(t, "disconnection", lasting.disconnected); got != a.config.Worker {
		t.Errorf("%q was reported as disconnected, want %q", got, a.config.Worker)
	}
}

// endedStream is a Renew stream that ends while a message is on its way to the handler.
type endedStream struct {
	pb.Exchange_RenewServer
	ctx      context.Context
	received chan struct{}
}

func (s endedStream) Context() context.Context { return s.ctx }

func (s endedStream) Recv() (*pb.RenewRequest, error) {
	s.received <- struct{}{}
	return &pb.RenewRequest{}, nil
}

func TestStreamEndIsReportedWhenAMessageIsNotTaken(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	stream := endedStream{ctx: ctx, received: make(chan struct{})}
	_, failed := receiveRenewals(stream)
	take(t, "message", stream.received)
	cancel()
	if err := take(t, "end of the stream", failed); !errors.Is(err, context.Canceled) {
		t.Errorf("the stream ended with %v, want %v", err, context.Canceled)
	}
}
