// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Handler is the learner's scheduler. Its methods are called concurrently and, but for Hello, never for a
// worker that has not said Hello to this server.
type Handler interface {
	// Hello takes in what a worker has. It comes at least once a minute, and is no restart of the worker. A
	// lease that the worker was given while its Hello was under way is not in it: one of which neither Hello
	// nor Renew speaks for some seconds was lost with the reply that carried it. An error is answered as
	// "unreachable": the worker comes back.
	Hello(ctx context.Context, worker string, request HelloRequest) (HelloReply, error)
	// Acquire waits until there are leases for a worker with room for free episodes, and gives none when
	// ctx ends first, which it does after 20 s.
	Acquire(ctx context.Context, worker string, free int) ([]Lease, error)
	// Renew takes what the worker says and tells it what it has to know. It does not block.
	Renew(worker string, renewal Renewal) Directive
	// Directive tells what the worker has to know when it is the server's turn to speak: after Notify, and
	// once a second. It says nothing about whether the worker is alive, and does not block.
	Directive(worker string) Directive
	// Submit receives a group that is valid by itself (rl.Group.Validate), and its digest.
	Submit(worker string, group rl.Group, digest rl.Digest) SubmitReply
	// Disconnected tells that a worker's Renew stream broke, or that the worker ended it. One that lives says Hello
	// within seconds, or has done so already on another connection, and goes on to renew.
	Disconnected(worker string)
	// Release gives leases back unplayed; reason is drain, policy_gone or environment_down.
	Release(worker string, keys []rl.Key, reason string)
}

// ServerConfig is what a Server needs.
type ServerConfig struct {
	Epoch       Epoch
	Credentials contract.Credentials
	Handler     Handler
	// Fenced is called, once, when a worker has heard of a higher attempt. From then on the server
	// answers nothing but FENCED. It must not block.
	Fenced func(higher int32)
	// Logger may be nil.
	Logger *slog.Logger
	Timing Timing
}

// Timing of a server; zeros are the defaults given.
type Timing struct {
	// Acquire is how long Acquire waits: 20 s.
	Acquire time.Duration
	// Stream is how long a Renew stream lasts: 60 s.
	Stream time.Duration
	// Direct is how often a worker is told what is new without a Notify: 1 s.
	Direct time.Duration
	// Drain is how long Serve waits for calls under way when it ends: 2 s.
	Drain time.Duration
}

func (t Timing) withDefaults() Timing {
	for _, d := range []struct {
		value *time.Duration
		std   time.Duration
	}{{&t.Acquire, 20 * time.Second}, {&t.Stream, time.Minute}, {&t.Direct, time.Second}, {&t.Drain, 2 * time.Second}} {
		if *d.value <= 0 {
			*d.value = d.std
		}
	}
	return t
}

// Pings of idle connections: together they notice within 20 s that nobody is there.
const (
	pingAfter   = 10 * time.Second
	pingTimeout = 10 * time.Second
)

// maxMessageBytes bounds a message; what a worker holds is listed in one.
const maxMessageBytes = 64 << 20

// maxSubmits bounds the groups that are put together at the same time, and with them memory.
const maxSubmits = 8

// Server is the learner's side.
type Server struct {
	pb.UnimplementedExchangeServer
	epoch   Epoch
	handler Handler
	timing  Timing
	logger  *slog.Logger
	gate    *gate
	grpc    *grpc.Server
	submits chan struct{}
	// stopping ends long calls.
	stopping context.Context
	stop     context.CancelFunc
	// updates is notified when the handler has something to say to workers.
	updates wait.Signal
}

// NewServer reads the link's key pair and prepares a server.
func NewServer(config ServerConfig) (*Server, error) {
	tls, err := config.Credentials.ServerTLS()
	if err != nil {
		return nil, fmt.Errorf("preparing the exchange: %w", err)
	}
	s := &Server{
		epoch: config.Epoch, handler: config.Handler, timing: config.Timing.withDefaults(), logger: config.Logger,
		gate: newGate(config), submits: make(chan struct{}, maxSubmits),
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(
		grpc.Creds(credentials.NewTLS(tls)),
		grpc.UnaryInterceptor(s.gate.unary),
		grpc.StreamInterceptor(s.gate.stream),
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter / 2, PermitWithoutStream: true}),
	)
	pb.RegisterExchangeServer(s.grpc, s)
	return s, nil
}

// Serve answers on the listener until ctx ends, and closes it. It gives nil when ctx ended. It is called
// once.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	var err error
	served := make(chan struct{})
	go func() {
		defer close(served)
		err = s.grpc.Serve(listener)
	}()
	select {
	case <-served:
		s.stop()
		return fmt.Errorf("serving the exchange: %w", err)
	case <-ctx.Done():
	}
	s.stop()
	drained := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(s.timing.Drain):
		s.grpc.Stop()
	}
	<-served
	return nil
}

// Notify sends all workers what Handler.Directive gives now.
func (s *Server) Notify() { s.updates.Notify() }

// Fence makes the server answer nothing but FENCED: the learner knows of a higher attempt from elsewhere.
func (s *Server) Fence() { s.gate.fence(0) }
