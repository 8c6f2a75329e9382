// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Future is a result that is being fetched. Fetching began with the submit, under the submit's context,
// whether anybody waits or not.
type Future[T any] struct {
	op    string
	done  chan struct{}
	value T
	err   error
}

// Wait returns the result once it is there. It may be called any number of times, by any goroutine; the
// end of its ctx ends the waiting, not the fetching.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-f.done:
		return f.value, f.err
	default:
	}
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var zero T
		return zero, &Error{Category: tinker.CategoryCanceled, Op: f.op, MayHaveRun: true, Err: context.Cause(ctx)}
	}
}

// Done is closed when the result or its error is there.
func (f *Future[T]) Done() <-chan struct{} { return f.done }

// inBackground runs the function in its own goroutine.
func inBackground[T any](op string, run func() (T, error)) *Future[T] {
	f := &Future[T]{op: op, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.value, f.err = run()
	}()
	return f
}

// promise is a submit that was answered: what was asked, and the id to fetch the result by.
type promise struct {
	op     string
	id     string
	accept string
}

// requestTypes are the names that polls carry for the server's own bookkeeping.
var requestTypes = map[string]string{
	tinker.TypeCreateModel: "CreateModel",
	opForwardBackward:      "ForwardBackward",
	opForward:              "Forward",
	tinker.TypeOptimStep:   "OptimStep",
	tinker.TypeSaveWeights: "SaveWeights",
	tinker.TypeSaveSampler: "SaveWeightsForSampler",
	tinker.TypeLoadWeights: "LoadWeights",
	tinker.TypeUnloadModel: "UnloadModel",
	opSample:               "Sample",
}

// submit sends an operation until it is accepted.
func (c *Client) submit(ctx context.Context, ask call) (promise, error) {
	accepted, err := fetch[tinker.FutureResponse](ctx, c, ask)
	if err != nil {
		return promise{}, err
	}
	if accepted.RequestID == "" {
		return promise{}, protocolError(ask.op, fmt.Errorf("answer has no request_id"))
	}
	return promise{op: ask.op, id: accepted.RequestID, accept: tinker.ContentJSON}, nil
}

// fetchInBackground starts to fetch a promise's result.
func fetchInBackground[T any](ctx context.Context, c *Client, p promise, decode func(reply) (T, error)) *Future[T] {
	return inBackground(p.op, func() (T, error) { return redeem(ctx, c, p, decode) })
}

// redeem fetches a promise's result. Its errors name the promise, and all may have run.
func redeem[T any](ctx context.Context, c *Client, p promise, decode func(reply) (T, error)) (T, error) {
	var value T
	answer, err := c.poll(ctx, p)
	if err == nil {
		if value, err = decode(answer); err == nil {
			return value, nil
		}
	}
	failed := asError(p.op, err)
	failed.Op, failed.RequestID, failed.MayHaveRun = p.op, p.id, true
	var zero T
	return zero, failed
}

func decodeResult[T any](op string) func(reply) (T, error) {
	return func(answer reply) (T, error) {
		if answer.protobuf() {
			var zero T
			return zero, protocolError(op, fmt.Errorf("result is in protobuf"))
		}
		return decodeJSON[T](op, answer)
	}
}

// decodeProtobuf wraps one of the protobuf decoders.
func decodeProtobuf[T any](op string, decode func([]byte) (T, error)) func(reply) (T, error) {
	return func(answer reply) (T, error) {
		var zero T
		if !answer.protobuf() {
			return zero, protocolError(op, fmt.Errorf("result is not in protobuf"))
		}
		value, err := decode(answer.body)
		if err != nil {
			return zero, protocolError(op, err)
		}
		return value, nil
	}
}

const (
	pollTimeout = 45 * time.Second
	// maxPace is the most that polls are apart if the server does not hold them.
	maxPace = 5 * time.Second
)

// poll asks for a promise until its result is there. A server holds each poll for some thirty seconds; one
// that answers at once is asked at a growing distance.
func (c *Client) poll(ctx context.Context, p promise) (reply, error) {
	pace := backoff{limit: maxPace}
	paused := tinker.QueueState("")
	metadataOnly := true
	for iteration := 0; ; iteration++ {
		held := time.NewTimer(pace.delay())
		answer, err := c.pollOnce(ctx, p, iteration, metadataOnly)
		if err != nil {
			held.Stop()
			return reply{}, err
		}
		state, err := readState(p, answer, metadataOnly)
		paused = c.reportPause(p.op, paused, state)
		switch {
		case err != nil || state.done:
			held.Stop()
			return answer, err
		case state.size > 0:
			held.Stop()
			if err := c.responses.reserve(ctx, state.size); err != nil {
				return reply{}, canceled(p.op, err)
			}
			defer c.responses.add(state.size)
			metadataOnly = false
			continue
		}
		if pace, err = awaitPace(ctx, held, pace); err != nil {
			return reply{}, canceled(p.op, err)
		}
	}
}

// awaitPace waits until the timer fires. If it has fired already, the server held the poll, and the pace
// starts anew.
func awaitPace(ctx context.Context, held *time.Timer, pace backoff) (backoff, error) {
	select {
	case <-held.C:
		return backoff{limit: maxPace}, nil
	default:
	}
	defer held.Stop()
	select {
	case <-held.C:
		return pace, nil
	case <-ctx.Done():
		return pace, context.Cause(ctx)
	}
}

func (c *Client) pollOnce(ctx context.Context, p promise, iteration int, metadataOnly bool) (reply, error) {
	ask, err := postJSON(p.op, "retrieve_future", tinker.RetrieveRequest{RequestID: p.id, AllowMetadataOnly: metadataOnly})
	if err != nil {
		return reply{}, err
	}
	ask.accept = p.accept
	ask.timeout = pollTimeout
	ask.answers = []int{http.StatusRequestTimeout}
	ask.header = map[string]string{
		"X-Tinker-Request-Iteration": strconv.Itoa(iteration),
		"X-Tinker-Request-Type":      requestTypes[p.op],
	}
	return c.do(ctx, ask)
}

// state is what a poll's answer says.
type state struct {
	done bool
	// size of a result that is there, and is to be asked for once more.
	size   int64
	queue  tinker.QueueState
	reason string
}

// readState tells results, failures and the rest apart by the keys that the protocol reserves.
func readState(p promise, answer reply, metadataOnly bool) (state, error) {
	if answer.status != http.StatusRequestTimeout && answer.protobuf() {
		return state{done: true}, nil
	}
	var envelope *struct {
		Type     string            `json:"type"`
		Status   string            `json:"status"`
		Size     int64             `json:"response_payload_size"`
		Error    json.RawMessage   `json:"error"`
		Category tinker.Category   `json:"category"`
		Queue    tinker.QueueState `json:"queue_state"`
		Reason   *string           `json:"queue_state_reason"`
	}
	err := json.Unmarshal(answer.body, &envelope)
	waiting := state{}
	if err == nil && envelope != nil {
		waiting.queue = envelope.Queue
		if envelope.Reason != nil {
			waiting.reason = *envelope.Reason
		}
	}
	switch {
	case answer.status == http.StatusRequestTimeout:
		return waiting, nil
	case err != nil || envelope == nil:
		return state{}, protocolError(p.op, fmt.Errorf("result is not an object of JSON"))
	case envelope.Type == tinker.TypeTryAgain:
		return waiting, nil
	case envelope.Error != nil:
		return state{}, failedResult(p, answer.body, envelope.Category)
	case envelope.Status == tinker.StatusCompleteMetadata && !metadataOnly:
		return state{}, protocolError(p.op, fmt.Errorf("result was asked for whole and is withheld"))
	case envelope.Status == tinker.StatusCompleteMetadata:
		return state{size: max(envelope.Size, 1)}, nil
	}
	return state{done: true}, nil
}

// reportPause tells of a queue that is paused, each time a poll says so, and once when it goes on.
func (c *Client) reportPause(op string, before tinker.QueueState, now state) tinker.QueueState {
	if now.queue == "" || now.queue == tinker.QueueActive {
		if before != "" {
			c.observe(Event{Op: op, Category: tinker.CategoryPaused, QueueState: before, Over: true})
		}
		return ""
	}
	c.observe(Event{Op: op, Category: tinker.CategoryPaused, QueueState: now.queue, Reason: now.reason})
	return now.queue
}
