// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// TestNeverRepeatSteps loses the reply to the submit of an operation. A server that would execute forward_backward or
// optim_step once more receives each of them once.
func TestNeverRepeatSteps(t *testing.T) {
	operations := map[string]func(ctx context.Context, m *Model) error{
		"forward_backward": func(ctx context.Context, m *Model) error {
			_, err := m.ForwardBackward(ctx, textData(1), tinker.Loss{Name: tinker.LossCrossEntropy})
			return err
		},
		"optim_step": func(ctx context.Context, m *Model) error {
			_, err := m.OptimStep(ctx, tinker.DefaultAdam())
			return err
		},
		"save_weights": func(ctx context.Context, m *Model) error {
			_, err := m.SaveState(ctx, SaveRequest{Name: "state"})
			return err
		},
	}
	for path, submit := range operations {
		for name, tc := range map[string]struct {
			first scriptedReply
			never bool
			posts int
		}{
			"a lost reply":                            {scriptedReply{lost: true}, true, 1},
			"an error of a proxy":                     {status(502), true, 1},
			"a server that is busy":                   {status(429), true, 2},
			"a lost reply, where repeats are known":   {scriptedReply{lost: true}, false, 2},
			"an error of a proxy, with known repeats": {status(502), false, 2},
		} {
			t.Run(path+", "+name, func(t *testing.T) {
				bubble(t, func(t *testing.T, ctx context.Context) {
					w := newTestClient(t, map[string][]scriptedReply{path: {tc.first, ok(`{"request_id":"r"}`)},
						"retrieve_future": {ok(`{"path":"p"}`)}})
					m := w.createModel(t, ctx)
					want := tc.posts
					if tc.never {
						w.NeverRepeatSteps()
					}
					if path == "save_weights" {
						want = 2 // a repeated save changes nothing
					}
					err := submit(ctx, m)
					if got := len(w.requests(path)); got != want {
						t.Errorf("%s was posted %d times, want %d", path, got, want)
					}
					if failed := err != nil; failed != (want == 1) {
						t.Errorf("submitting: %v", err)
					}
				})
			})
		}
	}
}

// TestRefusedConnectionIsNoExecution checks that a submit may be repeated if no connection was made.
func TestRefusedConnectionIsNoExecution(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	reset := &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
	for err, want := range map[error]bool{refused: false, reset: true} {
		if got := mayBeExecuted(&Error{Category: tinker.CategoryUnreachable, MayHaveRun: true, Err: err}); got != want {
			t.Errorf("%v: the operation may have been executed: %v, want %v", err, got, want)
		}
	}
}

// TestUnansweredAttemptsAreObserved observes attempts that the server may have accepted without an answer. Failed polls
// do not count: a server accepts nothing by a poll.
func TestUnansweredAttemptsAreObserved(t *testing.T) {
	future := ok(`{"request_id":"r"}`)
	result := ok(`{"type":"sample","sequences":[{"stop_reason":"stop","tokens":[1],"logprobs":[-1]}]}`)
	for name, tc := range map[string]struct {
		submits, polls []scriptedReply
		want           bool
	}{
		"nothing fails":             {[]scriptedReply{future}, []scriptedReply{result}, false},
		"a lost reply":              {[]scriptedReply{{lost: true}, future}, []scriptedReply{result}, true},
		"an error of a proxy":       {[]scriptedReply{status(502), future}, []scriptedReply{result}, true},
		"a server that is busy":     {[]scriptedReply{status(429), future}, []scriptedReply{result}, false},
		"a lost reply to a poll":    {[]scriptedReply{future}, []scriptedReply{{lost: true}, result}, false},
		"a poll that a proxy fails": {[]scriptedReply{future}, []scriptedReply{status(502), result}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"asample": tc.submits, "retrieve_future": tc.polls})
				observed := false
				ctx = WithObserver(ctx, func(e Event) { observed = observed || e.Unanswered })
				_, err := w.Sample(ctx, tinker.SampleRequest{NumSamples: 1, Prompt: tinker.Text([]int32{1}),
					SamplingParams: tinker.DefaultSampling()})
				if err != nil || observed != tc.want {
					t.Errorf("observed %v, want %v; error %v", observed, tc.want, err)
				}
			})
		})
	}
}

// TestIsUnanswered separates results and refusals from operations that may be executed later.
func TestIsUnanswered(t *testing.T) {
	for name, tc := range map[string]struct {
		failed Error
		want   bool
	}{
		"a failed result": {Error{Category: tinker.CategoryServer, Status: 200, RequestID: "r",
			MayHaveRun: true}, false},
		"a failed result as 400": {Error{Category: tinker.CategoryNotFound, Status: 400, RequestID: "r",
			MayHaveRun: true}, false},
		"a refused submit": {Error{Category: tinker.CategoryUser, Status: 400}, false},
		"a lost future": {Error{Category: tinker.CategoryFutureLost, Status: 410, RequestID: "r",
			MayHaveRun: true}, true},
		"a result that cannot be decoded": {Error{Category: tinker.CategoryProtocol, Status: 200, RequestID: "r",
			MayHaveRun: true, Err: errors.New("EOF")}, true},
		"a submit that is given up": {Error{Category: tinker.CategoryCanceled, MayHaveRun: true, Err: context.Canceled},
			true},
		"nothing was sent": {Error{Category: tinker.CategoryCanceled, Err: context.Canceled}, false},
	} {
		if got := IsUnanswered(&tc.failed); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
