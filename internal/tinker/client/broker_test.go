// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// brokerReply is an answer that a broker made itself.
func brokerReply(status int, code problem.Code, forwarded bool) scriptedReply {
	return scriptedReply{status: status, body: `{"detail":"of the broker"}`, header: map[string]string{
		tinker.HeaderBrokerCode: string(code), tinker.HeaderBrokerForwarded: fmt.Sprint(forwarded)}}
}

// TestAnswersOfABroker makes the broker itself answer a step once. A server that would execute a repeat receives a
// repeat only if the broker says that it did not forward the first attempt.
func TestAnswersOfABroker(t *testing.T) {
	for name, tc := range map[string]struct {
		first scriptedReply
		posts int
		waits problem.Code
		fails tinker.Category
	}{
		"drains": {brokerReply(503, problem.BrokerDraining, false), 2, problem.BrokerDraining, ""},
		"did not connect": {brokerReply(502, problem.EndpointUnreachable, false), 2,
			problem.EndpointUnreachable, ""},
		"got no answer":         {brokerReply(502, problem.EndpointUnreachable, true), 1, "", tinker.CategoryUnreachable},
		"cannot record":         {brokerReply(503, problem.RecordsBlocked, true), 1, "", tinker.CategoryServer},
		"has a refused key":     {brokerReply(503, problem.EndpointKeyRefused, false), 2, problem.EndpointKeyRefused, ""},
		"does not know the run": {brokerReply(401, problem.TokenRefused, false), 2, problem.TokenRefused, ""},
		"has a budget used up": {brokerReply(402, problem.EndpointBudgetReached, false), 2,
			problem.EndpointBudgetReached, ""},
		"is of another version":    {brokerReply(503, "MoonsMissing", false), 2, problem.EndpointFailing, ""},
		"does not pass the route":  {brokerReply(403, problem.RouteRefused, false), 1, "", tinker.CategoryUnsupported},
		"knows no such model":      {brokerReply(404, problem.ObjectNotOwned, false), 1, "", tinker.CategoryNotFound},
		"does not permit a model":  {brokerReply(400, problem.ModelRefused, false), 1, "", tinker.CategoryUser},
		"is not there, but a page": {status(503), 1, "", tinker.CategoryServer},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"optim_step": {tc.first, ok(`{"request_id":"r"}`)}})
				m := w.createModel(t, ctx)
				w.NeverRepeatSteps()
				var waits problem.Code
				var over bool
				ctx = WithObserver(ctx, func(e Event) {
					if e.Op == tinker.TypeOptimStep && !e.Over {
						waits = codeOf(e)
					}
					over = over || e.Over && codeOf(e) == waits
				})
				_, err := m.OptimStep(ctx, tinker.DefaultAdam())
				if got := len(w.requests("optim_step")); got != tc.posts || CategoryFrom(err) != tc.fails {
					t.Errorf("%d posts and the error %v, want %d posts and category %q", got, err, tc.posts, tc.fails)
				}
				if waits != tc.waits || over != (waits != "") {
					t.Errorf("the call waits for %q (over: %t), want %q, and its end", waits, over, tc.waits)
				}
			})
		})
	}
}

// TestModelsThatABrokerRefuses checks that the failure has the code of the broker, which tells people whom to ask.
func TestModelsThatABrokerRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{"create_session": {ok(`{"session_id":"s"}`)},
			"create_model": {brokerReply(400, problem.ModelRefused, false)}})
		_, err := w.CreateModel(ctx, tinker.CreateModelRequest{Session: "s", BaseModel: "m", Lora: tinker.DefaultLora()})
		if got := FailsOf(err); got != problem.ModelRefused {
			t.Errorf("the failure %v has the code %q, want %s", err, got, problem.ModelRefused)
		}
	})
}

// unconnected is a transport that makes no connection for a time.
type unconnected struct {
	http.RoundTripper
	until time.Time
}

func (u unconnected) RoundTrip(r *http.Request) (*http.Response, error) {
	if time.Now().Before(u.until) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	return u.RoundTripper.RoundTrip(r)
}

// TestCallsReturnSoonAfterABrokerDoes leaves the endpoint without a broker for the time that a standby needs to take
// over.
func TestCallsReturnSoonAfterABrokerDoes(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		const away = 10200 * time.Millisecond
		c, err := New(Config{BaseURL: "http://server.test", APIKey: testKey, Spread: func() float64 { return 1 },
			HTTP: &http.Client{Transport: unconnected{newScriptedServer(nil), time.Now().Add(away)}}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := c.Connect(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the call returned after %s, want 15 s at most", took)
		}
	})
}
