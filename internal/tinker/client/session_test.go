// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func TestCreateSession(t *testing.T) {
	cases := map[string]struct {
		request SessionRequest
		body    string
		reply   scriptedReply
		want    string
		fails   tinker.Category
	}{
		"Lists and objects are sent even if empty": {
			body:  `{"tags":[],"user_metadata":{},"sdk_version":"0.25.0","type":"create_session"}`,
			reply: ok(`{"type":"create_session","session_id":"s","info_message":null}`), want: "s",
		},
		"What is noted is sent": {
			request: SessionRequest{Tags: []string{"a"}, UserMetadata: map[string]string{"k": "v"}, ProjectID: "p"},
			body:    `{"tags":["a"],"user_metadata":{"k":"v"},"sdk_version":"0.25.0","project_id":"p","type":"create_session"}`,
			reply:   ok(`{"session_id":"s"}`), want: "s",
		},
		"A response without an id": {
			body:  `{"tags":[],"user_metadata":{},"sdk_version":"0.25.0","type":"create_session"}`,
			reply: ok("{}"), fails: tinker.CategoryProtocol,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"create_session": {tc.reply}})
				got, err := w.CreateSession(ctx, tc.request)
				if got != tc.want || CategoryFrom(err) != tc.fails {
					t.Errorf("CreateSession = %q, %v", got, err)
				}
				if diff := cmp.Diff([]string{tc.body}, slices.Compact(w.bodies("create_session"))); diff != "" {
					t.Errorf("body (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestSessionMessages checks that messages for people that come with a session are logged.
func TestSessionMessages(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{"create_session": {
			ok(`{"session_id":"s","info_message":"a message","warning_message":"Model m retires on 1 December.","error_message":"SDK 0.25.0 is too old."}`),
			ok(`{"session_id":"s","info_message":"","warning_message":null}`),
		}})
		for range 2 {
			if got, err := w.CreateSession(ctx, SessionRequest{}); got != "s" || err != nil {
				t.Fatalf("CreateSession = %q, %v", got, err)
			}
		}
		var got []string
		for line := range strings.Lines(w.logged.String()) {
			var entry struct{ Level, Msg, Session, Message string }
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatal(err)
			}
			got = append(got, strings.Join([]string{entry.Level, entry.Msg, entry.Session, entry.Message}, " "))
		}
		want := []string{
			"INFO server sent a message s a message",
			"WARN server sent a message s Model m retires on 1 December.",
			"ERROR server sent a message s SDK 0.25.0 is too old.",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

func TestKeepAlive(t *testing.T) {
	alive := ok(`{"type":"session_heartbeat"}`)
	cases := map[string]struct {
		heartbeats []scriptedReply
		length     time.Duration
		at         []time.Duration
		lost       tinker.Category
		warned     bool
	}{
		"A heartbeat is sent every ten seconds": {
			heartbeats: []scriptedReply{alive}, length: 35 * time.Second, at: ms(10000, 20000, 30000),
		},
		"After an error the next heartbeat is sent on time": {
			heartbeats: []scriptedReply{status(500), {lost: true}, {hold: time.Hour}, status(401), alive},
			length:     65 * time.Second,
			at:         ms(10000, 20000, 30000, 50000, 60000),
		},
		"A lost session is reported": {
			heartbeats: []scriptedReply{alive, status(404)}, length: time.Minute, at: ms(10000, 20000),
			lost: tinker.CategoryNotFound,
		},
		"A finished session is reported": {
			heartbeats: []scriptedReply{status(410)}, length: time.Minute, at: ms(10000), lost: tinker.CategoryFutureLost,
		},
		"Two minutes of failures are worth a warning": {
			heartbeats: []scriptedReply{status(500)}, length: 125 * time.Second, warned: true,
			at: ms(10000, 20000, 30000, 40000, 50000, 60000, 70000, 80000, 90000, 100000, 110000, 120000),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"session_heartbeat": tc.heartbeats})
				ctx, cancel := context.WithTimeout(ctx, tc.length)
				defer cancel()
				var lost error
				w.KeepAlive(ctx, "s", func(err error) { lost = err })
				if CategoryFrom(lost) != tc.lost {
					t.Errorf("lost = %v", lost)
				}
				if diff := cmp.Diff(tc.at, w.times("session_heartbeat")); diff != "" {
					t.Errorf("times (-want +got):\n%s", diff)
				}
				if got := w.bodies("session_heartbeat")[0]; got != `{"session_id":"s","type":"session_heartbeat"}` {
					t.Errorf("body %s", got)
				}
				if (w.logged.Len() > 0) != tc.warned {
					t.Errorf("log %s", w.logged)
				}
			})
		})
	}
}

func TestHeartbeatOfUnknownSession(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{"session_heartbeat": {status(404)}})
		if err := w.Heartbeat(ctx, "s"); CategoryFrom(err) != tinker.CategoryNotFound {
			t.Errorf("Heartbeat = %v", err)
		}
		w.KeepAlive(ctx, "s", nil)
	})
}

func TestCreateSamplingSession(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{
			"create_sampling_session": slices.Concat(
				[]scriptedReply{{lost: true}, ok(`{"sampling_session_id":"s:sample:7"}`)}, slices.Repeat([]scriptedReply{ok("{}")},
					5), []scriptedReply{status(404)},
			),
		})
		got, err := w.CreateSamplingSession(ctx, "s", 7, "tinker://r/sampler_weights/n", "")
		if got != "s:sample:7" || err != nil {
			t.Errorf("CreateSamplingSession = %q, %v", got, err)
		}
		body := `{"session_id":"s","sampling_session_seq_id":7,"model_path":"tinker://r/sampler_weights/n","type":"create_sampling_session"}`
		if diff := cmp.Diff([]string{body, body}, w.bodies("create_sampling_session")); diff != "" {
			t.Errorf("bodies (-want +got):\n%s", diff)
		}
		for _, want := range []tinker.Category{tinker.CategoryProtocol, tinker.CategoryNotFound} {
			if _, err := w.CreateSamplingSession(ctx, "s", 8, "", "base"); CategoryFrom(err) != want {
				t.Errorf("CreateSamplingSession = %v, want %s", err, want)
			}
		}
	})
}

// sampleReply replies with n samples and the log-probabilities of a prompt.
func sampleReply(t *testing.T, n int, prompt []float32) scriptedReply {
	t.Helper()
	r := tinker.SampleResult{PromptLogprobs: prompt}
	for range n {
		r.Sequences = append(r.Sequences, tinker.SampledSequence{StopReason: tinker.StopReasonStop, Tokens: []int32{5},
			Logprobs: []float32{-1}})
	}
	body, err := tinker.EncodeSample(r)
	return protobufReply(t, body, err)
}

func TestSample(t *testing.T) {
	const body = `{"num_samples":2,"prompt":{"chunks":[{"type":"encoded_text","tokens":[1,2,3]}]},` +
		`"sampling_params":{"max_tokens":16,"seed":7,"stop":["\n"],"temperature":1,"top_k":-1,"top_p":1},` +
		`"sampling_session_id":"s:sample:0","seq_id":9007199254740993,"prompt_logprobs":false,"topk_prompt_logprobs":0,"type":"sample"}`
	doubted := []string{"asample protocol", "asample protocol", "asample protocol", "asample protocol",
		"asample protocol over"}
	cases := map[string]struct {
		submits, polls []scriptedReply
		fails          tinker.Category
		events         []string
	}{
		"Samples are drawn": {submits: []scriptedReply{ok(`{"request_id":"r"}`)},
			polls: []scriptedReply{sampleReply(t, 2, nil)}},
		"A throttled submit is repeated under its number and reported": {
			submits: []scriptedReply{status(429), status(429), ok(`{"request_id":"r"}`)},
			polls:   []scriptedReply{sampleReply(t, 2, nil)},
			events:  []string{"asample throttled", "asample throttled", "asample throttled over"},
		},
		"A lost future is final": {
			submits: []scriptedReply{ok(`{"request_id":"r"}`)}, polls: []scriptedReply{status(410)},
			fails: tinker.CategoryFutureLost,
		},
		"A deleted session is final": {submits: []scriptedReply{status(404)},
			fails: tinker.CategoryNotFound},
		"Another number of samples breaks the protocol": {submits: []scriptedReply{ok(`{"request_id":"r"}`)},
			polls: []scriptedReply{sampleReply(t, 1, nil)}, fails: tinker.CategoryProtocol, events: doubted},
		"A response without a request id": {submits: []scriptedReply{ok(`{}`)}, fails: tinker.CategoryProtocol,
			events: doubted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"asample": tc.submits, "retrieve_future": tc.polls})
				params := tinker.DefaultSampling()
				params.MaxTokens, params.Seed, params.Stop = new(16), new(int64(7)), tinker.Stop{Strings: []string{"\n"}}
				got, err := w.Sample(ctx, tinker.SampleRequest{
					NumSamples: 2, Prompt: tinker.Text([]int32{1, 2, 3}), SamplingParams: params,
					SamplingSession: "s:sample:0", SeqID: new(int64(1)<<53 + 1),
				})
				if CategoryFrom(err) != tc.fails {
					t.Errorf("Sample = %v, %v", got, err)
				}
				if err == nil && len(got.Sequences) != 2 {
					t.Errorf("Sample = %v", got)
				}
				for _, e := range w.requests("asample") {
					if e.body != body || e.header.Get("X-Tinker-Sampling-Backpressure") != "1" {
						t.Errorf("submit %+v", e)
					}
				}
				if diff := cmp.Diff(tc.events, w.eventLines()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestInvalidSampleRequest(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, nil)
		params := tinker.SamplingParams{Stop: tinker.Stop{Strings: []string{"a"}, Tokens: []int32{1}}}
		if _, err := w.Sample(ctx, tinker.SampleRequest{SamplingParams: params}); CategoryFrom(err) != tinker.CategoryUser ||
			MayHaveRun(err) {
			t.Errorf("Sample = %v", err)
		}
	})
}

func TestComputeLogprobs(t *testing.T) {
	nan := float32(math.NaN())
	cases := map[string]struct {
		poll  scriptedReply
		want  []float32
		fails tinker.Category
	}{
		"Each token but the first has a log-probability": {poll: sampleReply(t, 1, []float32{nan, -2}),
			want: []float32{nan, -2}},
		"The place of the first may be left out": {poll: sampleReply(t, 1, []float32{-2}), want: []float32{nan, -2}},
		"Two too few break the protocol":         {poll: sampleReply(t, 1, []float32{}), fails: tinker.CategoryProtocol},
		"A failure is an error":                  {poll: ok(`{"error":"x","category":"user"}`), fails: tinker.CategoryUser},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"asample": {ok(`{"request_id":"r"}`)},
					"retrieve_future": {tc.poll}})
				got, err := w.ComputeLogprobs(ctx, "s:sample:0", 3, []int32{1, 2})
				if diff := cmp.Diff(tc.want, got, cmpopts.EquateNaNs()); diff != "" || CategoryFrom(err) != tc.fails {
					t.Errorf("ComputeLogprobs: %v, (-want +got):\n%s", err, diff)
				}
				body := `{"num_samples":1,"prompt":{"chunks":[{"type":"encoded_text","tokens":[1,2]}]},` +
					`"sampling_params":{"max_tokens":1,"temperature":1,"top_k":-1,"top_p":1},` +
					`"sampling_session_id":"s:sample:0","seq_id":3,"prompt_logprobs":true,"topk_prompt_logprobs":0,"type":"sample"}`
				if diff := cmp.Diff([]string{body}, w.bodies("asample")); diff != "" {
					t.Errorf("body (-want +got):\n%s", diff)
				}
			})
		})
	}
}
