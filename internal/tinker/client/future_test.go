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

func held(a answer) answer {
	a.hold = 30 * time.Second
	return a
}

func TestPolls(t *testing.T) {
	cases := map[string]struct {
		polls []answer
		at    []time.Duration
		told  []string
	}{
		"A result that is there is taken at once": {polls: []answer{ok(saved)}, at: ms(0)},
		"A poll that the server held is followed by another at once": {
			polls: []answer{held(ok(tryAgain)), held(status(408)), held(answer{status: 408}), ok(saved)}, at: ms(0, 30000, 60000, 90000),
		},
		"Polls that are answered at once go out at a growing distance, up to five seconds": {
			polls: []answer{ok(tryAgain), ok(tryAgain), status(408), ok(tryAgain), ok(tryAgain), ok(tryAgain), ok(saved)},
			at:    ms(0, 500, 1500, 3500, 7500, 12500, 17500),
		},
		"The distance starts anew once the server holds a poll": {
			polls: []answer{ok(tryAgain), ok(tryAgain), held(ok(tryAgain)), ok(tryAgain), ok(saved)},
			at:    ms(0, 500, 1500, 31500, 32000),
		},
		"A paused queue is waited for and told, and so is its end": {
			polls: []answer{
				held(ok(paused)), held(answer{status: 408, body: `{"queue_state":"paused_rate_limit"}`}), held(ok(tryAgain)), ok(saved),
			},
			at: ms(0, 30000, 60000, 90000),
			told: []string{
				"save_weights paused paused_capacity", "save_weights paused paused_rate_limit", "save_weights paused paused_rate_limit over",
			},
		},
		"A pause ends with the result too": {
			polls: []answer{held(ok(paused)), ok(saved)}, at: ms(0, 30000),
			told: []string{"save_weights paused paused_capacity", "save_weights paused paused_capacity over"},
		},
		"A poll without an answer for 45 seconds is repeated": {
			polls: []answer{{hold: time.Hour}, ok(saved)}, at: ms(0, 45500),
			told: []string{"save_weights unreachable", "save_weights unreachable over"},
		},
		"5xx, 429 and 402 are repeated after a delay": {
			polls: []answer{status(500), status(503), {status: 429, header: map[string]string{"Retry-After": "3"}}, status(402), ok(saved)},
			at:    ms(0, 500, 1500, 4500, 9500),
			told: []string{
				"save_weights server", "save_weights server", "save_weights server over", "save_weights throttled",
				"save_weights throttled over", "save_weights payment", "save_weights payment over",
			},
		},
		"A large result is asked for once more": {
			polls: []answer{ok(`{"status":"complete_metadata","response_payload_size":73400320}`), ok(saved)}, at: ms(0, 0),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := watch(t, map[string][]answer{
					"save_weights": {ok(`{"request_id":"r","model_id":"s:train:0"}`)}, "retrieve_future": tc.polls,
				})
				future, err := w.mustModel(t, ctx).SaveState(ctx, SaveRequest{Name: "n"})
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
				if diff := cmp.Diff(tc.told, w.told()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				checkPolls(t, w.requests("retrieve_future")[1:])
			})
		})
	}
}

func checkPolls(t *testing.T, polls []exchanged) {
	t.Helper()
	for _, poll := range polls {
		if !strings.HasPrefix(poll.body, `{"request_id":"r","allow_metadata_only":`) || poll.header.Get("X-Tinker-Request-Type") != "SaveWeights" {
			t.Errorf("poll %+v", poll)
		}
	}
	if first := polls[0]; !strings.Contains(first.body, "true") || first.header.Get("X-Tinker-Request-Iteration") != "0" {
		t.Errorf("first poll %+v", first)
	}
}

func TestLargeResultIsAskedForWhole(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		large := []answer{ok(`{"status":"complete_metadata","response_payload_size":100}`), {status: 200, body: "{}", hold: 10 * time.Second}}
		w := watch(t, map[string][]answer{
			"client/config":     {ok(`{"inflight_response_bytes_semaphore_size":150}`)},
			"optim_step":        {ok(`{"request_id":"a"}`), ok(`{"request_id":"b"}`), ok(`{"request_id":"c"}`)},
			"retrieve_future#a": slices.Clone(large), "retrieve_future#b": slices.Clone(large), "retrieve_future#c": slices.Clone(large),
		})
		model := w.mustModel(t, ctx)
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
		poll answer
		want Error
	}{
		"a user's error": {
			poll: ok(`{"error":"bad input","category":"user"}`), want: Error{Category: tinker.CategoryUser, Status: 200, Message: "bad input"},
		},
		"a server's error": {
			poll: ok(`{"error":"boom","category":"server"}`), want: Error{Category: tinker.CategoryServer, Status: 200, Message: "boom"},
		},
		"an error of a category that is not known": {
			poll: ok(`{"error":"boom","category":"throttled"}`), want: Error{Category: tinker.CategoryUnknown, Status: 200, Message: "boom"},
		},
		"an error that is null": {
			poll: ok(`{"error":null}`), want: Error{Category: tinker.CategoryUnknown, Status: 200},
		},
		"an error that is no string": {
			poll: ok(`{"error":{"a":1}}`), want: Error{Category: tinker.CategoryUnknown, Status: 200, Message: `{"error":{"a":1}}`},
		},
		"a name that is taken": {
			poll: ok(`{"error":"Checkpoint 'n' already exists","category":"user"}`),
			want: Error{Category: tinker.CategoryExists, Status: 200, Message: "Checkpoint 'n' already exists"},
		},
		"a lost promise": {
			poll: status(410), want: Error{Category: tinker.CategoryFutureLost, Status: 410, Message: "answer 410"},
		},
		"a model that the server has lost": {
			poll: answer{status: 404, body: `{"detail":"Model not found"}`},
			want: Error{Category: tinker.CategoryNotFound, Status: 404, Message: "Model not found"},
		},
		"a bad request": {poll: status(400), want: Error{Category: tinker.CategoryUser, Status: 400, Message: "answer 400"}},
		"a refused key": {poll: status(401), want: Error{Category: tinker.CategoryUnauthorized, Status: 401, Message: "answer 401"}},
		"a bare null":   {poll: ok("null"), want: Error{Category: tinker.CategoryProtocol, Status: 200}},
		"no JSON":       {poll: ok("{"), want: Error{Category: tinker.CategoryProtocol, Status: 200}},
		"a list":        {poll: ok("[]"), want: Error{Category: tinker.CategoryProtocol, Status: 200}},
		"a result of another kind": {
			poll: answer{status: 200, header: map[string]string{"Content-Type": tinker.ContentProtobuf}}, want: Error{Category: tinker.CategoryProtocol, Status: 200},
		},
		"a save without a path": {poll: ok("{}"), want: Error{Category: tinker.CategoryProtocol, Status: 200}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := watch(t, map[string][]answer{"save_weights": {ok(`{"request_id":"r"}`)}, "retrieve_future": {tc.poll}})
				future, err := w.mustModel(t, ctx).SaveState(ctx, SaveRequest{Name: "n"})
				if err != nil {
					t.Fatal(err)
				}
				_, err = future.Wait(ctx)
				got := asError("", err)
				if got.Category == tinker.CategoryProtocol {
					got.Err = nil
				}
				tc.want.Op, tc.want.RequestID, tc.want.MayHaveRun = tinker.TypeSaveWeights, "r", true
				if diff := cmp.Diff(&tc.want, got); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestWithheldResult(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := watch(t, map[string][]answer{
			"optim_step": {ok(`{"request_id":"r"}`)}, "retrieve_future": {ok(`{"status":"complete_metadata"}`)},
		})
		future, err := w.mustModel(t, ctx).OptimStep(ctx, tinker.DefaultAdam())
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
		w := watch(t, map[string][]answer{
			"optim_step": {ok(`{"request_id":"r"}`)}, "retrieve_future": {held(ok(tryAgain)), ok("{}")},
		})
		future, err := w.mustModel(t, ctx).OptimStep(ctx, tinker.DefaultAdam())
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeoutCause(ctx, time.Second, errors.New("enough"))
		defer cancel()
		_, err = future.Wait(short)
		if e := asError("", err); e.Category != tinker.CategoryCanceled || !e.MayHaveRun || e.Err.Error() != "enough" || e.Op != tinker.TypeOptimStep {
			t.Errorf("Wait = %+v", e)
		}
		<-future.Done()
		if _, err := future.Wait(short); err != nil {
			t.Errorf("a result that is there is given whatever the context: %v", err)
		}
	})
}

func TestPollingEndsWithTheSubmitsContext(t *testing.T) {
	for name, poll := range map[string]answer{
		"in a poll":            {hold: time.Hour},
		"between two polls":    ok(tryAgain),
		"in the wait of 5xx":   status(500),
		"waiting for its turn": ok(`{"status":"complete_metadata","response_payload_size":1}`),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := watch(t, map[string][]answer{"optim_step": {ok(`{"request_id":"r"}`)}, "retrieve_future": {poll}})
				model := w.mustModel(t, ctx)
				if err := w.downloads.reserve(ctx, 1<<40); err != nil {
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
				if e := asError("", err); e.Category != tinker.CategoryCanceled || !errors.Is(e, context.Canceled) || !e.MayHaveRun || e.RequestID != "r" {
					t.Errorf("Wait = %+v", e)
				}
			})
		})
	}
}
