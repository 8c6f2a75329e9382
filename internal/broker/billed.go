// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/broker/meter"
	"github.com/tinker-operator/tinker-operator/internal/broker/share"
	"github.com/tinker-operator/tinker-operator/internal/broker/tokencount"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// The operations that the server bills.
const (
	opSample          = "asample"
	opForwardBackward = "forward_backward"
	opForward         = "forward"
)

const (
	// budgetSeconds is the Retry-After of a request that a reached budget refuses: the budget may be raised meanwhile.
	budgetSeconds = 60
	// unknownLength is the maximum number of tokens that is assumed for a sample without max_tokens.
	unknownLength = 1 << 15
)

func isBilled(op string) bool { return op == opSample || op == opForwardBackward || op == opForward }

// charge has the turn and the ticket of a submit in progress. Either may be nil.
type charge struct {
	turn *share.Turn

	// mu guards the following fields: the ticket of a large body is made while the body passes.
	mu     sync.Mutex
	ticket *meter.Ticket
	ended  bool
}

func (c *charge) set(ticket *meter.Ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ticket = ticket; c.ended {
		ticket.Release()
	}
}

// answered notes the status of the server's answer.
func (c *charge) answered(status int) {
	if c.turn != nil {
		c.turn.Answered(status == http.StatusTooManyRequests)
	}
}

// accept notes the future of a submit.
func (c *charge) accept(id string) {
	if c.turn != nil {
		c.turn.Accept(id)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ticket != nil {
		c.ticket.Accept(id)
	}
}

// end ends a submit, which has no future if accept was not called.
func (c *charge) end() {
	if c.turn != nil {
		c.turn.End()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.ticket != nil {
		c.ticket.Release()
	}
}

// admit delays a submit until its turn, and until its maximum cost is recorded. Polls and other requests pass at once.
// If a budget is reached, requests that cost nothing still pass, so that runs end at a saved state.
func (b *Broker) admit(ctx context.Context, c *call) error {
	if c.route.reply != replyFuture {
		return nil
	}
	billed := b.config.Meter != nil && isBilled(c.route.op)
	if billed {
		if reached := b.config.Meter.Admit(c.run.UID); reached != nil {
			return refuse(http.StatusPaymentRequired, problem.EndpointBudgetReached,
				"TinkerEndpoint %s: %s", b.config.Endpoint, reached).after(budgetSeconds)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.drained, cancel)()
	if err := b.turn(ctx, c); err != nil {
		return err
	}
	if err := b.config.Lease(); err != nil { // it may have been lost meanwhile
		return standby(b.config.Endpoint, err.Error())
	}
	if c.large != nil {
		return nil // what it costs is known at its end
	}
	return b.reserve(ctx, c)
}

// reserve records the maximum cost of a request that is known as a whole.
func (b *Broker) reserve(ctx context.Context, c *call) error {
	if b.config.Meter == nil || !isBilled(c.route.op) {
		return nil
	}
	request, err := costOf(c)
	if err != nil {
		return invalid(err)
	}
	ticket, err := b.config.Meter.Reserve(ctx, request)
	if err != nil {
		return refuse(http.StatusServiceUnavailable, problem.RecordsBlocked,
			"the broker cannot record what a request may cost: %s", err).after(soonSeconds)
	}
	c.charge.set(ticket)
	return nil
}

// turn waits for the turn of a submit.
func (b *Broker) turn(ctx context.Context, c *call) (err error) {
	if b.config.Gate == nil {
		return nil
	}
	c.charge.turn, err = b.config.Gate.Wait(ctx, share.Request{Run: c.run.UID, Sample: c.route.op == opSample,
		Bytes: int64(len(c.body))})
	if busy, ok := errors.AsType[*share.Busy](err); ok {
		return refuse(http.StatusTooManyRequests, problem.Throttled, "TinkerEndpoint %s: %s", b.config.Endpoint, busy).
			after(int(math.Ceil(busy.RetryAfter.Seconds())))
	}
	if err != nil && b.isDraining() {
		return standby(b.config.Endpoint, "it is being replaced")
	}
	return err
}

// costOf returns the maximum cost of a request that is billed.
func costOf(c *call) (meter.Request, error) {
	request := meter.Request{Run: c.run.UID, Model: c.base}
	forward := c.forward || c.contentType != tinker.ContentProtobuf && c.object.values["forward_backward_input"] == nil
	switch {
	case c.route.op == opSample:
		return request, readSampling(c, &request)
	case c.route.op == opForward || forward:
		request.Tokens.Forward = c.tokens
	default:
		request.Tokens.Train = c.tokens
	}
	return request, nil
}

// readSampling reads the maximum cost of a request for samples.
func readSampling(c *call, request *meter.Request) error {
	samples, params := 1, struct {
		MaxTokens *int `json:"max_tokens"`
	}{}
	for name, into := range map[string]any{"num_samples": &samples, "sampling_params": &params} {
		if value := c.object.values[name]; value != nil {
			if err := json.Unmarshal(value, into); err != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			}
		}
	}
	longest := unknownLength
	if params.MaxTokens != nil {
		longest = *params.MaxTokens
	}
	request.Tokens = endpoint.Tokens{Prefill: c.tokens}
	request.Sampling, request.Samples = true, int64(max(0, samples))*int64(max(0, longest))
	return nil
}

// polling notes that a result is being asked for, until the caller calls done.
func (b *Broker) polling(c *call) (done func()) {
	if b.config.Meter == nil || c.route.reply != replyResult {
		return func() {}
	}
	return b.config.Meter.Poll(c.future.ID)
}

// delivered notes that the result of a future was delivered, or that there is none.
func (b *Broker) delivered(c *call, outcome meter.Outcome, result *tokencount.Result) {
	if outcome != meter.Lost {
		b.owners.deliver(c.future.ID)
	}
	if b.config.Meter != nil {
		var sampled, cached int64
		if result != nil {
			sampled, cached = result.Sampled(), result.Cached()
		}
		b.config.Meter.Settle(c.future.ID, outcome, sampled, cached)
	}
	if b.config.Gate != nil {
		b.config.Gate.Finish(c.future.ID)
	}
}

// counted returns a reader that counts the tokens of a result while it passes, and the counter. The counter is nil if
// the result is not one of asample.
func counted(c *call, media string, from io.Reader) (io.Reader, *tokencount.Result) {
	if c.future.Op != opSample {
		return from, nil
	}
	result := tokencount.NewResult(media)
	return io.TeeReader(from, result), result
}

// ended notes an answer whose status shows that a future has no result any more. A 400 does not show it: a run may
// cause a 400 by the content of its poll, so only the broker's own poll decides that a future has failed.
func (b *Broker) ended(c *call, status int) {
	switch {
	case c.route.op == cancel && status < http.StatusBadRequest && b.config.Gate != nil:
		b.config.Gate.Finish(c.future.ID)
	case c.route.reply == replyResult && (status == http.StatusNotFound || status == http.StatusGone):
		b.delivered(c, meter.Lost, nil)
	}
}
