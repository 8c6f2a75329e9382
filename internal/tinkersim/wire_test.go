// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// clock is a clock that the test advances.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// sameIDs returns a source of ids that is the same each time.
func sameIDs() io.Reader { return rand.NewChaCha8([32]byte{1}) }

// reply is a response as received.
type reply struct {
	status int
	header http.Header
	body   string
}

// call sends a request as it is given. A body that begins with "{" is JSON, and any other body is protobuf.
func (b *backend) call(method, path, body string, header ...string) (reply, error) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("X-API-Key", "tml-test")
	req.Header.Set("Content-Type", "application/json")
	if body != "" && body[0] != '{' {
		req.Header.Set("Content-Type", "application/x-protobuf")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DisableKeepAlives: true}, // the transport must not retry after a dropped response
	}
	answer, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return reply{status: answer.StatusCode, header: answer.Header, body: string(text)}, err
}

// post posts to the API and expects a status.
func (b *backend) post(status int, op, body string) reply {
	b.t.Helper()
	answer, err := b.call(http.MethodPost, "/api/v1/"+op, body)
	if err != nil {
		b.t.Fatalf("%s: %v", op, err)
	}
	if answer.status != status {
		b.t.Fatalf("%s: status %d %s, want %d", op, answer.status, answer.body, status)
	}
	return answer
}

// submit posts an operation and returns the id of its future.
func (b *backend) submit(op, body string) string {
	b.t.Helper()
	return b.field(b.post(http.StatusOK, op, body).body, "request_id")
}

// field reads a field of a JSON object.
func (b *backend) field(body, name string) string {
	b.t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		b.t.Fatalf("decoding %q: %v", body, err)
	}
	value, ok := object[name].(string)
	if !ok {
		b.t.Fatalf("no %s in %s", name, body)
	}
	return value
}

// result polls until the future is resolved.
func (b *backend) result(id string) reply {
	b.t.Helper()
	for {
		answer := b.post(http.StatusOK, "retrieve_future", `{"request_id":"`+id+`"}`)
		if !strings.Contains(answer.body, `"try_again"`) {
			return answer
		}
	}
}

// do submits an operation and waits for its result.
func (b *backend) do(op, body string) string {
	b.t.Helper()
	return b.result(b.submit(op, body)).body
}

// newSession makes a session over the bare wire.
func (b *backend) newSession() string {
	b.t.Helper()
	return b.field(b.post(http.StatusOK, "create_session", `{"tags":[],"user_metadata":{},"sdk_version":"0.25.0"}`).body,
		"session_id")
}

// newModel makes a model over the bare wire.
func (b *backend) newModel(session string, seq int) string {
	b.t.Helper()
	body := fill(`{"session_id":"S","model_seq_id":N,"base_model":"tinkersim/byte-136k","user_metadata":{"run":"abc","attempt":1},
		"lora_config":{"rank":4,"seed":1}}`, "S", session, "N", seq)
	return b.field(b.do("create_model", body), "model_id")
}

// fill replaces placeholders, given in pairs, where they stand for a whole string or number.
func fill(text string, pairs ...any) string {
	for i := 0; i < len(pairs); i += 2 {
		value, err := json.Marshal(pairs[i+1])
		if err != nil {
			panic(err)
		}
		name := pairs[i].(string)
		bare := strings.Trim(string(value), `"`)
		text = strings.ReplaceAll(text, `"`+name+`"`, `"`+bare+`"`)
		text = strings.ReplaceAll(text, `:`+name, `:`+bare)
		text = strings.ReplaceAll(text, `{`+name+`}`, bare)
	}
	return text
}

// chunk encodes a forward_backward that trains on texts.
func chunk(t *testing.T, model string, seq int64, texts ...string) string {
	t.Helper()
	req := tinker.ForwardBackwardRequest{ModelID: model, SeqID: seq, Loss: crossEntropy}
	for _, s := range texts {
		req.Data = append(req.Data, datum(s))
	}
	body, err := tinker.EncodeForwardBackward(req)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// optim is the body of an optim_step.
func optim(model string, seq int64) string {
	return fill(`{"model_id":"M","seq_id":N,"adam_params":{"learning_rate":0.01,"eps":1e-8}}`, "M", model, "N", seq)
}

// sameJSON compares two JSON texts.
func sameJSON(t *testing.T, want, got string) {
	t.Helper()
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("decoding the wanted value: %v in %s", err, want)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("decoding what came: %v in %s", err, got)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// startTrained starts a server with a session, a model that made one step, and two checkpoints.
func startTrained(t *testing.T, options tinkersim.Options) (b *backend, session, model string) {
	t.Helper()
	options.Random = sameIDs()
	if options.Clock == nil {
		options.Clock = newClock().Now
	}
	b = start(t, options)
	session = b.newSession()
	model = b.newModel(session, 0)
	b.do("forward_backward", chunk(t, model, 1, "Q: 1+1 A: 2"))
	b.do("optim_step", optim(model, 2))
	b.do("save_weights", fill(`{"model_id":"M","path":"one","seq_id":3}`, "M", model))
	b.do("save_weights_for_sampler", fill(`{"model_id":"M","path":"two","seq_id":4,"ttl_seconds":3600}`, "M", model))
	return b, session, model
}

// isProtobuf reports whether an answer is protobuf.
func isProtobuf(r reply) bool {
	return r.header.Get("Content-Type") == "application/x-protobuf" && !bytes.HasPrefix([]byte(r.body), []byte("{"))
}

// sizes returns the sizes of the two checkpoints of a prepared server.
func sizes(b *backend, model string) (one, two int64) {
	b.t.Helper()
	list, err := b.client().RunCheckpoints(b.t.Context(), model)
	if err != nil || len(list) != 2 {
		b.t.Fatalf("%d checkpoints, %v", len(list), err)
	}
	return *list[1].SizeBytes, *list[0].SizeBytes
}

// newRecorder calls the handler without a network.
func newRecorder(ctx context.Context, handler http.Handler, method, path string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(ctx, method, path, nil)
	req.Header.Set("X-API-Key", "tml-test")
	handler.ServeHTTP(recorder, req)
	return recorder
}
