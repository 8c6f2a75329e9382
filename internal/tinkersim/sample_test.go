// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// asample is the body of a request for samples of a prompt.
func asample(session string, seq, seed int64, prompt string, samples, tokens int) string {
	return fill(`{"sampling_session_id":"S","seq_id":N,"num_samples":K,"prompt":{"chunks":[{"type":"encoded_text","tokens":P}]},
		"sampling_params":{"max_tokens":T,"seed":D,"temperature":1.0,"top_p":1.0,"top_k":-1},"prompt_logprobs":false,"topk_prompt_logprobs":0}`,
		"S", session, "N", seq, "K", samples, "P", text(prompt), "T", tokens, "D", seed)
}

// samplingSession makes a sampling session of the prepared sampler weights.
func (b *backend) samplingSession(session, model string, seq int) string {
	b.t.Helper()
	body := fill(`{"session_id":"S","sampling_session_seq_id":N,"model_path":"tinker://{M}/sampler_weights/two"}`, "S",
		session, "M", model, "N", seq)
	return b.field(b.post(http.StatusOK, "create_sampling_session", body).body, "sampling_session_id")
}

// drawn polls for samples.
func (b *backend) drawn(id string) tinker.SampleResult {
	b.t.Helper()
	answer := b.protoResult(id)
	result, err := tinker.DecodeSample([]byte(answer.body))
	if err != nil || !isProtobuf(answer) {
		b.t.Fatalf("samples: %v %s", err, answer.body)
	}
	return result
}

// TestSamplesDoNotDependOnBatch draws the same samples alone and in batches.
func TestSamplesDoNotDependOnBatch(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{SampleRows: 64})
	prompts := []string{"Q: 1+1 A:", "Q: 12+34 A:", "x", strings.Repeat("long prompt ", 9)}
	ask := func(sampler string, n int64) string {
		return asample(sampler, n, 100+n, prompts[int(n)%len(prompts)], 6+int(n)%5, 40+int(n)%40)
	}
	const requests = 40
	alone := b.samplingSession(session, model, 0)
	want := make([]tinker.SampleResult, requests)
	for n := range int64(requests) {
		want[n] = b.drawn(b.submit("asample", ask(alone, n)))
	}
	batched := b.samplingSession(session, model, 1)
	b.admin(http.MethodPost, "/admin/faults", `{"faults":[{"id":"h","op":"asample","do":"hold","count":-1}]}`)
	ids := make([]string, requests)
	for n := range int64(requests) {
		ids[n] = b.submit("asample", ask(batched, n))
	}
	b.admin(http.MethodPost, "/admin/faults/h/release", "") // all of them enter the queue at once
	got := make([]tinker.SampleResult, requests)
	for n, id := range ids {
		got[n] = b.drawn(id)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alone and in batches (-alone +batched):\n%.600s", diff)
	}
	if busy := b.sim.Stats(); busy.SampleBatches >= 2*requests || busy.SampledRows == 0 {
		t.Errorf("%d batches for %d requests, want some together", busy.SampleBatches, 2*requests)
	}
}

func TestSamplesAreDeduplicated(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{})
	sampler := b.samplingSession(session, model, 0)
	const far = int64(1)<<62 + 1
	first := b.submit("asample", asample(sampler, far, 7, "Q:", 2, 9))
	if again := b.submit("asample", asample(sampler, far, 7, "Q:", 2, 9)); again != first {
		t.Errorf("posted again: %s, want %s", again, first)
	}
	b.post(http.StatusBadRequest, "asample", asample(sampler, far, 8, "Q:", 2, 9))
	other := b.submit("asample", asample(sampler, far-1, 7, "Q:", 2, 9))
	if other == first {
		t.Errorf("another number got the same future: got %v for both", other)
	}
	samples := b.drawn(first)
	if diff := cmp.Diff(samples, b.drawn(other)); diff != "" {
		t.Errorf("the same seed under another number (-first +other):\n%s", diff)
	}
	if cmp.Equal(samples.Sequences[0], samples.Sequences[1]) {
		t.Error("two samples of one request are the same")
	}
	if rows := b.sim.Stats().SampledRows; rows != 4 {
		t.Errorf("%d rows were drawn, want 4", rows)
	}
	future := b.post(http.StatusOK, "asample", asample(sampler, far, 7, "Q:", 2, 9)).body
	sameJSON(t, fill(`{"request_id":"R","sample_sequence_ids":["{R}:0","{R}:1"]}`, "R", first), future)
}

// TestSamplesAreRedrawn repeats a request after its result has expired, which gives another future and the same tokens.
func TestSamplesAreRedrawn(t *testing.T) {
	c := newClock()
	b, session, model := startTrained(t, tinkersim.Options{Clock: c.Now, SessionTimeout: time.Hour})
	sampler := b.samplingSession(session, model, 0)
	first := b.submit("asample", asample(sampler, 1, 7, "Q:", 2, 9))
	want := b.drawn(first)
	c.advance(6 * time.Minute)
	b.post(http.StatusGone, "retrieve_future", `{"request_id":"`+first+`"}`)
	b.submit("asample", asample(sampler, 2, 7, "Q:", 2, 9)) // removes expired requests
	again := b.submit("asample", asample(sampler, 1, 7, "Q:", 2, 9))
	if again == first {
		t.Errorf("an expired future was returned again: got %v for both", again)
	}
	if diff := cmp.Diff(want, b.drawn(again)); diff != "" {
		t.Errorf("drawn again (-first +again):\n%s", diff)
	}
}

func TestSamplesWithoutSeedDiffer(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{})
	sampler := b.samplingSession(session, model, 0)
	noSeed := func(seq int64) string {
		return strings.Replace(asample(sampler, seq, 7, "Q:", 1, 20), `"seed":7,`, "", 1)
	}
	one, two := b.drawn(b.submit("asample", noSeed(1))), b.drawn(b.submit("asample", noSeed(2)))
	if cmp.Equal(one, two) {
		t.Error("two requests without a seed drew the same")
	}
}

func TestSamplingSessionsAreIdempotent(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{})
	first := b.samplingSession(session, model, 4)
	if again := b.samplingSession(session, model, 4); again != first || first != session+":sample:4" {
		t.Errorf("sampling sessions %s and %s", first, again)
	}
	b.post(http.StatusBadRequest, "create_sampling_session",
		fill(`{"session_id":"S","sampling_session_seq_id":4,"base_model":"tinkersim/byte-136k"}`, "S", session))
	info, err := b.call(http.MethodGet, "/api/v1/samplers/"+first, "")
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, fill(
		`{"sampler_id":"I","base_model":"tinkersim/byte-136k","model_path":"tinker://{M}/sampler_weights/two"}`, "I", first,
		"M", model), info.body)
}

func TestEphemeralSampler(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{})
	body := `{"model_id":"M","sampling_session_seq_id":N,"seq_id":5}`
	first := b.submit("save_weights_for_sampler", fill(body, "M", model, "N", 8))
	if again := b.submit("save_weights_for_sampler", fill(body, "M", model, "N", 9)); again != first {
		t.Errorf("a repetition with a new session number got %s, want %s", again, first)
	}
	sampler := b.field(b.result(first).body, "sampling_session_id")
	if sampler != session+":sample:8" {
		t.Errorf("sampling session %s", sampler)
	}
	named := b.drawn(b.submit("asample", asample(b.samplingSession(session, model, 1), 1, 7, "Q:", 2, 9)))
	if diff := cmp.Diff(named, b.drawn(b.submit("asample", asample(sampler, 1, 7, "Q:", 2, 9)))); diff != "" {
		t.Errorf("named and ephemeral weights of the same step (-named +ephemeral):\n%s", diff)
	}
	info, err := b.call(http.MethodGet, "/api/v1/samplers/"+sampler, "")
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, fill(`{"sampler_id":"I","base_model":"tinkersim/byte-136k","model_path":null}`, "I", sampler), info.body)
	if list, err := b.client().RunCheckpoints(t.Context(), model); err != nil || len(list) != 2 {
		t.Errorf("%d checkpoints are listed, want 2 (%v)", len(list), err)
	}
}

func TestPromptLogprobs(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{})
	sampler := b.samplingSession(session, model, 0)
	const prompt = "Q: 1+1 A: 2"
	got, err := b.client().ComputeLogprobs(t.Context(), sampler, 1, text(prompt))
	if err != nil || len(got) != len(prompt) || got[0] == got[0] {
		t.Fatalf("%v, %v, want NaN and a number for each further token", got, err)
	}
	// The JSON form of older clients has the same, with null for NaN.
	body := strings.NewReplacer(`"prompt_logprobs":false`, `"prompt_logprobs":true`, `"topk_prompt_logprobs":0`,
		`"topk_prompt_logprobs":3`).
		Replace(asample(sampler, 2, 7, prompt, 1, 1))
	view := b.result(b.submit("asample", body)).body
	if !strings.Contains(view, `"prompt_logprobs":[null,`+fmt.Sprint(got[1])+",") || !strings.Contains(view,
		`"topk_prompt_logprobs":[null,[[`) {
		t.Errorf("JSON view: %s", view)
	}
	result := b.drawn(b.submit("asample", body))
	for i, row := range result.TopkPromptLogprobs[1:] {
		if len(row) != 3 || row[0].Logprob < row[1].Logprob || row[1].Logprob < row[2].Logprob {
			t.Errorf("row %d: %v", i+1, row)
		}
		for _, cell := range row {
			if cell.Token == text(prompt)[i+1] && cell.Logprob != got[i+1] {
				t.Errorf("row %d says %v of the prompt's token, the prompt's log-probabilities %v", i+1, cell.Logprob, got[i+1])
			}
		}
	}
}

func TestSamplingDuringTraining(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{})
	sampler := b.samplingSession(session, model, 0)
	b.admin(http.MethodPost, "/admin/faults", `{"faults":[{"id":"h","op":"forward_backward","do":"hold"}]}`)
	held := b.submit("forward_backward", chunk(t, model, 5, "text"))
	b.drawn(b.submit("asample", asample(sampler, 1, 7, "Q:", 1, 5)))
	other := b.newModel(session, 1)
	b.do("forward_backward", chunk(t, other, 1, "text"))
	b.admin(http.MethodPost, "/admin/faults/h/release", "")
	b.result(held)
}

// admin calls an admin endpoint.
func (b *backend) admin(method, path, body string) string {
	b.t.Helper()
	answer, err := b.call(method, path, body)
	if err != nil || answer.status >= 300 {
		b.t.Fatalf("%s %s: %d %s, %v", method, path, answer.status, answer.body, err)
	}
	return answer.body
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestSampleNoise checks that noise makes log-probabilities of equal requests differ, but not by much.
func TestSampleNoise(t *testing.T) {
	const sigma = 0.05
	for _, noise := range []float64{0, sigma} {
		b, session, model := startTrained(t, tinkersim.Options{SampleNoise: noise})
		sampler := b.samplingSession(session, model, 0)
		first := b.drawn(b.submit("asample", asample(sampler, 1, 7, "Q:", 1, 1))).Sequences[0]
		repeated := b.drawn(b.submit("asample", asample(sampler, 1, 7, "Q:", 1, 1))).Sequences[0]
		if diff := cmp.Diff(first, repeated); diff != "" {
			t.Errorf("noise %g: the repeated request differs (-first +repeated):\n%s", noise, diff)
		}
		differ := 0
		for seq := range int64(8) {
			next := b.drawn(b.submit("asample", asample(sampler, 2+seq, 7, "Q:", 1, 1))).Sequences[0]
			if next.Tokens[0] != first.Tokens[0] {
				continue // Another token was nearly as likely.
			}
			if distance := math.Abs(float64(next.Logprobs[0] - first.Logprobs[0])); distance > 0 {
				differ++
				if distance > 12*sigma {
					t.Errorf("noise %g: the log-probabilities differ by %g", noise, distance)
				}
			}
		}
		if (differ > 0) != (noise > 0) {
			t.Errorf("noise %g: %d log-probabilities differ", noise, differ)
		}
	}
	for _, noise := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := tinkersim.New(tinkersim.Options{Dir: t.TempDir(), SampleNoise: noise}); err == nil {
			t.Errorf("noise of %g was accepted", noise)
		}
	}
}

// TestSamplesThatNobodyAwaitsAreNotDrawn abandons samples that wait, in each way that the server notices.
func TestSamplesThatNobodyAwaitsAreNotDrawn(t *testing.T) {
	cases := map[string]func(b *backend, c *clock, session, id string){
		"the client cancels them": func(b *backend, _ *clock, _, id string) {
			for range 2 { // a client that missed the response repeats the request
				b.post(http.StatusNoContent, "cancel_future", `{"request_id":"`+id+`"}`)
			}
		},
		"their session ends": func(b *backend, _ *clock, session, _ string) {
			b.admin(http.MethodDelete, "/admin/sessions/"+session, "")
		},
		"their session is idle for too long": func(b *backend, c *clock, _, _ string) {
			c.advance(2 * time.Minute)
			b.post(http.StatusOK, "create_session", `{"tags":[],"sdk_version":"0.25.0"}`) // ends idle sessions
		},
	}
	for name, abandon := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			b, session, model := startTrained(t, tinkersim.Options{Clock: c.Now, SessionTimeout: time.Minute})
			sampler := b.samplingSession(session, model, 0)
			b.admin(http.MethodPost, "/admin/faults", `{"faults":[{"id":"h","op":"asample","do":"hold","count":-1}]}`)
			id := b.submit("asample", asample(sampler, 1, 7, "Q:", 4, 9))
			abandon(b, c, session, id)
			b.post(http.StatusGone, "retrieve_future", `{"request_id":"`+id+`"}`)
			b.admin(http.MethodPost, "/admin/faults/h/release", "")
			other := b.submit("asample",
				fill(`{"base_model":"B","num_samples":2,"prompt":{"chunks":[{"type":"encoded_text","tokens":P}]},
				"sampling_params":{"max_tokens":3,"seed":1}}`, "B", tinkersim.ModelName, "P", text("Q:")))
			if n := len(b.drawn(other).Sequences); n != 2 {
				t.Errorf("%d samples of the request that was not abandoned, want 2", n)
			}
			b.sim.Close() // waits for samples that are still drawn
			if rows := b.sim.Stats().SampledRows; rows != 2 {
				t.Errorf("%d rows were drawn, want those 2 that somebody awaits", rows)
			}
		})
	}
}

func TestCancelFutureRefusals(t *testing.T) {
	b, _, model := startTrained(t, tinkersim.Options{})
	b.post(http.StatusNotFound, "cancel_future", `{"request_id":"req-of-another-server"}`)
	step := b.submit("optim_step", optim(model, 5))
	reply := b.post(http.StatusBadRequest, "cancel_future", `{"request_id":"`+step+`"}`)
	if !strings.Contains(reply.body, "samples") {
		t.Errorf("the refusal %s does not say that only requests for samples can be canceled", reply.body)
	}
}
