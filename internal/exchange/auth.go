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
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// authenticator admits the calls of a worker that has the run's token, has not seen a later attempt of the learner,
// and has said Hello.
type authenticator struct {
	epoch       *Epoch
	credentials contract.Credentials
	// onFenced is called once.
	onFenced func(higher int32)
	// fenced is closed once a higher attempt is known.
	fenced chan struct{}
	once   sync.Once

	mu    sync.Mutex
	known map[string]bool
}

func newAuthenticator(config ServerConfig) *authenticator {
	return &authenticator{
		epoch: config.Epoch, credentials: config.Credentials, onFenced: config.Fenced,
		fenced: make(chan struct{}), known: map[string]bool{},
	}
}

// fence refuses all calls from now on. higher is 0 if the learner itself has found out about the higher attempt.
func (a *authenticator) fence(higher int32) {
	a.once.Do(func() {
		close(a.fenced)
		if a.onFenced != nil && higher > 0 {
			a.onFenced(higher)
		}
	})
}

func (a *authenticator) isFenced() bool { return wait.IsClosed(a.fenced) }

func (a *authenticator) admit(worker string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[worker] = true
}

func (a *authenticator) isKnown(worker string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known[worker]
}

// unary checks calls with one request.
func (a *authenticator) unary(ctx context.Context, request any, _ *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler) (any, error) {
	if err := a.authorize(ctx); err != nil {
		return nil, err
	}
	if err := a.check(request); err != nil {
		return nil, err
	}
	reply, err := handler(ctx, request)
	if a.isFenced() {
		return nil, errFenced
	}
	return reply, err
}

// stream checks calls with many requests, each as it comes.
func (a *authenticator) stream(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo,
	handler grpc.StreamHandler) error {
	if err := a.authorize(stream.Context()); err != nil {
		return err
	}
	return handler(server, &checkedStream{ServerStream: stream, auth: a})
}

// checkedStream checks messages as they come.
type checkedStream struct {
	grpc.ServerStream
	auth *authenticator
}

// RecvMsg implements grpc.ServerStream.
func (s *checkedStream) RecvMsg(message any) error {
	if err := s.ServerStream.RecvMsg(message); err != nil {
		return err
	}
	return s.auth.check(message)
}

func (a *authenticator) authorize(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, value := range md.Get("authorization") {
		if token, ok := strings.CutPrefix(value, "Bearer "); ok && a.credentials.Authorizes(token) {
			return nil
		}
	}
	return status.Error(codes.Unauthenticated, "the token is missing or is not this run's")
}

// addressed is every message of a worker except the pieces of a group.
type addressed interface {
	GetEpoch() *pb.Epoch
	GetWorker() string
}

func addressOf(message any) (addressed, bool) {
	if frame, ok := message.(*pb.SubmitFrame); ok {
		return frame.GetHeader(), frame.GetHeader() != nil
	}
	s, ok := message.(addressed)
	return s, ok
}

func (a *authenticator) check(message any) error {
	stamp, ok := addressOf(message)
	if !ok {
		if a.isFenced() {
			return errFenced
		}
		return nil
	}
	epoch := stamp.GetEpoch()
	if epoch.GetRunUid() != a.epoch.GetRunUid() {
		return errOtherRun
	}
	err := contract.CheckRunVersion("the worker's message", int(epoch.GetVersion()), int(a.epoch.GetVersion()))
	if err != nil {
		return status.Error(codes.Unimplemented, err.Error())
	}
	if epoch.GetSpecDigest() != a.epoch.GetSpecDigest() {
		return errOtherRun
	}
	superseded := epoch.GetAttempt() > a.epoch.GetAttempt()
	if superseded && a.credentials.ProvesAttempt(a.epoch.GetRunUid(), epoch.GetAttempt(), epoch.GetProof()) {
		a.fence(epoch.GetAttempt())
	}
	if superseded || a.isFenced() {
		return errFenced
	}
	if stamp.GetWorker() == "" {
		return status.Error(codes.InvalidArgument, "worker is missing")
	}
	if _, hello := message.(*pb.HelloRequest); !hello && !a.isKnown(stamp.GetWorker()) {
		return status.Error(codes.Aborted, "say Hello first")
	}
	return nil
}
