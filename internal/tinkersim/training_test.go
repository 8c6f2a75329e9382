// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"crypto/sha256"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// loss decodes the loss:sum of a result of forward_backward.
func loss(t *testing.T, body string) float64 {
	t.Helper()
	result, err := tinker.DecodeOutput([]byte(body))
	if err != nil {
		t.Fatalf("decoding %q: %v", body, err)
	}
	return result.Metrics["loss:sum"]
}

// protoResult polls as a client of 0.25 does.
func (b *backend) protoResult(id string) reply {
	b.t.Helper()
	for {
		answer, err := b.call(http.MethodPost, "/api/v1/retrieve_future",
			`{"request_id":"`+id+`","allow_metadata_only":true}`, "Accept", "application/x-protobuf")
		if err != nil || answer.status != http.StatusOK {
			b.t.Fatalf("polling: %d %s, %v", answer.status, answer.body, err)
		}
		if isProtobuf(answer) || !strings.Contains(answer.body, `"try_again"`) {
			return answer
		}
	}
}

// adapter saves the state of a model and returns the bytes of its adapter.
func (b *backend) adapter(model string, seq int64, name string) string {
	b.t.Helper()
	b.do("save_weights", fill(`{"model_id":"M","path":"P","seq_id":N}`, "M", model, "P", name, "N", seq))
	return b.unpack("tinker://" + model + "/weights/" + name)["adapter_model.bin"]
}

// TestOrderOfArrival trains the same chunks in several orders of arrival: the result is the same to the bit.
func TestOrderOfArrival(t *testing.T) {
	texts := []string{"", "first chunk", "second one", "the third"}
	cases := map[string][]int64{
		"1 2 3":                      {1, 2, 3},
		"2 3 1":                      {2, 3, 1},
		"3 1 2":                      {3, 1, 2},
		"every number posted twice":  {2, 2, 3, 3, 1, 1, 2},
		"a repetition after the end": {3, 2, 1, 1, 2, 3},
	}
	b := start(t, tinkersim.Options{})
	session := b.newSession()
	train := func(seq int, arrivals []int64) string {
		model := b.newModel(session, seq)
		ids := map[int64]string{}
		for _, n := range arrivals {
			id := b.submit("forward_backward", chunk(t, model, n, texts[n]))
			if before, ok := ids[n]; ok && before != id {
				t.Errorf("number %d got futures %s and %s", n, before, id)
			}
			ids[n] = id
		}
		b.do("optim_step", optim(model, 4))
		b.do("optim_step", optim(model, 4)) // a repetition is not executed again
		return b.adapter(model, 5, "end")
	}
	want := train(0, []int64{1, 2, 3})
	before := b.sim.Stats().Operations
	seq := 1
	for name, arrivals := range cases {
		t.Run(name, func(t *testing.T) {
			if got := train(seq, arrivals); got != want {
				t.Errorf("the trained weights have sha256 %x, want %x as in the order 1 2 3", sha256.Sum256([]byte(got)),
					sha256.Sum256([]byte(want)))
			}
		})
		seq++
	}
	after := b.sim.Stats().Operations
	if got := after["forward_backward"] - before["forward_backward"]; got != 3*int64(len(cases)) {
		t.Errorf("%d chunks were carried out for %d", got, 3*len(cases))
	}
	if got := after["optim_step"] - before["optim_step"]; got != int64(len(cases)) {
		t.Errorf("%d optimizer steps were carried out for %d", got, len(cases))
	}
}

func TestSequenceGaps(t *testing.T) {
	t.Run("an operation after a gap does not wait", func(t *testing.T) {
		b := start(t, tinkersim.Options{GapPatience: time.Hour})
		model := b.newModel(b.newSession(), 0)
		b.submit("forward_backward", chunk(t, model, 2, "text"))
		b.do("optim_step", optim(model, 5))
	})
	t.Run("a chunk after a gap waits for a while", func(t *testing.T) {
		b := start(t, tinkersim.Options{GapPatience: 20 * time.Millisecond})
		model := b.newModel(b.newSession(), 0)
		id := b.submit("forward_backward", chunk(t, model, 3, "text"))
		if got := loss(t, b.protoResult(id).body); got <= 0 {
			t.Errorf("loss %v", got)
		}
	})
	t.Run("a chunk that comes after its optimizer step fails", func(t *testing.T) {
		b := start(t, tinkersim.Options{})
		model := b.newModel(b.newSession(), 0)
		b.do("optim_step", optim(model, 2))
		id := b.submit("forward_backward", chunk(t, model, 1, "text"))
		sameJSON(t, `{"error":"queueing operation 1: arriving after a later operation was carried out","category":"server"}`,
			b.result(id).body)
	})
}

func TestFailedChunkAddsNothing(t *testing.T) {
	b := start(t, tinkersim.Options{})
	session := b.newSession()
	with, without := b.newModel(session, 0), b.newModel(session, 1)
	bad := fill(`{"model_id":"M","seq_id":2,"forward_backward_input":{"loss_fn":"cross_entropy","data":[
		{"model_input":{"chunks":[{"type":"encoded_text","tokens":[65,66]}]},"loss_fn_inputs":{"target_tokens":{"data":[66,67],"dtype":"int64","shape":[2]}}},
		{"model_input":{"chunks":[{"type":"encoded_text","tokens":[65,66]}]},"loss_fn_inputs":{"target_tokens":{"data":[66,999],"dtype":"int64","shape":[2]}}}]}}`, "M", with)
	for _, model := range []string{with, without} {
		b.do("forward_backward", chunk(t, model, 1, "good"))
	}
	if got := b.field(b.do("forward_backward", bad), "category"); got != "user" {
		t.Errorf("category %s, want user", got)
	}
	for _, model := range []string{with, without} {
		b.do("optim_step", optim(model, 3))
	}
	if got, want := b.adapter(with, 4, "end"), b.adapter(without, 4, "end"); got != want {
		t.Errorf("the failed chunk has changed the weights: sha256 %x, want %x", sha256.Sum256([]byte(got)),
			sha256.Sum256([]byte(want)))
	}
}

func TestUserErrorsAreResults(t *testing.T) {
	cases := map[string]struct{ op, body string }{
		"an unknown base model": {"create_model", `{"session_id":"S","model_seq_id":9,"base_model":"x/y"}`},
		"a rank of zero": {"create_model",
			`{"session_id":"S","model_seq_id":9,"base_model":"tinkersim/byte-136k","lora_config":{"rank":0}}`},
		"nothing to train": {"create_model",
			`{"session_id":"S","model_seq_id":9,"base_model":"tinkersim/byte-136k","lora_config":{"rank":4,"train_mlp":false,"train_attn":false,"train_unembed":false}}`},
		"an unknown loss": {"forward_backward",
			`{"model_id":"M","seq_id":5,"forward_backward_input":{"loss_fn":"x","data":[{"model_input":{"chunks":[{"type":"encoded_text","tokens":[65]}]},"loss_fn_inputs":{"target_tokens":{"data":[66],"dtype":"int64","shape":[1]}}}]}}`},
		"no data": {"forward_backward",
			`{"model_id":"M","seq_id":5,"forward_backward_input":{"loss_fn":"cross_entropy","data":[]}}`},
		"an image": {"forward",
			`{"model_id":"M","seq_id":5,"forward_input":{"loss_fn":"cross_entropy","data":[{"model_input":{"chunks":[{"type":"image","data":"AA==","format":"png"}]},"loss_fn_inputs":{}}]}}`},
		"a name that exists":           {"save_weights", `{"model_id":"M","seq_id":5,"path":"one"}`},
		"a sampler's name that exists": {"save_weights_for_sampler", `{"model_id":"M","seq_id":5,"path":"two"}`},
		"an invalid name":              {"save_weights", `{"model_id":"M","seq_id":5,"path":"../one"}`},
		"a TTL of zero":                {"save_weights", `{"model_id":"M","seq_id":5,"path":"three","ttl_seconds":0}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, session, model := startTrained(t, tinkersim.Options{})
			if got := b.field(b.do(tc.op, fill(tc.body, "S", session, "M", model)), "category"); got != "user" {
				t.Errorf("category %s, want user", got)
			}
			list := b.post(http.StatusOK, "session_heartbeat", fill(`{"session_id":"S"}`, "S", session))
			if list.status != http.StatusOK {
				t.Errorf("the session does not exist any more: %s", list.body)
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	cases := map[string]struct{ path, category string }{
		"a missing state":          {"tinker://{M}/weights/none", "user"},
		"a state of another rank":  {"tinker://{M}/weights/one", "user"},
		"a state of a missing run": {"tinker://x/weights/one", "user"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, session, model := startTrained(t, tinkersim.Options{})
			other := b.field(b.do("create_model", fill(
				`{"session_id":"S","model_seq_id":1,"base_model":"tinkersim/byte-136k","lora_config":{"rank":8}}`, "S", session)),
				"model_id")
			got := b.do("load_weights", fill(`{"model_id":"O","seq_id":1,"path":"P","optimizer":true}`, "O", other, "P",
				fill(tc.path, "M", model)))
			if category := b.field(got, "category"); category != tc.category {
				t.Errorf("%s, want category %s", got, tc.category)
			}
		})
	}
}

// TestCreateByLoad makes a model by a load, as newer clients do.
func TestCreateByLoad(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{})
	body := fill(`{"session_id":"S","model_seq_id":1,"path":"tinker://{M}/weights/one","optimizer":true,"user_metadata":{"run":"b"}}`, "S", session, "M", model)
	first := b.submit("load_weights", body)
	if again := b.submit("load_weights", body); again != first {
		t.Errorf("posted again: %s, want %s", again, first)
	}
	sameJSON(t, fill(`{"path":"tinker://{M}/weights/one","model_id":"{S}:train:1","type":"load_weights"}`, "S", session,
		"M", model), b.result(first).body)
	// Each model has sequence numbers of its own, and would wait at a gap in them.
	after := map[string]string{}
	for id, next := range map[string]int64{model: 5, session + ":train:1": 1} {
		b.do("forward_backward", chunk(t, id, next, "more"))
		b.do("optim_step", optim(id, next+1))
		after[id] = b.adapter(id, next+2, "after")
	}
	if after[model] != after[session+":train:1"] {
		t.Errorf("the model that was made by the load continues differently: sha256 %x, want %x",
			sha256.Sum256([]byte(after[model])), sha256.Sum256([]byte(after[session+":train:1"])))
	}
	run, err := b.client().TrainingRun(t.Context(), session+":train:1")
	if err != nil || run.UserMetadata["run"] != "b" || *run.LoraRank != 4 {
		t.Errorf("run %+v, %v", run, err)
	}
	missing := strings.NewReplacer("weights/one", "weights/none", `"model_seq_id":1`, `"model_seq_id":2`).Replace(body)
	if got := b.field(b.do("load_weights", missing), "category"); got != "user" {
		t.Errorf("category %s, want user", got)
	}
	if _, err := b.client().TrainingRun(t.Context(), session+":train:2"); err == nil {
		t.Error("a failed load has left a run")
	}
}

func TestOverwrite(t *testing.T) {
	b, _, model := startTrained(t, tinkersim.Options{})
	before := b.unpack("tinker://" + model + "/weights/one")["adapter_model.bin"]
	b.do("forward_backward", chunk(t, model, 5, "more"))
	b.do("optim_step", optim(model, 6))
	b.do("save_weights", fill(`{"model_id":"M","path":"one","seq_id":7,"overwrite":true}`, "M", model))
	if after := b.unpack("tinker://" + model + "/weights/one")["adapter_model.bin"]; after == before {
		t.Errorf("the checkpoint was not overwritten: sha256 %x before and after", sha256.Sum256([]byte(after)))
	}
}

func TestUnload(t *testing.T) {
	b, _, model := startTrained(t, tinkersim.Options{})
	unload := fill(`{"model_id":"M"}`, "M", model)
	want := fill(`{"model_id":"M","type":"unload_model"}`, "M", model)
	sameJSON(t, want, b.do("unload_model", unload))
	sameJSON(t, want, b.do("unload_model", unload)) // a repetition succeeds as well
	b.post(http.StatusNotFound, "optim_step", optim(model, 5))
	b.post(http.StatusNotFound, "unload_model", `{"model_id":"x"}`)
	b.post(http.StatusOK, "weights_info", fill(`{"tinker_path":"tinker://{M}/weights/one"}`, "M", model))
}

// TestDivergedStep checks that a step after which nothing is finite is answered as a step: it is executed and counted
// once, and numbers that JSON cannot represent are null.
func TestDivergedStep(t *testing.T) {
	b, _, model := startTrained(t, tinkersim.Options{})
	b.do("forward_backward", chunk(t, model, 5, "more"))
	b.do("optim_step", fill(`{"model_id":"M","seq_id":N,"adam_params":{"learning_rate":1e30,"eps":1e-8}}`, "M", model, "N",
		int64(6)))
	forward := b.submit("forward_backward", chunk(t, model, 7, "more"))
	pass, err := tinker.DecodeOutput([]byte(b.protoResult(forward).body))
	if err != nil || !math.IsNaN(pass.Metrics["loss:sum"]) {
		t.Errorf("metrics %v, %v, want a loss that is NaN", pass.Metrics, err)
	}
	view := b.result(forward).body // as SDKs before 0.25 ask for it
	if !strings.Contains(view, `"loss:sum":null`) || !strings.Contains(view, `"data":[null,`) {
		t.Errorf("the JSON view is %s, want null for numbers that are not finite", view)
	}

	before := b.sim.Stats().Operations["optim_step"]
	step := b.submit("optim_step", optim(model, 8))
	for _, answer := range []string{b.result(step).body, b.protoResult(step).body} {
		if want := `{"metrics":{"unclipped_grad_l2:mean":null}}`; answer != want {
			t.Errorf("the step's result is %s, want %s", answer, want)
		}
	}
	if counted := b.sim.Stats().Operations["optim_step"] - before; counted != 1 {
		t.Errorf("the step was counted %d times", counted)
	}
}
