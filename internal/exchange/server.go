// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Handler is the learner's lease table. Its methods are called concurrently and, except for Hello, never for a worker
// that has not said Hello to this server.
type Handler interface {
	// Hello receives the groups of a worker. It is called at least once a minute and does not mean that the worker was
	// restarted. A lease that the worker was given while its Hello was in flight is not in it; a lease that neither Hello
	// nor Renew lists for some seconds was lost with the reply that carried it. After an error the worker finds the
	// learner unreachable, and comes back.
	Hello(ctx context.Context, worker string, request HelloRequest) (HelloReply, error)
	// Acquire waits until there are leases for a worker with room for free episodes. It returns none when ctx ends
	// first, which it does after 20 s. The call shows that the worker is alive when the call arrives, but not while it
	// waits.
	Acquire(ctx context.Context, worker string, free int) ([]Lease, error)
	// Renew receives the worker's report and returns a directive. It does not block.
	Renew(worker string, renewal Renewal) Directive
	// Report receives the worker's spending, which comes with each Submit and Release. It is called before Submit and
	// Release. ended are the groups that the worker had ended by then: it makes no further requests for them.
	Report(worker string, spent Spent, ended []rl.Key)
	// Directive returns a directive when the server sends one by itself: after Notify, and once a second. The call does
	// not mean that the worker is alive. It does not block.
	Directive(worker string) Directive
	// Submit receives a group that is valid by itself (rl.Group.Validate), and its digest.
	Submit(worker string, group rl.Group, digest rl.Digest) *SubmitReply
	// Disconnected reports that a worker's Renew stream broke, or that the worker ended it. A live worker says Hello
	// within seconds, or has done so already on another connection, and continues to renew.
	Disconnected(worker string)
	// Release returns leases without a group. The reason is Drained, PolicyMissing, EnvironmentDown, NotPlayed or
	// SamplesUnanswered; with the last of these, the worker keeps the leases.
	Release(worker string, keys []rl.Key, reason string)
}

// ServerConfig configures a Server.
type ServerConfig struct {
	// Epoch is the epoch of this learner, without a proof. Its version defaults to contract.FormatVersion.
	Epoch       *Epoch
	Credentials contract.Credentials
	Handler     Handler
	// Fenced is called, once, when a worker knows of a higher attempt. From then on the server answers nothing but
	// FENCED. It must not block.
	Fenced func(higher int32)
	// Logger may be nil.
	Logger *slog.Logger
	Timing Timing
}

// Timing configures a server. A zero field means the default that its comment names.
type Timing struct {
	// Acquire is the time for which Acquire waits: 20 s.
	Acquire time.Duration
	// Stream is the duration of a Renew stream: 60 s.
	Stream time.Duration
	// Direct is the interval at which a worker is sent changes without a Notify: 1 s.
	Direct time.Duration
	// Drain is the time for which Serve waits for calls in flight when it ends: 2 s.
	Drain time.Duration
}

func (t Timing) withDefaults() Timing {
	return Timing{
		Acquire: cmp.Or(t.Acquire, 20*time.Second), Stream: cmp.Or(t.Stream, time.Minute),
		Direct: cmp.Or(t.Direct, time.Second), Drain: cmp.Or(t.Drain, 2*time.Second),
	}
}

// Pings of idle connections notice within 20 s that the other side does not answer.
const (
	pingAfter   = 10 * time.Second
	pingTimeout = 10 * time.Second
)

// maxMessageBytes bounds a message; one message lists everything that a worker stores.
const maxMessageBytes = 64 << 20

// Together these bound the memory of the groups that are received at the same time, whatever the number of workers:
// maxSubmits groups of at most smallSubmit bytes, and beside them larger groups of maxSubmitBytes in all, or one group
// that is larger than that.
const (
	maxSubmits     = 8
	smallSubmit    = 4 << 20
	maxSubmitBytes = 32 << 20
)

// submitWindow is the part of a group that arrives before it has its turn, in bytes. It is static: a window that adapts
// to the network may become as large as 16 MiB for each of the groups that wait.
const submitWindow = 128 << 10

// Server is the learner's side of the exchange.
type Server struct {
	pb.UnimplementedExchangeServer
	// epoch is in every reply, and never changes.
	epoch   *Epoch
	handler Handler
	timing  Timing
	logger  *slog.Logger
	auth    *authenticator
	grpc    *grpc.Server
	// small has the turns of small groups, and large the bytes of large ones.
	small, large *semaphore.Weighted
	// stopping ends long calls.
	stopping context.Context
	stop     context.CancelFunc
	// updates is notified when the handler has something to say to workers.
	updates wait.Signal
}

// NewServer reads the run's key pair and prepares a server.
func NewServer(config ServerConfig) (*Server, error) {
	tls, err := config.Credentials.ServerTLS()
	if err != nil {
		return nil, fmt.Errorf("preparing the exchange: %w", err)
	}
	config.Epoch = proto.CloneOf(config.Epoch)
	config.Epoch.Version = cmp.Or(config.Epoch.GetVersion(), contract.FormatVersion)
	config.Epoch.Proof, err = config.Credentials.ProveAttempt(config.Epoch.GetRunUid(), config.Epoch.GetAttempt())
	if err != nil {
		return nil, fmt.Errorf("preparing the exchange: %w", err)
	}
	s := &Server{
		epoch: config.Epoch, handler: config.Handler, timing: config.Timing.withDefaults(),
		logger: cmp.Or(config.Logger, slog.New(slog.DiscardHandler)),
		auth:   newAuthenticator(config), small: semaphore.NewWeighted(maxSubmits),
		large: semaphore.NewWeighted(maxSubmitBytes),
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(
		grpc.Creds(credentials.NewTLS(tls)),
		grpc.UnaryInterceptor(s.auth.unary),
		grpc.StreamInterceptor(s.auth.stream),
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.StaticStreamWindowSize(submitWindow), grpc.StaticConnWindowSize(submitWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter / 2, PermitWithoutStream: true}),
	)
	pb.RegisterExchangeServer(s.grpc, s)
	return s, nil
}

// Serve answers on the listener until ctx ends, and closes it. It returns nil when ctx ended. It is called once.
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

// Notify sends all workers the result of Handler.Directive.
func (s *Server) Notify() { s.updates.Notify() }

// Fence makes the server answer nothing but FENCED: the learner knows of a higher attempt from elsewhere.
func (s *Server) Fence() { s.auth.fence(0) }
