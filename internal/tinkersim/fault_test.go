// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// faultCase is a fault and its effect on the next optim_step, number 5, as a client sees it.
type faultCase struct {
	rule string
	// post is the status of the submit; 0 if the connection is closed.
	post int
	// result is the result of the future; empty if it does not exist.
	result string
	// poll is the status of the poll, 200 by default.
	poll int
	// executed is the number of optimizer steps that were made after a second submit with the same sequence number.
	executed int64
}

func TestOperationFaults(t *testing.T) {
	ok := `{"metrics":{"unclipped_grad_l2:mean":0}}`
	cases := map[string]faultCase{
		"a request that is lost":  {rule: `{"do":"drop_request"}`, post: 0, executed: 1},
		"a response that is lost": {rule: `{"do":"drop_answer"}`, post: 0, executed: 1},
		"429 with a delay": {rule: `{"do":"refuse","status":429,"retryAfterSeconds":2}`, post: 429,
			executed: 1},
		"402":                             {rule: `{"do":"refuse","status":402}`, post: 402, executed: 1},
		"503":                             {rule: `{"do":"refuse","status":503}`, post: 503, executed: 1},
		"404, as from a missing endpoint": {rule: `{"do":"refuse","status":404}`, post: 404, executed: 1},
		"a delay":                         {rule: `{"do":"delay","seconds":0.01}`, post: 200, result: ok, executed: 1},
		"a failure of the server": {rule: `{"do":"fail","message":"oom"}`, post: 200,
			result: `{"error":"oom","category":"server"}`, executed: 0},
		"a failure of the user": {rule: `{"do":"fail","category":"user","message":"bad"}`, post: 200,
			result: `{"error":"bad","category":"user"}`, executed: 0},
		"a failure after the work": {rule: `{"do":"fail","category":"unknown","stage":"reply","message":"lost"}`,
			post: 200, result: `{"error":"lost","category":"unknown"}`, executed: 1},
		"a future that is lost": {rule: `{"do":"lose_promise"}`, post: 200, poll: 410, executed: 1},
		"a pause": {rule: `{"do":"pause","seconds":0.01,"queueState":"paused_rate_limit"}`,
			post: 200, result: ok, executed: 1},
		"a pause of the reply": {rule: `{"do":"pause","seconds":0.01,"stage":"reply"}`, post: 200, result: ok,
			executed: 1},
		"a cycle":                            {rule: `{"do":"cycle","seconds":0.01}`, post: 200, result: ok, executed: 1},
		"a rule for another operation":       {rule: `{"op":"save_weights","do":"fail"}`, post: 200, result: ok, executed: 1},
		"a rule for another model":           {rule: `{"model":"train:7","do":"fail"}`, post: 200, result: ok, executed: 1},
		"a rule for another sequence number": {rule: `{"seq":6,"do":"fail"}`, post: 200, result: ok, executed: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, _, model := startTrained(t, tinkersim.Options{Clock: time.Now})
			before := b.sim.Stats().Operations["optim_step"]
			b.admin(http.MethodPost, "/admin/faults", `{"faults":[`+tc.rule+`]}`)
			body := fill(`{"model_id":"M","seq_id":5,"adam_params":{"learning_rate":0.01}}`, "M", model)
			answer, err := b.call(http.MethodPost, "/api/v1/optim_step", body)
			if (err != nil) != (tc.post == 0) || answer.status != tc.post {
				t.Fatalf("submit: %d %s, %v, want status %d", answer.status, answer.body, err, tc.post)
			}
			if tc.post == http.StatusTooManyRequests && (answer.header.Get("Retry-After") != "2" ||
				answer.header.Get("Retry-After-Ms") != "2000") {
				t.Errorf("headers of 429: %v", answer.header)
			}
			id := b.submit("optim_step", body) // a repetition is not executed again
			if tc.poll != 0 {
				eventually(t, "the work is done",
					func() bool { return b.sim.Stats().Operations["optim_step"]-before == tc.executed })
				b.post(tc.poll, "retrieve_future", `{"request_id":"`+id+`"}`)
			} else if got := b.result(id).body; tc.result != "" {
				sameJSON(t, tc.result, got)
			}
			if got := b.sim.Stats().Operations["optim_step"] - before; got != tc.executed {
				t.Errorf("executed %d times, want %d", got, tc.executed)
			}
		})
	}
}

func TestHoldAndRelease(t *testing.T) {
	cases := map[string]struct {
		stage  string
		listed int // checkpoints while it holds: a save that waits to be carried out is not listed
		next   bool
	}{
		"before the work":  {"execute", 2, false},
		"before the reply": {"reply", 3, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, _, model := startTrained(t, tinkersim.Options{PollPatience: 10 * time.Millisecond})
			b.admin(http.MethodPost, "/admin/faults", fill(
				`{"faults":[{"id":"h","op":"save_weights","name":"^three$","do":"hold","stage":"STAGE","queueState":"paused_capacity","message":"no room"}]}`, "STAGE", tc.stage))
			id := b.submit("save_weights", fill(`{"model_id":"M","path":"three","seq_id":5}`, "M", model))
			next := b.submit("optim_step", optim(model, 6))
			eventually(t, "the save is held", func() bool { return b.sim.Faults().List()[0].Holding == 1 })
			poll := b.post(http.StatusOK, "retrieve_future", `{"request_id":"`+id+`"}`)
			sameJSON(t, fill(
				`{"type":"try_again","request_id":"R","queue_state":"paused_capacity","queue_state_reason":"no room"}`, "R", id),
				poll.body)
			list, err := b.client().RunCheckpoints(t.Context(), model)
			if err != nil || len(list) != tc.listed {
				t.Errorf("%d checkpoints while it holds, %v, want %d", len(list), err, tc.listed)
			}
			if tc.next {
				b.result(next)
			}
			b.admin(http.MethodPost, "/admin/faults/h/release", "")
			sameJSON(t, fill(`{"path":"tinker://{M}/weights/three","type":"save_weights"}`, "M", model), b.result(id).body)
			b.result(next)
		})
	}
}

func TestUnloadEndsHeldOperation(t *testing.T) {
	b, _, model := startTrained(t, tinkersim.Options{})
	b.admin(http.MethodPost, "/admin/faults", `{"faults":[{"id":"h","op":"save_weights","do":"hold"}]}`)
	id := b.submit("save_weights", fill(`{"model_id":"M","path":"three","seq_id":5}`, "M", model))
	b.do("unload_model", fill(`{"model_id":"M"}`, "M", model))
	b.admin(http.MethodPost, "/admin/faults/h/release", "")
	if got := b.field(b.result(id).body, "category"); got != "server" {
		t.Errorf("category %s", got)
	}
	if list, err := b.client().RunCheckpoints(t.Context(), model); err != nil || len(list) != 2 {
		t.Errorf("%d checkpoints, %v: a save was carried out after the unload", len(list), err)
	}
}

func TestLoadFaults(t *testing.T) {
	cases := map[string]struct{ rule, want string }{
		"a checkpoint that is missing": {`{"op":"load_weights","do":"missing"}`, "user"},
		"a checkpoint that is damaged": {`{"op":"load_weights","do":"corrupt","name":"weights/one$"}`, "server"},
	}
	load := func(b *backend, session string, seq int, path string) string {
		model := b.newModel(session, seq)
		return b.do("load_weights", fill(`{"model_id":"M","seq_id":1,"path":"P","optimizer":true}`, "M", model, "P", path))
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, session, model := startTrained(t, tinkersim.Options{})
			b.admin(http.MethodPost, "/admin/faults", `{"faults":[`+tc.rule+`]}`)
			path := "tinker://" + model + "/weights/one"
			if got := b.field(load(b, session, 1, path), "category"); got != tc.want {
				t.Errorf("category %s, want %s", got, tc.want)
			}
			if got := b.field(load(b, session, 2, path), "path"); got != path {
				t.Errorf("the second load: %s", got)
			}
		})
	}
	t.Run("damage on the disk", func(t *testing.T) {
		b, session, model := startTrained(t, tinkersim.Options{})
		sampler := b.samplingSession(session, model, 0)
		b.drawn(b.submit("asample", asample(sampler, 1, 7, "Q:", 1, 2)))
		got := b.admin(http.MethodPost, "/admin/checkpoints", fill(`{"path":"{M}/weights/one$","do":"damage"}`, "M", model))
		sameJSON(t, fill(`{"paths":["tinker://{M}/weights/one"]}`, "M", model), got)
		if got := b.field(load(b, session, 1, "tinker://"+model+"/weights/one"), "category"); got != "server" {
			t.Errorf("category %s, want server", got)
		}
	})
	t.Run("an expired checkpoint", func(t *testing.T) {
		b, session, model := startTrained(t, tinkersim.Options{})
		sampler := b.samplingSession(session, model, 0)
		b.admin(http.MethodPost, "/admin/checkpoints", `{"path":".","do":"expire"}`)
		if got := b.field(load(b, session, 1, "tinker://"+model+"/weights/one"), "category"); got != "user" {
			t.Errorf("category %s, want user", got)
		}
		b.post(http.StatusNotFound, "asample", asample(sampler, 1, 7, "Q:", 1, 2))
	})
	t.Run("a sampling session of a missing checkpoint", func(t *testing.T) {
		b, session, model := startTrained(t, tinkersim.Options{})
		b.admin(http.MethodPost, "/admin/faults", `{"faults":[{"op":"create_sampling_session","do":"missing"}]}`)
		body := fill(`{"session_id":"S","sampling_session_seq_id":1,"model_path":"tinker://{M}/sampler_weights/two"}`, "S",
			session, "M", model)
		b.post(http.StatusNotFound, "create_sampling_session", body)
		b.post(http.StatusOK, "create_sampling_session", body)
	})
}

// TestColdAdam loads a state without its optimizer although it was requested.
func TestColdAdam(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{})
	b.admin(http.MethodPost, "/admin/faults", `{"faults":[{"op":"load_weights","do":"cold_adam"}]}`)
	after := func(seq int, optimizer bool) string {
		other := b.newModel(session, seq)
		b.do("load_weights", fill(`{"model_id":"M","seq_id":1,"path":"P","optimizer":O}`, "M", other, "P",
			"tinker://"+model+"/weights/one", "O", optimizer))
		b.do("forward_backward", chunk(t, other, 2, "text"))
		b.do("optim_step", optim(other, 3))
		return b.adapter(other, 4, "after")
	}
	faulty, cold, warm := after(1, true), after(2, false), after(3, true)
	if faulty != cold || faulty == warm {
		t.Errorf("with the fault as cold: %v, as warm: %v", faulty == cold, faulty == warm)
	}
}

// TestClientSurvivesFaults trains through every fault that is not final, and compares the weights with those of an
// undisturbed training.
func TestClientSurvivesFaults(t *testing.T) {
	train := func(rules ...fault.Rule) string {
		b := start(t, tinkersim.Options{Faults: rules, Config: smallChunks()})
		c := b.client()
		m := b.model(c, b.session(c), 0)
		step(t, m, datum("one"), datum("two"), datum("three"))
		step(t, m, datum("four"), datum("five"))
		saving, err := m.SaveState(t.Context(), client.SaveRequest{Name: "end"})
		return b.unpack(done(t, saving, err).Path)["adapter_model.bin"]
	}
	want := train()
	cases := map[string][]fault.Rule{
		"responses are lost": {
			{Op: "forward_backward", Do: fault.DropAnswer, Occurrence: 2}, {Op: "optim_step", Do: fault.DropAnswer},
			{Op: "save_weights", Do: fault.DropAnswer},
		},
		"requests are lost": {{Op: "forward_backward", Do: fault.DropRequest, Occurrence: 3},
			{Op: "retrieve_future", Do: fault.DropRequest, Count: 2}},
		"the server throttles": {{Do: fault.Refuse, Status: 429, RetryAfterSeconds: 0.01, Occurrence: 5, Count: 3}},
		"the server fails": {{Op: "retrieve_future", Do: fault.Refuse, Status: 503, Occurrence: 2},
			{Op: "optim_step", Do: fault.Refuse, Status: 500}},
		"the queue pauses": {{Op: "forward_backward", Do: fault.Pause, Seconds: 0.05, QueueState: "paused_capacity",
			Count: -1}},
		"responses are delayed": {{Do: fault.Delay, Seconds: 0.01, Count: -1}},
	}
	for name, rules := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := train(rules...); got != want {
				t.Errorf("the weights have sha256 %x, want %x as undisturbed", sha256.Sum256([]byte(got)),
					sha256.Sum256([]byte(want)))
			}
		})
	}
}

// smallChunks makes clients send one datum a chunk, compressed.
func smallChunks() *tinker.ServerConfig {
	config := tinker.DefaultServerConfig()
	config.MaxChunkLen = 1
	config.CompressForwardBackward = true
	return &config
}

func TestChunksAreAccumulated(t *testing.T) {
	train := func(config *tinker.ServerConfig) (map[string]float64, int64) {
		b := start(t, tinkersim.Options{Config: config})
		c := b.client()
		m := b.model(c, b.session(c), 0)
		forward, err := m.ForwardBackward(t.Context(), []tinker.Datum{datum("one"), datum("two"), datum("three")},
			crossEntropy)
		result := done(t, forward, err)
		if len(result.LossFnOutputs) != 3 {
			t.Errorf("%d outputs, want 3", len(result.LossFnOutputs))
		}
		return result.Metrics, b.sim.Stats().Operations["forward_backward"]
	}
	whole, one := train(nil)
	chunked, three := train(smallChunks())
	if one != 1 || three != 3 {
		t.Errorf("%d and %d chunks, want 1 and 3", one, three)
	}
	if d := whole["loss:sum"] - chunked["loss:sum"]; d > 1e-4 || d < -1e-4 {
		t.Errorf("losses %v and %v", whole, chunked)
	}
}

func TestSampleAfterLostFuture(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{})
	sampler := b.samplingSession(session, model, 0)
	want := b.drawn(b.submit("asample", asample(sampler, 1, 7, "Q:", 1, 9)))
	b.admin(http.MethodPost, "/admin/faults", `{"faults":[{"op":"asample","do":"lose_promise"}]}`)
	lost := b.submit("asample", asample(sampler, 2, 7, "Q:", 1, 9))
	b.post(http.StatusGone, "retrieve_future", `{"request_id":"`+lost+`"}`)
	if again := b.submit("asample", asample(sampler, 2, 7, "Q:", 1, 9)); again != lost {
		t.Errorf("the same number got another future: got %v, want %v", again, lost)
	}
	if diff := cmp.Diff(want, b.drawn(b.submit("asample", asample(sampler, 3, 7, "Q:", 1, 9)))); diff != "" {
		t.Errorf("under the next number (-want +got):\n%s", diff)
	}
}

// TestReorderedSamples checks that the samples of a request come in another order each time.
func TestReorderedSamples(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{})
	sampler := b.samplingSession(session, model, 0)
	texts := func(seq int64) (texts []string) {
		for _, s := range b.drawn(b.submit("asample", asample(sampler, seq, 7, "Q:", 16, 9))).Sequences {
			texts = append(texts, fmt.Sprint(s))
		}
		return texts
	}
	want := texts(1)
	if diff := cmp.Diff(want, texts(2)); diff != "" {
		t.Errorf("sample i differs from the sample of the same request under another number (-want +got):\n%s", diff)
	}
	b.admin(http.MethodPost, "/admin/faults", `{"faults":[{"op":"asample","do":"reorder_samples","count":2}]}`)
	first, second := texts(3), texts(4)
	if slices.Equal(first, want) || slices.Equal(first, second) {
		t.Errorf("samples with the fault are %v and %v, without the fault %v", first, second, want)
	}
	slices.Sort(want)
	slices.Sort(first)
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("in another order they are others (-want +got):\n%s", diff)
	}
}

// TestIgnoredSeed checks that each request is drawn with another seed, but a repeated request returns its first draw.
func TestIgnoredSeed(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{})
	sampler := b.samplingSession(session, model, 0)
	draw := func(seq int64) string { return b.submit("asample", asample(sampler, seq, 7, "Q:", 1, 9)) }
	want := b.drawn(draw(1))
	b.admin(http.MethodPost, "/admin/faults", `{"faults":[{"op":"asample","do":"ignore_seed","count":2}]}`)
	first, second := b.drawn(draw(2)), b.drawn(draw(3))
	if cmp.Equal(first, want) || cmp.Equal(first, second) {
		t.Errorf("samples with the fault are %v and %v, without the fault %v", first, second, want)
	}
	if diff := cmp.Diff(first, b.drawn(draw(2))); diff != "" {
		t.Errorf("posted again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, b.drawn(draw(4))); diff != "" {
		t.Errorf("after the fault (-want +got):\n%s", diff)
	}
}

func TestFaultCounts(t *testing.T) {
	b, _, model := startTrained(t, tinkersim.Options{Faults: []fault.Rule{{ID: "second", Op: "optim_step", Do: fault.Fail,
		Occurrence: 3}}})
	b.do("optim_step", optim(model, 5))
	b.do("optim_step", optim(model, 6))
	b.do("optim_step", optim(model, 6))
	var list struct{ Faults []fault.RuleStatus }
	if err := json.Unmarshal([]byte(b.admin(http.MethodGet, "/admin/faults", "")), &list); err != nil {
		t.Fatal(err)
	}
	if got := list.Faults; len(got) != 1 || got[0].Seen != 3 || got[0].Hits != 1 {
		t.Errorf("counted %+v, want 3 operations seen and 1 affected", got)
	}
	b.admin(http.MethodDelete, "/admin/faults", "")
	sameJSON(t, `{"faults":[]}`, b.admin(http.MethodGet, "/admin/faults", ""))
}

func TestStats(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{Clock: time.Now})
	b.drawn(b.submit("asample", asample(b.samplingSession(session, model, 0), 1, 7, "Q:", 2, 9)))
	b.post(http.StatusNotFound, "optim_step", optim("x", 1))
	var busy tinkersim.Stats
	read := func() {
		t.Helper()
		if err := json.Unmarshal([]byte(b.admin(http.MethodGet, "/admin/busy", "")), &busy); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if busy.SamplingSeconds <= 0 || busy.TrainingSeconds <= 0 || busy.SavingSeconds <= 0 || busy.SampledTokens == 0 ||
		busy.SampledRows != 2 || busy.TrainedTokens != 10 {
		t.Errorf("busy %+v", busy)
	}
	if busy.Calls["optim_step"] != 2 || busy.Operations["optim_step"] != 1 || busy.Operations["create_model"] != 1 {
		t.Errorf("calls %v, operations %v", busy.Calls, busy.Operations)
	}
	if err := b.sim.Restart(); err != nil {
		t.Fatal(err)
	}
	read()
	if busy.SampledRows != 2 || busy.Operations["optim_step"] != 1 {
		t.Errorf("after a restart the counts are %+v", busy)
	}
}

func TestDelayEndsWithClient(t *testing.T) {
	b, session, _ := startTrained(t, tinkersim.Options{})
	b.admin(http.MethodPost, "/admin/faults", `{"faults":[{"op":"session_heartbeat","do":"delay","seconds":3600}]}`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := b.client().Heartbeat(ctx, session); err == nil {
		t.Error("the heartbeat got a response")
	}
}
