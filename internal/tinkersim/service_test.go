// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

func TestAPIKey(t *testing.T) {
	b := start(t, tinkersim.Options{APIKey: "tml-secret"})
	for key, want := range map[string]int{"tml-secret": 200, "tml-secret2": 401, "tml-other": 401, "": 401} {
		if got, err := b.call(http.MethodGet, "/api/v1/checkpoints", "", "X-API-Key", key); err != nil || got.status != want {
			t.Errorf("key %q: %d, %v, want %d", key, got.status, err, want)
		}
	}
}

func TestTokenExchange(t *testing.T) {
	config := tinker.DefaultServerConfig()
	config.PJWTAuthEnabled = true
	c := newClock()
	b := start(t, tinkersim.Options{Config: &config, Clock: c.Now})
	b.session(b.client()) // the client exchanges its key
	if b.sim.Stats().Calls["auth_token"] != 1 {
		t.Errorf("the client did not exchange its key: got %v, want 1", b.sim.Stats().Calls["auth_token"])
	}
	token := b.field(b.post(http.StatusOK, "auth/token", "{}").body, "jwt")
	parts := strings.Split(token, ".")
	steps := []struct {
		what string
		key  string
		wait time.Duration
		want int
	}{
		{"a fresh token", token, 0, 200},
		{"a token with another signature", parts[0] + "." + parts[1] + ".AAAA", 0, 401},
		{"a token without a signature", parts[0] + "." + parts[1], 0, 401},
		{"a token just before its end", token, 10*time.Minute - time.Second, 200},
		{"a token at its end", token, time.Second, 401},
		{"the key itself", "tml-test", 0, 200},
	}
	for _, step := range steps {
		c.advance(step.wait)
		if got, err := b.call(http.MethodGet, "/api/v1/checkpoints", "", "X-API-Key", step.key); err != nil ||
			got.status != step.want {
			t.Errorf("%s: %d, %v, want %d", step.what, got.status, err, step.want)
		}
	}
	if got, err := b.call(http.MethodPost, "/api/v1/auth/token", "{}", "X-API-Key", "bad"); err != nil ||
		got.status != 401 {
		t.Errorf("a bad key was exchanged: %d, %v", got.status, err)
	}
}

func TestAdminDisabled(t *testing.T) {
	sim, err := tinkersim.New(tinkersim.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	recorder := newRecorder(t.Context(), sim, http.MethodGet, "/admin/busy")
	if recorder.Code != http.StatusNotFound {
		t.Errorf("status %d, want 404", recorder.Code)
	}
}

func TestHubServesTokenizer(t *testing.T) {
	b := start(t, tinkersim.Options{Aliases: []string{"Qwen/Qwen3-8B-Base"}})
	for _, name := range []string{tinkersim.ModelName, "Qwen/Qwen3-8B-Base"} {
		path := "/" + name + "/resolve/main/tokenizer.json"
		get, err := b.call(http.MethodGet, path, "", "X-API-Key", "")
		if err != nil || get.status != http.StatusOK || get.body != string(model.TokenizerJSON()) {
			t.Fatalf("GET %s: %d, %v", path, get.status, err)
		}
		head, err := b.call(http.MethodHead, path, "", "X-API-Key", "")
		if err != nil || head.status != http.StatusOK || head.body != "" {
			t.Errorf("HEAD %s: %d %q, %v", path, head.status, head.body, err)
		}
		for _, header := range []string{"Etag", "X-Repo-Commit", "Content-Length"} {
			if head.header.Get(header) == "" || head.header.Get(header) != get.header.Get(header) {
				t.Errorf("%s of HEAD is %q, of GET %q", header, head.header.Get(header), get.header.Get(header))
			}
		}
	}
	for _, file := range []string{"tokenizer_config.json", "config.json"} {
		got, err := b.call(http.MethodGet, "/tinkersim/byte-136k/resolve/main/"+file, "")
		if err != nil || !json.Valid([]byte(got.body)) {
			t.Errorf("%s: %s, %v", file, got.body, err)
		}
	}
	missing, err := b.call(http.MethodHead, "/tinkersim/byte-136k/resolve/main/added_tokens.json", "")
	if err != nil || missing.status != http.StatusNotFound || missing.header.Get("X-Error-Code") != "" {
		t.Errorf("a missing file: %d %v, %v", missing.status, missing.header, err)
	}
}

func TestAliasesAreTrainable(t *testing.T) {
	b := start(t, tinkersim.Options{Aliases: []string{"Qwen/Qwen3-8B-Base"}})
	got := b.do("create_model", fill(`{"session_id":"S","model_seq_id":0,"base_model":"Qwen/Qwen3-8B-Base"}`, "S",
		b.newSession()))
	info := b.post(http.StatusOK, "get_info", fill(`{"model_id":"M"}`, "M", b.field(got, "model_id"))).body
	if !strings.Contains(info, `"tokenizer_id":"Qwen/Qwen3-8B-Base"`) || !strings.Contains(info, `"lora_rank":32`) {
		t.Errorf("info %s", info)
	}
}

func TestCompressedBodies(t *testing.T) {
	b, _, model := startTrained(t, tinkersim.Options{})
	packed, err := tinker.Compress([]byte(chunk(t, model, 5, "text")))
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.call(http.MethodPost, "/api/v1/forward_backward", string(packed), "Content-Encoding", "zstd",
		"Content-Type", "application/x-protobuf")
	if err != nil || got.status != http.StatusOK {
		t.Fatalf("%d %s, %v", got.status, got.body, err)
	}
	if l := loss(t, b.protoResult(b.field(got.body, "request_id")).body); !(l > 0) {
		t.Errorf("loss %v", l)
	}
	for encoding, body := range map[string]string{"zstd": "\x01\x02", "br": "x"} {
		if got, err := b.call(http.MethodPost, "/api/v1/forward_backward", body, "Content-Encoding", encoding); err != nil ||
			got.status != 400 {
			t.Errorf("encoding %s: %d, %v, want 400", encoding, got.status, err)
		}
	}
	large := strings.Repeat(" ", 65<<20)
	if got, err := b.call(http.MethodPost, "/api/v1/telemetry", large); err == nil &&
		got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of 65 MiB: %d", got.status)
	}
}

// TestLegacyJSON sends and receives JSON where clients of 0.25 use protobuf.
func TestLegacyJSON(t *testing.T) {
	b, _, model := startTrained(t, tinkersim.Options{})
	data := `{"loss_fn":"cross_entropy","data":[{"model_input":{"chunks":[{"type":"encoded_text","tokens":[81,58]}]},
		"loss_fn_inputs":{"target_tokens":{"data":[58,32],"dtype":"int64","shape":[2]},"weights":{"data":[1,1],"dtype":"float32","shape":[2]}}}]}`
	forward := b.do("forward", fill(`{"model_id":"M","seq_id":5,"forward_input":`, "M", model)+data+`}`)
	backward := b.do("forward_backward", fill(`{"model_id":"M","seq_id":6,"forward_backward_input":`, "M", model)+data+`}`)
	sameJSON(t, forward, backward)
	var result struct {
		Type    string `json:"loss_fn_output_type"`
		Outputs []map[string]struct {
			Data  []float64
			DType string
			Shape []int
		} `json:"loss_fn_outputs"`
		Metrics map[string]float64 `json:"metrics"`
	}
	if err := json.Unmarshal([]byte(forward), &result); err != nil {
		t.Fatal(err)
	}
	logprobs := result.Outputs[0]["logprobs"]
	if logprobs.DType != "float32" || len(logprobs.Data) != 2 || math.Abs(logprobs.Data[0]+logprobs.Data[1]+
		result.Metrics["loss:sum"]) > 1e-5 {
		t.Errorf("result %s", forward)
	}
	before := b.adapter(model, 7, "before")
	b.do("forward", fill(`{"model_id":"M","seq_id":8,"forward_input":`, "M", model)+data+`}`)
	if after := b.adapter(model, 9, "after"); after != before {
		t.Errorf("a forward changed the weights: sha256 %x, want %x", sha256.Sum256([]byte(after)),
			sha256.Sum256([]byte(before)))
	}
	b.post(http.StatusBadRequest, "forward_backward", fill(`{"model_id":"M","seq_id":10}`, "M", model))
	b.post(http.StatusUnprocessableEntity, "forward_backward", `{"model_id":`)
}

func TestMetadataOfLargeResults(t *testing.T) {
	b, _, model := startTrained(t, tinkersim.Options{MetadataBytes: 100})
	id := b.submit("forward_backward", chunk(t, model, 5, strings.Repeat("x", 50)))
	announced := b.protoResult(id)
	var meta tinker.CompleteMetadata
	if err := json.Unmarshal([]byte(announced.body), &meta); err != nil || meta.Status != tinker.StatusCompleteMetadata ||
		meta.ResponsePayloadSize < 200 {
		t.Fatalf("%s, %v", announced.body, err)
	}
	got, err := b.call(http.MethodPost, "/api/v1/retrieve_future", `{"request_id":"`+id+`","allow_metadata_only":false}`,
		"Accept", "application/x-protobuf")
	if err != nil || !isProtobuf(got) || int64(len(got.body)) != meta.ResponsePayloadSize {
		t.Errorf("%d bytes of %d, %v", len(got.body), meta.ResponsePayloadSize, err)
	}
	c := b.client()
	m := b.model(c, b.session(c), 0)
	if l := step(t, m, datum(strings.Repeat("y", 50))); !(l > 0) {
		t.Errorf("loss %v through the announcement", l)
	}
}

func TestResultRetention(t *testing.T) {
	c := newClock()
	b, _, model := startTrained(t, tinkersim.Options{Clock: c.Now, SessionTimeout: time.Hour})
	id := b.submit("forward_backward", chunk(t, model, 5, "text"))
	first := b.protoResult(id).body
	for range 3 {
		c.advance(4 * time.Minute)
		if again := b.protoResult(id).body; !bytes.Equal([]byte(again), []byte(first)) {
			t.Errorf("the result is %s, want %s as before", again, first)
		}
	}
	c.advance(6 * time.Minute)
	b.post(http.StatusGone, "retrieve_future", `{"request_id":"`+id+`"}`)
	again := b.submit("forward_backward", chunk(t, model, 5, "text"))
	if again != id {
		t.Errorf("posted again long after: %s, want %s", again, id)
	}
}
