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
)

// Worker is the worker's state as Attend needs it. Its methods are called one at a time.
type Worker interface {
	// Hello tells what the worker has. It is called before each HelloRequest.
	Hello() HelloRequest
	// HandleHello is called with the answer, before any other call of the client goes over the new connection.
	// Of what Hello told to be playing, the worker gives up what the answer does not keep; a lease that
	// came in since is not spoken of.
	HandleHello(reply HelloReply)
	// Renewal tells how the leases go, each one that is being played. It is called before each renewal.
	Renewal() Renewal
	// HandleDirective is called with each directive.
	HandleDirective(directive Directive)
}

// streamLife is how long a Renew stream is used, should the learner not end it.
const streamLife = time.Minute

// Run speaks with the learner: dials, says Hello, renews leases and takes directives for 60 s, then
// dials again, so that the worker goes where the Service points. It goes on through every error but a
// final one, and ends with that or with ctx's.
func (c *Client) Run(ctx context.Context, attendant Worker) error {
	defer c.install(nil)
	for failures := 0; ; {
		err := c.visit(ctx, attendant)
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
		c.config.Logger.Warn("lost the learner", "worker", c.config.Worker, "attempt", c.Attempt(), "failures", failures, "err", err)
		select {
		case <-time.After(redialDelay(failures)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// visit is one connection's worth. It gives nil when the Renew stream came to its regular end; the
// connection then stays in use until the next one is greeted.
func (c *Client) visit(ctx context.Context, attendant Worker) error {
	conn, err := c.greet(ctx, attendant)
	if err != nil {
		c.install(nil)
		return err
	}
	defer conn.release()
	err = c.renew(ctx, conn, attendant)
	if err != nil {
		c.abandon(conn)
	}
	return err
}

// greet says Hello on a new connection and makes it the current one. The caller releases it.
func (c *Client) greet(ctx context.Context, attendant Worker) (*connection, error) {
	conn, err := c.dial()
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	message, err := conn.api.Hello(bounded, helloRequestToProto(c.epoch(), c.config.Worker, attendant.Hello()))
	if err != nil {
		conn.release()
		return nil, clientError(ctx, err)
	}
	reply, err := helloReplyFromProto(message)
	if err != nil {
		conn.release()
		return nil, protocolError(err)
	}
	attendant.HandleHello(reply)
	conn.hold()
	c.install(conn)
	return conn, nil
}

// renew renews leases and takes directives on one stream, until it ends or a call on the connection fails.
func (c *Client) renew(ctx context.Context, conn *connection, attendant Worker) error {
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
	life := time.NewTimer(streamLife)
	defer life.Stop()
	tick := time.NewTicker(c.config.Renew)
	defer tick.Stop()
	send := func() {
		// A send that fails ends the stream; why is told by the receiving side.
		_ = stream.Send(renewalToProto(c.epoch(), c.config.Worker, attendant.Renewal()))
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
			attendant.HandleDirective(next.directive)
		case <-conn.failed:
			return conn.err()
		case <-life.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// streamEnd gives nil for the regular end of a stream.
func streamEnd(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return clientError(ctx, err)
}

// received is a directive, or why there will be no more.
type received struct {
	directive Directive
	err       error
}

// receiveDirectives reads the stream until it ends; ended is closed then. The stream's own context will not
// do for ctx: it is over before the reason for the end has been handed on.
func receiveDirectives(ctx context.Context, stream grpc.BidiStreamingClient[pb.RenewRequest, pb.RenewReply]) (<-chan received, <-chan struct{}) {
	directives, ended := make(chan received), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			message, err := stream.Recv()
			var next received
			if err != nil {
				next.err = err
			}
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
