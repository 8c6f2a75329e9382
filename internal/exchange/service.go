// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

var _ pb.ExchangeServer = (*Server)(nil)

// Hello implements the service.
func (s *Server) Hello(ctx context.Context, request *pb.HelloRequest) (*pb.HelloReply, error) {
	hello, err := helloRequestFromProto(request)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	reply, err := s.handler.Hello(ctx, request.GetWorker(), hello)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	s.auth.admit(request.GetWorker())
	s.logger.Info("worker connected", "worker", request.GetWorker(), "stored", len(hello.Stored),
		"playing", len(hello.Playing), "wanted", len(reply.Wanted), "kept", len(reply.Keep))
	return helloReplyToProto(s.epoch, reply), nil
}

// Acquire implements the service.
func (s *Server) Acquire(ctx context.Context, request *pb.AcquireRequest) (*pb.AcquireReply, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timing.Acquire)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	leases, err := s.handler.Acquire(ctx, request.GetWorker(), int(request.GetFree()))
	if err != nil && ctx.Err() == nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &pb.AcquireReply{Epoch: s.epoch, Leases: all(leases, leaseToProto)}, nil
}

// Release implements the service.
func (s *Server) Release(_ context.Context, request *pb.ReleaseRequest) (*pb.ReleaseReply, error) {
	var d decoder
	keys := each("keys", request.GetKeys(), d.key)
	if d.err != nil {
		return nil, status.Error(codes.InvalidArgument, d.err.Error())
	}
	ended := keys
	if request.GetReason() == SamplesUnanswered {
		ended = nil // the worker keeps the leases
	}
	s.report(request.GetWorker(), request.GetSpent(), ended)
	s.handler.Release(request.GetWorker(), keys, request.GetReason())
	return &pb.ReleaseReply{Epoch: s.epoch}, nil
}

// Submit implements the service.
func (s *Server) Submit(stream grpc.ClientStreamingServer[pb.SubmitFrame, pb.SubmitReply]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	header := first.GetHeader()
	if header == nil {
		return status.Error(codes.InvalidArgument, "the first frame is not a header")
	}
	done, err := s.awaitTurn(stream.Context(), header.GetBytes())
	if err != nil {
		return err
	}
	defer done()
	group, digest, err := receiveGroup(header, stream.Recv)
	if _, ok := errors.AsType[*transferError](err); ok {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if wrong, ok := errors.AsType[*rl.FieldError](err); ok {
		s.logger.Warn("group refused", "worker", header.GetWorker(), "slot", header.GetKey().GetSlot(),
			"field", wrong.Field, "problem", wrong.Problem)
		return stream.SendAndClose(&SubmitReply{Epoch: s.epoch, Status: Invalid, Field: wrong.Field})
	}
	if err != nil {
		return err
	}
	s.report(header.GetWorker(), header.GetSpent(), []rl.Key{group.Key})
	reply := s.handler.Submit(header.GetWorker(), group, digest)
	reply.Epoch = s.epoch
	return stream.SendAndClose(reply)
}

// awaitTurn waits until a group of the given size may be received, and returns the function that ends its turn. Small
// groups do not wait for large ones.
func (s *Server) awaitTurn(ctx context.Context, bytes int64) (done func(), err error) {
	turns, weight := s.small, int64(1)
	if bytes > smallSubmit {
		turns, weight = s.large, min(bytes, maxSubmitBytes)
	}
	if err := turns.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	return func() { turns.Release(weight) }, nil
}

// Renew implements the service. It answers each message of the worker, and sends a directive by itself when the
// directive has changed.
func (s *Server) Renew(stream grpc.BidiStreamingServer[pb.RenewRequest, pb.RenewReply]) error {
	requests, failed := receiveRenewals(stream)
	timeout := time.NewTimer(s.timing.Stream)
	defer timeout.Stop()
	tick := time.NewTicker(s.timing.Direct)
	defer tick.Stop()
	r, updated := renewStream{server: s, stream: stream}, s.updates.Changed()
	for {
		var err error
		select {
		case request := <-requests:
			err = r.answer(request)
		case <-updated:
			// The channel is taken first: the next update may come while this directive is made.
			updated = s.updates.Changed()
			err = r.update()
		case <-tick.C:
			err = r.update()
		case err := <-failed:
			r.disconnect()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-timeout.C:
			return nil
		case <-s.auth.fenced:
			return errFenced
		case <-s.stopping.Done():
			return status.Error(codes.Unavailable, "the learner is stopping")
		}
		if err != nil {
			r.disconnect()
			return err
		}
	}
}

// receiveRenewals reads the stream until it ends, which it does at the latest when its handler returns.
func receiveRenewals(stream grpc.BidiStreamingServer[pb.RenewRequest, pb.RenewReply]) (<-chan *pb.RenewRequest,
	<-chan error) {
	requests, failed := make(chan *pb.RenewRequest), make(chan error, 1)
	go func() {
		for {
			request, err := stream.Recv()
			if err != nil {
				failed <- err
				return
			}
			select {
			case requests <- request:
			case <-stream.Context().Done():
				// The message that was not taken must not hide that the stream ended.
				failed <- stream.Context().Err()
				return
			}
		}
	}()
	return requests, failed
}

// renewStream is one Renew stream.
type renewStream struct {
	server *Server
	stream grpc.BidiStreamingServer[pb.RenewRequest, pb.RenewReply]
	// worker is known once it has sent a message.
	worker string
	// last is the directive that was sent last.
	last *pb.RenewReply
}

func (r *renewStream) answer(request *pb.RenewRequest) error {
	if r.worker != "" && request.GetWorker() != r.worker {
		return status.Error(codes.InvalidArgument, "the stream is another worker's")
	}
	r.worker = request.GetWorker()
	renewal, err := renewalFromProto(request)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return r.send(r.server.handler.Renew(r.worker, renewal))
}

// disconnect reports that the stream ended without the server's doing.
func (r *renewStream) disconnect() {
	if r.worker != "" {
		r.server.handler.Disconnected(r.worker)
	}
}

func (r *renewStream) update() error {
	if r.worker == "" {
		return nil
	}
	directive := r.server.handler.Directive(r.worker)
	if proto.Equal(directiveToProto(r.server.epoch, directive), r.last) {
		return nil
	}
	return r.send(directive)
}

func (r *renewStream) send(directive Directive) error {
	r.last = directiveToProto(r.server.epoch, directive)
	return r.stream.Send(r.last)
}
