// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Worker is a worker as Client.Run needs it. Its methods are called one at a time.
type Worker interface {
	// Hello lists the groups of the worker. It is called before each HelloRequest.
	Hello() HelloRequest
	// HandleHello is called with the reply, before any other call of the client goes over the new connection. The worker
	// stops the groups that Hello listed as being played and that the reply does not keep. The reply says nothing about a
	// lease that has arrived since.
	HandleHello(reply HelloReply)
	// Renewal lists the progress of each group that is being played. It is called before each renewal.
	Renewal() Renewal
	// HandleDirective is called with each directive.
	HandleDirective(directive Directive)
}

// streamTimeout is the time for which a Renew stream is used if the learner does not end it.
const streamTimeout = time.Minute

// Run stays connected to the learner: it dials, says Hello, renews leases and receives directives for 60 s, then
// dials again, so that the worker follows the Service. It continues after every error that is not final, and returns
// a final error or the error of ctx.
func (c *Client) Run(ctx context.Context, worker Worker) error {
	defer c.setCurrent(nil)
	for failures := 0; ; {
		err := c.serveOnce(ctx, worker)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			failures = 0
			continue
		case IsFinal(err):
			return err
		}
		failures++
		c.config.Logger.Warn("the connection to the learner failed", "worker", c.config.Worker, "attempt", c.Attempt(),
			"failures", failures, "err", err)
		if err := wait.Sleep(ctx, redialPauses.After(failures)); err != nil {
			return err
		}
	}
}

// serveOnce uses one connection. It returns nil when the Renew stream ended regularly; the connection then
// stays in use until the next one has said Hello.
func (c *Client) serveOnce(ctx context.Context, worker Worker) error {
	conn, err := c.hello(ctx, worker)
	if err != nil {
		c.setCurrent(nil)
		return err
	}
	defer conn.release()
	err = c.renew(ctx, conn, worker)
	if err != nil {
		c.dropCurrent(conn)
	}
	return err
}

// hello says Hello on a new connection and makes it the current one. The caller releases it.
func (c *Client) hello(ctx context.Context, worker Worker) (*connection, error) {
	conn, err := c.dial()
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	message, err := conn.api.Hello(bounded, helloRequestToProto(c.epoch(), c.config.Worker, worker.Hello()))
	if err != nil {
		conn.release()
		return nil, clientError(ctx, err)
	}
	reply, err := helloReplyFromProto(message)
	if err != nil {
		conn.release()
		return nil, protocolError(err)
	}
	worker.HandleHello(reply)
	conn.retain()
	c.setCurrent(conn)
	return conn, nil
}

// renew renews leases and takes directives on one stream, until it ends or a call on the connection fails.
func (c *Client) renew(ctx context.Context, conn *connection, worker Worker) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := conn.api.Renew(ctx)
	if err != nil {
		cancel()
		return clientError(ctx, err)
	}
	directives, ended := receiveDirectives(ctx, stream)
	defer func() {
		cancel()
		<-ended
	}()
	timeout := time.NewTimer(streamTimeout)
	defer timeout.Stop()
	tick := time.NewTicker(c.config.Renew)
	defer tick.Stop()
	send := func() {
		// A send that fails ends the stream; the receiving side has the reason.
		_ = stream.Send(renewalToProto(c.epoch(), c.config.Worker, worker.Renewal()))
	}
	send()
	for {
		select {
		case <-tick.C:
			send()
		case next := <-directives:
			if next.err != nil {
				return streamEnd(ctx, next.err)
			}
			worker.HandleDirective(next.directive)
		case <-conn.failed:
			return conn.err()
		case <-timeout.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// streamEnd returns nil for the regular end of a stream.
func streamEnd(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return clientError(ctx, err)
}

// received is a directive, or the error that ended the stream.
type received struct {
	directive Directive
	err       error
}

// receiveDirectives reads the stream until it ends, and then closes ended. ctx must not be the stream's own context,
// which ends before the reason for its end has been received here.
func receiveDirectives(ctx context.Context, stream grpc.BidiStreamingClient[pb.RenewRequest,
	pb.RenewReply]) (<-chan received, <-chan struct{}) {
	directives, ended := make(chan received), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			message, err := stream.Recv()
			next := received{err: err}
			if err == nil {
				next.directive, err = directiveFromProto(message)
				next.err = protocolError(err)
			}
			select {
			case directives <- next:
			case <-ctx.Done():
				return
			}
			if next.err != nil {
				return
			}
		}
	}()
	return directives, ended
}
