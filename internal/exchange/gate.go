// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
)

// gate lets through what is addressed to this learner: of a worker that has the run's token, that knows of
// no later attempt, and that has said Hello.
type gate struct {
	epoch Epoch
	link  contract.Credentials
	// onFenced is called once.
	onFenced func(higher int32)
	// fenced is closed when a higher attempt was heard of.
	fenced chan struct{}
	once   sync.Once

	mu      sync.Mutex
	greeted map[string]bool
}

func newGate(config ServerConfig) *gate {
	return &gate{
		epoch: config.Epoch, link: config.Credentials, onFenced: config.Fenced,
		fenced: make(chan struct{}), greeted: map[string]bool{},
	}
}

// fence shuts the gate; higher is 0 when the learner itself knows.
func (g *gate) fence(higher int32) {
	g.once.Do(func() {
		close(g.fenced)
		if g.onFenced != nil && higher > 0 {
			g.onFenced(higher)
		}
	})
}

func (g *gate) isFenced() bool {
	select {
	case <-g.fenced:
		return true
	default:
		return false
	}
}

func (g *gate) greet(worker string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.greeted[worker] = true
}

func (g *gate) hasGreeted(worker string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.greeted[worker]
}

// unary guards calls with one request.
func (g *gate) unary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := g.authorize(ctx); err != nil {
		return nil, err
	}
	if err := g.check(request); err != nil {
		return nil, err
	}
	reply, err := handler(ctx, request)
	if g.isFenced() {
		return nil, errFenced
	}
	return reply, err
}

// stream guards calls with many: each message is checked as it comes.
func (g *gate) stream(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := g.authorize(stream.Context()); err != nil {
		return err
	}
	return handler(server, &guardedStream{ServerStream: stream, gate: g})
}

// guardedStream checks messages as they come.
type guardedStream struct {
	grpc.ServerStream
	gate *gate
}

// RecvMsg implements grpc.ServerStream.
func (s *guardedStream) RecvMsg(message any) error {
	if err := s.ServerStream.RecvMsg(message); err != nil {
		return err
	}
	return s.gate.check(message)
}

func (g *gate) authorize(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, value := range md.Get("authorization") {
		if token, ok := strings.CutPrefix(value, "Bearer "); ok && g.link.Authorizes(token) {
			return nil
		}
	}
	return status.Error(codes.Unauthenticated, "no token, or not this run's")
}

// stamped is every message of a worker but the pieces of a group.
type stamped interface {
	GetEpoch() *pb.Epoch
	GetWorker() string
}

func stampOf(message any) (stamped, bool) {
	if frame, ok := message.(*pb.SubmitFrame); ok {
		return frame.GetHeader(), frame.GetHeader() != nil
	}
	s, ok := message.(stamped)
	return s, ok
}

func (g *gate) check(message any) error {
	stamp, ok := stampOf(message)
	if !ok {
		if g.isFenced() {
			return errFenced
		}
		return nil
	}
	epoch := stamp.GetEpoch()
	if epoch.GetRunUid() != g.epoch.RunUID || epoch.GetSpecDigest() != g.epoch.SpecDigest {
		return status.Error(codes.PermissionDenied, "this learner is another run's, or of another spec")
	}
	if epoch.GetAttempt() > g.epoch.Attempt {
		g.fence(epoch.GetAttempt())
	}
	if g.isFenced() {
		return errFenced
	}
	if stamp.GetWorker() == "" {
		return status.Error(codes.InvalidArgument, "worker is missing")
	}
	if _, hello := message.(*pb.HelloRequest); !hello && !g.hasGreeted(stamp.GetWorker()) {
		return status.Error(codes.Aborted, "say Hello first")
	}
	return nil
}
