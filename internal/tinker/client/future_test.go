// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

const (
	tryAgain = `{"type":"try_again","request_id":"r","queue_state":"active","queue_state_reason":null}`
	paused   = `{"type":"try_again","request_id":"r","queue_state":"paused_capacity","queue_state_reason":"full"}`
	saved    = `{"path":"tinker://s:train:0/weights/n","type":"save_weights"}`
)

func delayed(a scriptedReply) scriptedReply {
	a.hold = 30 * time.Second
	return a
}

func TestPolls(t *testing.T) {
	cases := map[string]struct {
		polls  []scriptedReply
		at     []time.Duration
		events []string
	}{
		"An available result": {polls: []scriptedReply{ok(saved)}, at: ms(0)},
		"Another poll follows a held poll at once": {
			polls: []scriptedReply{delayed(ok(tryAgain)), delayed(status(408)), delayed(scriptedReply{status: 408}), ok(saved)},
			at:    ms(0, 30000, 60000, 90000),
		},
		"The delay between polls that are not held grows to five seconds": {
			polls: []scriptedReply{ok(tryAgain), ok(tryAgain), status(408), ok(tryAgain), ok(tryAgain), ok(tryAgain), ok(saved)},
			at:    ms(0, 500, 1500, 3500, 7500, 12500, 17500),
		},
		"The delay starts again after the server holds a poll": {
			polls: []scriptedReply{ok(tryAgain), ok(tryAgain), delayed(ok(tryAgain)), ok(tryAgain), ok(saved)},
			at:    ms(0, 500, 1500, 31500, 32000),
		},
		"The start and the end of a pause are reported": {
			polls: []scriptedReply{
				delayed(ok(paused)), delayed(scriptedReply{status: 408, body: `{"queue_state":"paused_rate_limit"}`}),
				delayed(ok(tryAgain)), ok(saved),
			},
			at: ms(0, 30000, 60000, 90000),
			events: []string{
				"save_weights paused paused_capacity", "save_weights paused paused_rate_limit",
				"save_weights paused paused_rate_limit over",
			},
		},
		"A result ends a pause": {
			polls: []scriptedReply{delayed(ok(paused)), ok(saved)}, at: ms(0, 30000),
			events: []string{"save_weights paused paused_capacity", "save_weights paused paused_capacity over"},
		},
		"Another poll follows at once one that the server holds for longer than the client waits": {
			polls: []scriptedReply{{hold: time.Hour}, {hold: time.Hour}, ok(saved)}, at: ms(0, 45000, 90000),
		},
		"A lost poll is repeated after a delay": {
			polls: []scriptedReply{{hold: time.Second, lost: true}, ok(saved)}, at: ms(0, 1500),
			events: []string{"save_weights unreachable", "save_weights unreachable over"},
		},
		"5xx, 429 and 402 are repeated after a delay": {
			polls: []scriptedReply{status(500), status(503), {status: 429, header: map[string]string{"Retry-After": "3"}},
				status(402), ok(saved)},
			at: ms(0, 500, 1500, 4500, 9500),
			events: []string{
				"save_weights server", "save_weights server", "save_weights server over", "save_weights throttled",
				"save_weights throttled over", "save_weights payment", "save_weights payment over",
			},
		},
		"A refused poll says nothing about the operation": {
			polls: []scriptedReply{status(400), status(400), status(400), status(400), ok(saved)},
			at:    ms(0, 500, 1500, 3500, 7500),
			events: []string{"save_weights user", "save_weights user", "save_weights user", "save_weights user",
				"save_weights user over"},
		},
		"A poll is repeated after statuses that no poll has, and after pages": {
			polls: []scriptedReply{status(413), status(413), status(405), status(409), status(422), status(418), ok("<html>"),
				ok("{"), ok(saved)},
			at: ms(0, 500, 1500, 3500, 7500, 15500, 31500, 61500, 91500),
			events: []string{
				"save_weights too_large", "save_weights too_large", "save_weights too_large over", "save_weights unsupported",
				"save_weights unsupported over", "save_weights conflict", "save_weights conflict over", "save_weights user",
				"save_weights user",
				"save_weights user over", "save_weights protocol", "save_weights protocol", "save_weights protocol over",
			},
		},
		"A large result is requested once more": {
			polls: []scriptedReply{ok(`{"status":"complete_metadata","response_payload_size":73400320}`), ok(saved)},
			at:    ms(0, 0),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{
					"save_weights": {ok(`{"request_id":"r","model_id":"s:train:0"}`)}, "retrieve_future": tc.polls,
				})
				future, err := w.createModel(t, ctx).SaveState(ctx, SaveRequest{Name: "n"})
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					result, err := future.Wait(ctx)
					if err != nil || result.Path != "tinker://s:train:0/weights/n" {
						t.Fatalf("Wait = %v, %v", result, err)
					}
				}
				if diff := cmp.Diff(tc.at, w.times("retrieve_future")[1:]); diff != "" {
					t.Errorf("times (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.events, w.eventLines()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				checkPolls(t, w.requests("retrieve_future")[1:])
			})
		})
	}
}

func checkPolls(t *testing.T, polls []recordedRequest) {
	t.Helper()
	for _, poll := range polls {
		if !strings.HasPrefix(poll.body, `{"request_id":"r","allow_metadata_only":`) ||
			poll.header.Get("X-Tinker-Request-Type") != "SaveWeights" {
			t.Errorf("poll %+v", poll)
		}
	}
	if first := polls[0]; !strings.Contains(first.body, "true") || first.header.Get("X-Tinker-Request-Iteration") != "0" {
		t.Errorf("first poll %+v", first)
	}
}

func TestLargeResult(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		large := []scriptedReply{ok(`{"status":"complete_metadata","response_payload_size":100}`),
			{status: 200, body: "{}", hold: 10 * time.Second}}
		w := newTestClient(t, map[string][]scriptedReply{
			"client/config":     {ok(`{"inflight_response_bytes_semaphore_size":150}`)},
			"optim_step":        {ok(`{"request_id":"a"}`), ok(`{"request_id":"b"}`), ok(`{"request_id":"c"}`)},
			"retrieve_future#a": slices.Clone(large), "retrieve_future#b": slices.Clone(large),
			"retrieve_future#c": slices.Clone(large),
		})
		model := w.createModel(t, ctx)
		var futures []*Future[tinker.OptimStepResult]
		for range 3 {
			futures = append(futures, submitted(model.OptimStep(ctx, tinker.DefaultAdam())))
			synctest.Wait()
		}
		for _, future := range futures {
			if _, err := future.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(ms(0, 0, 0, 0, 0, 10000), w.times("retrieve_future")[1:]); diff != "" {
			t.Errorf("two of 100 bytes fit a budget of 150, the third waits (-want +got):\n%s", diff)
		}
		if got := w.bodies("retrieve_future")[6]; got != `{"request_id":"c","allow_metadata_only":false}` {
			t.Errorf("last poll %s", got)
		}
	})
}

func TestFailedResults(t *testing.T) {
	cases := map[string]struct {
		poll scriptedReply
		want Error
	}{
		"a user's error": {
			poll: ok(`{"error":"bad input","category":"user"}`), want: Error{Category: tinker.CategoryUser, Status: 200,
				Message: "bad input"},
		},
		"a server's error": {
			poll: ok(`{"error":"boom","category":"server"}`), want: Error{Category: tinker.CategoryServer, Status: 200,
				Message: "boom"},
		},
		"an error of unknown category": {
			poll: ok(`{"error":"boom","category":"throttled"}`), want: Error{Category: tinker.CategoryUnknown, Status: 200,
				Message: "boom"},
		},
		"a null error": {
			poll: ok(`{"error":null}`), want: Error{Category: tinker.CategoryUnknown, Status: 200},
		},
		"an error that is not a string": {
			poll: ok(`{"error":{"a":1}}`), want: Error{Category: tinker.CategoryUnknown, Status: 200,
				Message: `{"error":{"a":1}}`},
		},
		"a name in use": {
			poll: ok(`{"error":"Checkpoint 'n' already exists","category":"user"}`),
			want: Error{Category: tinker.CategoryExists, Status: 200, Message: "Checkpoint 'n' already exists"},
		},
		"a lost future": {
			poll: status(410), want: Error{Category: tinker.CategoryFutureLost, Status: 410, Message: "reply 410"},
		},
		"a model that the server has lost": {
			poll: scriptedReply{status: 404, body: `{"detail":"Model not found"}`},
			want: Error{Category: tinker.CategoryNotFound, Status: 404, Message: "Model not found"},
		},
		"a bad request": {poll: status(400), want: Error{Category: tinker.CategoryUser, Status: 400,
			Message: "reply 400"}},
		"a rejected key": {poll: status(401), want: Error{Category: tinker.CategoryUnauthorized, Status: 401,
			Message: "reply 401"}},
		"a bare null":            {poll: ok("null"), want: Error{Category: tinker.CategoryProtocol, Status: 200}},
		"JSON of something else": {poll: ok(`{"status":"ok"}`), want: Error{Category: tinker.CategoryProtocol, Status: 200}},
		"a list":                 {poll: ok("[]"), want: Error{Category: tinker.CategoryProtocol, Status: 200}},
		"a result of another kind": {
			poll: scriptedReply{status: 200, header: map[string]string{"Content-Type": tinker.ContentProtobuf}},
			want: Error{Category: tinker.CategoryProtocol, Status: 200},
		},
		"a save without a path": {poll: ok("{}"), want: Error{Category: tinker.CategoryProtocol, Status: 200}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"save_weights": {ok(`{"request_id":"r"}`)},
					"retrieve_future": {tc.poll}})
				future, err := w.createModel(t, ctx).SaveState(ctx, SaveRequest{Name: "n"})
				if err != nil {
					t.Fatal(err)
				}
				_, err = future.Wait(ctx)
				got := asError("", err)
				if got.Category == tinker.CategoryProtocol {
					got.Err = nil
				}
				tc.want.Op, tc.want.RequestID, tc.want.MayHaveRun = tinker.TypeSaveWeights, "r", true
				tc.want.Method, tc.want.Path = "POST", "/api/v1/retrieve_future"
				if diff := cmp.Diff(&tc.want, got); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestWithheldResult(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{
			"optim_step": {ok(`{"request_id":"r"}`)}, "retrieve_future": {ok(`{"status":"complete_metadata"}`)},
		})
		future, err := w.createModel(t, ctx).OptimStep(ctx, tinker.DefaultAdam())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := future.Wait(ctx); CategoryFrom(err) != tinker.CategoryProtocol {
			t.Errorf("Wait = %v", err)
		}
	})
}

func TestWaitEnds(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{
			"optim_step": {ok(`{"request_id":"r"}`)}, "retrieve_future": {delayed(ok(tryAgain)), ok("{}")},
		})
		future, err := w.createModel(t, ctx).OptimStep(ctx, tinker.DefaultAdam())
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeoutCause(ctx, time.Second, errors.New("enough"))
		defer cancel()
		_, err = future.Wait(short)
		if e := asError("", err); e.Category != tinker.CategoryCanceled || !e.MayHaveRun || e.Err.Error() != "enough" ||
			e.Op != tinker.TypeOptimStep {
			t.Errorf("Wait = %+v", e)
		}
		<-future.done
		if _, err := future.Wait(short); err != nil {
			t.Errorf("an available result is returned whatever the context: %v", err)
		}
	})
}

func TestPollingEndsWithTheSubmitsContext(t *testing.T) {
	for name, poll := range map[string]scriptedReply{
		"in a poll":            {hold: time.Hour},
		"between two polls":    ok(tryAgain),
		"in the wait of 5xx":   status(500),
		"waiting for its turn": ok(`{"status":"complete_metadata","response_payload_size":1}`),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"optim_step": {ok(`{"request_id":"r"}`)},
					"retrieve_future": {poll}})
				model := w.createModel(t, ctx)
				if err := w.downloads.Reserve(ctx, 1<<40); err != nil {
					t.Fatal(err)
				}
				submitting, cancel := context.WithCancel(ctx)
				future, err := model.OptimStep(submitting, tinker.DefaultAdam())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
				cancel()
				_, err = future.Wait(ctx)
				if e := asError("", err); e.Category != tinker.CategoryCanceled || !errors.Is(e, context.Canceled) ||
					!e.MayHaveRun || e.RequestID != "r" {
					t.Errorf("Wait = %+v", e)
				}
			})
		})
	}
}
