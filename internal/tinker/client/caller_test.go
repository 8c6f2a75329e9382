// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func ms(values ...int) []time.Duration {
	out := make([]time.Duration, len(values))
	for i, v := range values {
		out[i] = time.Duration(v) * time.Millisecond
	}
	return out
}

func TestRetries(t *testing.T) {
	good := ok(`{"base_model":"b","is_lora":true}`)
	cases := map[string]struct {
		replies []scriptedReply
		at      []time.Duration
		events  []string
	}{
		"A successful response": {
			replies: []scriptedReply{good}, at: ms(0),
		},
		"5xx is repeated after a delay that doubles from half a second to thirty": {
			replies: []scriptedReply{status(500), status(502), status(503), status(504), status(529), status(500), status(500),
				status(500), good},
			at: ms(0, 500, 1500, 3500, 7500, 15500, 31500, 61500, 91500),
			events: []string{
				"weights_info server", "weights_info server", "weights_info server", "weights_info server", "weights_info server",
				"weights_info server", "weights_info server", "weights_info server", "weights_info server over",
			},
		},
		"429 is repeated after retry-after-ms": {
			replies: []scriptedReply{{status: 429, header: map[string]string{"Retry-After-Ms": "2500", "Retry-After": "9"}},
				good},
			at: ms(0, 2500), events: []string{"weights_info throttled", "weights_info throttled over"},
		},
		"429 is repeated after retry-after in seconds": {
			replies: []scriptedReply{{status: 429, header: map[string]string{"Retry-After": "7"}}, good},
			at:      ms(0, 7000), events: []string{"weights_info throttled", "weights_info throttled over"},
		},
		"A retry-after date counts by the server's clock": {
			replies: []scriptedReply{{status: 503, header: map[string]string{
				"Date": "Sat, 01 Aug 2026 12:00:00 GMT", "Retry-After": "Sat, 01 Aug 2026 12:00:04 GMT",
			}}, good},
			at: ms(0, 4000), events: []string{"weights_info server", "weights_info server over"},
		},
		"An invalid or past retry-after is ignored": {
			replies: []scriptedReply{
				{status: 503, header: map[string]string{"Date": "Sat, 01 Aug 2026 12:00:00 GMT",
					"Retry-After": "Sat, 01 Aug 2026 11:00:00 GMT"}},
				{status: 503, header: map[string]string{"Retry-After": "Sat, 01 Aug 2026 12:00:04 GMT"}},
				{status: 503, header: map[string]string{"Retry-After": "NaN"}}, good,
			},
			at:     ms(0, 500, 1500, 3500),
			events: []string{"weights_info server", "weights_info server", "weights_info server", "weights_info server over"},
		},
		"A server may ask for a minute at most, and for half a second at least": {
			replies: []scriptedReply{
				{status: 429, header: map[string]string{"Retry-After": "86400"}},
				{status: 429, header: map[string]string{"Retry-After-Ms": "1"}}, good,
			},
			at:     ms(0, 60000, 60500),
			events: []string{"weights_info throttled", "weights_info throttled", "weights_info throttled over"},
		},
		"402 is waited out in steps of five seconds and more": {
			replies: []scriptedReply{status(402), status(402), status(402), status(402), status(402), good},
			at:      ms(0, 5000, 10000, 15000, 20000, 28000),
			events: []string{
				"weights_info payment", "weights_info payment", "weights_info payment", "weights_info payment",
				"weights_info payment",
				"weights_info payment over",
			},
		},
		"409 is repeated": {
			replies: []scriptedReply{status(409), status(409), status(409), status(409), good},
			at:      ms(0, 500, 1500, 3500, 7500),
			events: []string{
				"weights_info conflict", "weights_info conflict", "weights_info conflict", "weights_info conflict",
				"weights_info conflict over",
			},
		},
		"408, a lost response and an empty 400 are repeated": {
			replies: []scriptedReply{status(408), {lost: true}, {status: 400}, good},
			at:      ms(0, 500, 1500, 3500),
			events: []string{
				"weights_info timeout", "weights_info timeout over", "weights_info unreachable", "weights_info unreachable",
				"weights_info unreachable over",
			},
		},
		"A page in place of JSON, and JSON that is cut, are repeated whatever their status": {
			replies: []scriptedReply{ok("<html>"), ok(`{"base_mo`), ok(""), {status: 400, body: "<html>"},
				{status: 422, body: "<html>"}, ok("<html>"), good},
			at: ms(0, 500, 1500, 3500, 7500, 15500, 31500),
			events: []string{
				"weights_info protocol", "weights_info protocol", "weights_info protocol", "weights_info protocol over",
				"weights_info user",
				"weights_info user", "weights_info user over", "weights_info protocol", "weights_info protocol over",
			},
		},
		"JSON that has nothing of what was asked for is repeated": {
			replies: []scriptedReply{ok(`{"status":"ok"}`), ok(`[]`), good}, at: ms(0, 500, 1500),
			events: []string{"weights_info protocol", "weights_info protocol", "weights_info protocol over"},
		},
		"An exchange that takes more than a minute counts as lost": {
			replies: []scriptedReply{{hold: time.Hour}, good}, at: ms(0, 60500),
			events: []string{"weights_info unreachable", "weights_info unreachable over"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"weights_info": tc.replies})
				info, err := w.WeightsInfo(ctx, "tinker://r/weights/n")
				if err != nil || info.BaseModel != "b" {
					t.Fatalf("WeightsInfo = %v, %v", info, err)
				}
				if diff := cmp.Diff(tc.at, w.times("weights_info")); diff != "" {
					t.Errorf("times (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.events, w.eventLines()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				checkRetries(t, w.requests("weights_info"))
			})
		})
	}
}

// checkRetries checks that all repeats are the same request.
func checkRetries(t *testing.T, all []recordedRequest) {
	t.Helper()
	for _, e := range all {
		if e.body != `{"tinker_path":"tinker://r/weights/n"}` {
			t.Errorf("body %q", e.body)
		}
		if e.header.Get("X-Idempotency-Key") != "" {
			t.Errorf("headers %v have an idempotency key: the transport would repeat the request by itself", e.header)
		}
		if got := e.header.Get(tinker.HeaderAPIKey); got != testKey {
			t.Errorf("key %q", got)
		}
	}
}

func TestFinalErrors(t *testing.T) {
	cases := map[string]struct {
		replies    []scriptedReply
		want       Error
		mayHaveRun bool
	}{
		"400 with a body is the user's fault": {
			replies: []scriptedReply{status(400)}, want: Error{Category: tinker.CategoryUser, Status: 400, Message: "reply 400"},
		},
		"422 keeps where and what, and drops the input that servers repeat": {
			replies: []scriptedReply{{status: 422,
				body: `{"detail":[{"loc":["body","data",0],"msg":"too long","type":"x","input":[1,2,3]}]}`}},
			want: Error{Category: tinker.CategoryUser, Status: 422, Message: "body data 0: too long"},
		},
		"401 is final": {
			replies: []scriptedReply{status(401)}, want: Error{Category: tinker.CategoryUnauthorized, Status: 401,
				Message: "reply 401"},
		},
		"403 is final": {
			replies: []scriptedReply{{status: 403, body: "plain text"}}, want: Error{Category: tinker.CategoryUnauthorized,
				Status: 403, Message: "plain text"},
		},
		"404 is final": {
			replies: []scriptedReply{{status: 404, body: `{"detail":{"a":1}}`}}, want: Error{Category: tinker.CategoryNotFound,
				Status: 404, Message: `{"a":1}`},
		},
		"405 says that the endpoint is not there": {
			replies: []scriptedReply{status(405)}, want: Error{Category: tinker.CategoryUnsupported, Status: 405,
				Message: "reply 405"},
		},
		"409 is final after four repeats": {
			replies: []scriptedReply{status(409), status(409), status(409), status(409), status(409)},
			want:    Error{Category: tinker.CategoryConflict, Status: 409, Message: "reply 409"},
		},
		"410 is final": {
			replies: []scriptedReply{status(410)}, want: Error{Category: tinker.CategoryFutureLost, Status: 410,
				Message: "reply 410"},
		},
		"A redirect is not followed": {
			replies: []scriptedReply{{status: 307, header: map[string]string{"Location": "http://elsewhere.test/"}}},
			want:    Error{Category: tinker.CategoryProtocol, Status: 307}, mayHaveRun: true,
		},
		"A response that has nothing of what was asked for is final after four repeats": {
			replies: slices.Repeat([]scriptedReply{ok(`{"ok":true}`)}, 5), want: Error{Category: tinker.CategoryProtocol,
				Status: 200}, mayHaveRun: true,
		},
		"A rejection after 5xx may follow an execution": {
			replies: []scriptedReply{status(500), status(404)}, mayHaveRun: true,
			want: Error{Category: tinker.CategoryNotFound, Status: 404, Message: "reply 404"},
		},
		"A rejection after 429 follows no execution": {
			replies: []scriptedReply{status(429), status(404)}, want: Error{Category: tinker.CategoryNotFound, Status: 404,
				Message: "reply 404"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"weights_info": tc.replies})
				_, err := w.WeightsInfo(ctx, "tinker://r/weights/n")
				got := asError("", err)
				if got.Category == tinker.CategoryProtocol {
					got.Err, got.Message = nil, ""
				}
				tc.want.Op, tc.want.MayHaveRun = "weights_info", tc.mayHaveRun
				tc.want.Method, tc.want.Path = "POST", "/api/v1/weights_info"
				if diff := cmp.Diff(&tc.want, got); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				if MayHaveRun(err) != tc.mayHaveRun {
					t.Errorf("MayHaveRun = %v", MayHaveRun(err))
				}
				if n := len(w.requests("weights_info")); n != len(tc.replies) {
					t.Errorf("%d requests, want %d", n, len(tc.replies))
				}
				if events := w.eventLines(); len(events) > 0 && !strings.HasSuffix(events[len(events)-1], " over") {
					t.Errorf("the events %q do not say that the call waits no longer", events)
				}
			})
		})
	}
}

// TestSpread checks that the delays of retries and of polls are longer by up to a quarter, so that calls that fail
// together are not repeated together.
func TestSpread(t *testing.T) {
	for spread, want := range map[float64]struct{ retries, polls []time.Duration }{
		0:   {retries: ms(0, 500, 1500, 8500), polls: ms(0, 500, 1500)},
		0.5: {retries: ms(0, 562, 1687, 9562), polls: ms(0, 562, 1687)},
		1:   {retries: ms(0, 625, 1875, 10625), polls: ms(0, 625, 1875)},
	} {
		bubble(t, func(t *testing.T, ctx context.Context) {
			w := newTestClient(t, map[string][]scriptedReply{
				"optim_step": {status(500), {lost: true}, {status: 429, header: map[string]string{"Retry-After": "7"}},
					ok(`{"request_id":"r"}`)},
				"retrieve_future": {ok(tryAgain), ok(tryAgain), ok("{}")},
			})
			w.spread = func() float64 { return spread }
			if _, err := submitted(w.createModel(t, ctx).OptimStep(ctx, tinker.DefaultAdam())).Wait(ctx); err != nil {
				t.Fatal(err)
			}
			retries, polls := w.times("optim_step"), w.times("retrieve_future")[1:]
			for i := range retries {
				retries[i] = retries[i].Truncate(time.Millisecond)
			}
			began := polls[0]
			for i := range polls {
				polls[i] = (polls[i] - began).Truncate(time.Millisecond)
			}
			if diff := cmp.Diff(want.retries, retries); diff != "" {
				t.Errorf("spread %v: times of submits (-want +got):\n%s", spread, diff)
			}
			if diff := cmp.Diff(want.polls, polls); diff != "" {
				t.Errorf("spread %v: times of polls (-want +got):\n%s", spread, diff)
			}
		})
	}
}

func TestContextEnds(t *testing.T) {
	cases := map[string]struct {
		replies    []scriptedReply
		after      time.Duration
		requests   int
		mayHaveRun bool
	}{
		"Before the first exchange nothing is sent": {replies: []scriptedReply{status(500)}},
		"In the wait after 429 nothing has run": {replies: []scriptedReply{status(429)},
			after: 200 * time.Millisecond, requests: 1},
		"In the wait after 500 it may have run": {replies: []scriptedReply{status(500)},
			after: 200 * time.Millisecond, requests: 1, mayHaveRun: true},
		"While the server holds the request it may have run": {replies: []scriptedReply{{hold: time.Hour}},
			after: time.Second, requests: 1, mayHaveRun: true},
		"In the wait after 429 that followed 500 it may have run": {replies: []scriptedReply{status(500), status(429)},
			after: time.Second, requests: 2, mayHaveRun: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"weights_info": tc.replies})
				if err := w.Connect(ctx); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(ctx, tc.after)
				defer cancel()
				_, err := w.WeightsInfo(ctx, "tinker://r/weights/n")
				got := asError("", err)
				if got.Category != tinker.CategoryCanceled || !errors.Is(got, context.DeadlineExceeded) ||
					got.MayHaveRun != tc.mayHaveRun {
					t.Errorf("error %+v", got)
				}
				if n := len(w.requests("weights_info")); n != tc.requests {
					t.Errorf("%d requests, want %d", n, tc.requests)
				}
			})
		})
	}
}

func TestRequestHeaders(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{
			"get_server_capabilities": {ok(`{"supported_models":[{"model_name":"m","max_context_length":8}]}`)},
			"weights_info":            {ok(`{}`)},
		})
		got, err := w.Capabilities(ctx)
		if err != nil {
			t.Fatal(err)
		}
		want := tinker.ServerCapabilities{SupportedModels: []tinker.SupportedModel{{ModelName: "m", MaxContextLength: 8}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("capabilities (-want +got):\n%s", diff)
		}
		if _, err := w.WeightsInfo(ctx, "p"); err != nil {
			t.Fatal(err)
		}
		read, write := w.requests("get_server_capabilities")[0], w.requests("weights_info")[0]
		if read.method != http.MethodGet || read.body != "" || read.header.Get("Content-Type") != "" {
			t.Errorf("GET %+v", read)
		}
		if write.header.Get("Content-Type") != tinker.ContentJSON {
			t.Errorf("POST %+v", write)
		}
		for _, e := range []recordedRequest{read, write} {
			if e.header.Get("Accept") != tinker.ContentJSON || e.header.Get("User-Agent") != "test/1" {
				t.Errorf("headers %v", e.header)
			}
		}
		if diff := cmp.Diff([]string{`{"sdk_version":"0.25.0"}`}, w.bodies("client/config")); diff != "" {
			t.Errorf("the configuration is fetched once (-want +got):\n%s", diff)
		}
	})
}

func TestLogsHaveNoSecrets(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{"weights_info": {status(500), {lost: true}, status(401)}})
		_, err := w.WeightsInfo(ctx, "tinker://r/weights/n")
		if err == nil {
			t.Fatal("no error")
		}
		if !strings.Contains(w.logged.String(), "retrying a call") {
			t.Errorf("log %q", w.logged)
		}
		if strings.Contains(w.logged.String()+err.Error(), testKey) {
			t.Errorf("the key is in the log or in the error: %v\n%s", err, w.logged)
		}
	})
}

func TestNewInvalidConfig(t *testing.T) {
	for name, config := range map[string]Config{
		"an empty key":            {BaseURL: "http://h", APIKey: " \n"},
		"an address of files":     {BaseURL: "file:///x", APIKey: "k"},
		"an address with no host": {BaseURL: "http://", APIKey: "k"},
		"no address":              {APIKey: "k"},
		"an invalid address":      {BaseURL: "http://h:port", APIKey: "k"},
	} {
		t.Run(name, func(t *testing.T) {
			if c, err := New(config); err == nil {
				t.Errorf("New = %v", c)
			}
		})
	}
}

func TestBaseURLWithPath(t *testing.T) {
	for base, want := range map[string]string{
		"http://h:1":              "http://h:1/api/v1/training_runs/a:train:0/checkpoints/weights/n.1",
		"http://h:1/services/x//": "http://h:1/services/x/api/v1/training_runs/a:train:0/checkpoints/weights/n.1",
	} {
		c, err := New(Config{BaseURL: base, APIKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.httpRequest(t.Context(), get("op", "training_runs/a:train:0/checkpoints/weights/n.1", nil), "k")
		if err != nil || r.URL.String() != want {
			t.Errorf("%s: %v, %v", base, r.URL, err)
		}
	}
}
