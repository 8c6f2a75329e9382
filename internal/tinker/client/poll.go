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

// requestTypes are the names of operations in the header of polls, for the server's own use.
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

const (
	// pollTimeout is the time for which the client waits for the response to a poll. Some servers hold polls for longer.
	pollTimeout = 45 * time.Second
	// maxPollDelay is the longest delay between polls that the server does not hold.
	maxPollDelay = 5 * time.Second
)

// poll polls until a result is available, and passes it to decode. A server holds each poll for about thirty seconds;
// if it does not, the delay between polls grows.
func (c *caller) poll(ctx context.Context, p pending, decode func(response) error) error {
	delay := newBackoff(maxPollDelay, c.spread)
	paused := tinker.QueueState("")
	metadataOnly := true
	for iteration := 0; ; iteration++ {
		next := time.NewTimer(delay.Next())
		resp, err := c.pollOnce(ctx, p, iteration, metadataOnly, decode)
		if err != nil {
			next.Stop()
			return err
		}
		state, err := readState(p, resp, metadataOnly)
		paused = c.reportPause(ctx, p.op, paused, state)
		switch {
		case err != nil || state.done:
			next.Stop()
			return err
		case state.size > 0:
			next.Stop()
			if err := c.downloads.Reserve(ctx, state.size); err != nil {
				return canceled(p.op, err)
			}
			defer c.downloads.Add(state.size)
			metadataOnly = false
			continue
		}
		if delay, err = awaitNextPoll(ctx, next, delay); err != nil {
			return canceled(p.op, err)
		}
	}
}

// awaitNextPoll waits until the timer fires. If it has fired already, the server held the poll, and the backoff
// starts again.
func awaitNextPoll(ctx context.Context, next *time.Timer, delay backoff) (backoff, error) {
	select {
	case <-next.C:
		delay.Failures = 0
		return delay, nil
	default:
	}
	defer next.Stop()
	select {
	case <-next.C:
		return delay, nil
	case <-ctx.Done():
		return delay, context.Cause(ctx)
	}
}

// pollRequest is the common part of all requests of polls.
var pollRequest = request{method: http.MethodPost, path: "retrieve_future"}

func (c *caller) pollOnce(ctx context.Context, p pending, iteration int, metadataOnly bool,
	decode func(response) error) (response, error) {
	req, err := postJSON(p.op, pollRequest.path, tinker.RetrieveRequest{RequestID: p.id, AllowMetadataOnly: metadataOnly})
	if err != nil {
		return response{}, err
	}
	req.accept = p.accept
	req.timeout, req.longPoll = pollTimeout, true
	req.accepted = []int{http.StatusRequestTimeout}
	req.header = map[string]string{
		"X-Tinker-Request-Iteration": strconv.Itoa(iteration),
		"X-Tinker-Request-Type":      requestTypes[p.op],
	}
	req.check = func(resp response) error { return checkPoll(p, resp, metadataOnly, decode) }
	return c.do(ctx, req)
}

// checkPoll returns an error if the response to a poll is neither a result that decode accepts, nor a failure or a
// state.
func checkPoll(p pending, resp response, metadataOnly bool, decode func(response) error) error {
	state, err := readState(p, resp, metadataOnly)
	if err != nil && CategoryFrom(err) != tinker.CategoryProtocol {
		return nil // the operation has failed
	}
	if err == nil && state.done {
		err = decode(resp)
	}
	if err == nil {
		return nil
	}
	return quoted(asError(p.op, err), resp)
}

// pollState is the state of a result in the response to a poll.
type pollState struct {
	done bool
	// size is the size of an available result that must be requested once more.
	size   int64
	queue  tinker.QueueState
	reason string
}

// readState distinguishes results, failures and states by the keys that the protocol reserves.
func readState(p pending, resp response, metadataOnly bool) (pollState, error) {
	if resp.status != http.StatusRequestTimeout && resp.isProtobuf() {
		return pollState{done: true}, nil
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
	err := json.Unmarshal(resp.body, &envelope)
	waiting := pollState{}
	if err == nil && envelope != nil {
		waiting.queue = envelope.Queue
		if envelope.Reason != nil {
			waiting.reason = *envelope.Reason
		}
	}
	switch {
	case resp.status == http.StatusRequestTimeout:
		return waiting, nil
	case err != nil || envelope == nil:
		return pollState{}, protocolError(p.op, fmt.Errorf("result is not a JSON object"))
	case envelope.Type == tinker.TypeTryAgain:
		return waiting, nil
	case envelope.Error != nil:
		return pollState{}, failedResult(p, resp.body, envelope.Category)
	case envelope.Status == tinker.StatusCompleteMetadata && !metadataOnly:
		return pollState{}, protocolError(p.op, fmt.Errorf("server withholds a result that was requested in full"))
	case envelope.Status == tinker.StatusCompleteMetadata:
		return pollState{size: max(envelope.Size, 1)}, nil
	}
	return pollState{done: true}, nil
}

// reportPause reports a paused queue after each poll that says so, and its end once.
func (c *caller) reportPause(ctx context.Context, op string, before tinker.QueueState,
	now pollState) tinker.QueueState {
	if now.queue == "" || now.queue == tinker.QueueActive {
		if before != "" {
			c.notify(ctx, Event{Op: op, Category: tinker.CategoryPaused, QueueState: before, Over: true})
		}
		return ""
	}
	c.notify(ctx, Event{Op: op, Category: tinker.CategoryPaused, QueueState: now.queue, Reason: c.redacted(now.reason)})
	return now.queue
}
