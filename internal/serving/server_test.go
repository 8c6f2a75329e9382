// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// one is a catalog with one model.
type one struct{ model Model }

func (o one) Names() []string { return []string{"sums"} }

func (o one) Model(_ context.Context, name string) (Model, error) {
	if name != "sums" {
		return Model{}, &UnknownModelError{Message: "The models are: sums."}
	}
	return o.model, nil
}

// simulated returns the simulator's base model.
func simulated(t *testing.T) Model {
	t.Helper()
	_, url := simulatortest.Serve(t, tinkersim.Options{})
	endpoint, err := client.New(client.Config{BaseURL: url, APIKey: "tml-test", UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	format, err := load.ForModel(t.Context(), nil, contract.Model{Name: tinkersim.ModelName})
	if err != nil {
		t.Fatal(err)
	}
	sampler := NewSampler(t.Context(), endpoint, "test")
	t.Cleanup(sampler.Close)
	return Model{Format: format, Sampler: sampler, Weights: Weights{Base: tinkersim.ModelName},
		Pieces: Pieces{First: 2, Most: 4}}
}

func serve(t *testing.T, config Config) string {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	config.Defaults = Defaults{Temperature: 1, TopP: 1, MaxTokens: 16}
	server := httptest.NewServer(NewServer(config))
	t.Cleanup(server.Close)
	return server.URL
}

// ask posts a body, and returns the status and the answer.
func ask(t *testing.T, url, body string, headers ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// at returns a value of a JSON text by names and indexes.
func at(t *testing.T, text string, path ...any) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for _, step := range path {
		switch step := step.(type) {
		case string:
			value = value.(map[string]any)[step]
		case int:
			value = value.([]any)[step]
		}
	}
	return value
}

const greedy = `"temperature": 0, "max_tokens": 12, `

// TestEndpointsAgree asks the same in all dialects, with a temperature of 0, as a body and as a stream.
func TestEndpointsAgree(t *testing.T) {
	url := serve(t, Config{Catalog: one{simulated(t)}})
	const asked = `"model": "sums", "messages": [{"role": "user", "content": "3+4=?"}]`
	_, chat := ask(t, url+"/v1/chat/completions", "{"+greedy+asked+"}")
	want, _ := at(t, chat, "choices", 0, "message", "content").(string)
	if want == "" {
		t.Fatalf("the reply is %s", chat)
	}
	_, messages := ask(t, url+"/v1/messages", "{"+greedy+asked+"}")
	if got := at(t, messages, "content", 0, "text"); got != want {
		t.Errorf("messages: got %q, want %q", got, want)
	}
	_, responses := ask(t, url+"/v1/responses",
		`{"temperature": 0, "max_output_tokens": 12, "model": "sums", "input": "3+4=?"}`)
	if got := at(t, responses, "output", 0, "content", 0, "text"); got != want {
		t.Errorf("responses: got %q, want %q", got, want)
	}
	for path, field := range map[string]string{"chat/completions": "content", "messages": "text"} {
		status, events := ask(t, url+"/v1/"+path, `{"stream": true, `+greedy+asked+"}")
		text, count := "", 0
		for line := range strings.Lines(events) {
			data, ok := strings.CutPrefix(line, "data: {")
			if !ok || !strings.Contains(data, "delta") {
				continue
			}
			place := []any{"choices", 0, "delta"}
			if path == "messages" {
				place = []any{"delta"}
			}
			if piece, _ := at(t, "{"+data, append(place, field)...).(string); piece != "" {
				text, count = text+piece, count+1
			}
		}
		if status != http.StatusOK || text != want || len(want) > 4 && count < 2 {
			t.Errorf("%s: got %q in %d events, want %q in more:\n%s", path, text, count, want, events)
		}
	}
	_, count := ask(t, url+"/v1/messages/count_tokens", `{`+asked+"}")
	if at(t, count, "input_tokens") != at(t, messages, "usage", "input_tokens") {
		t.Errorf("counted %s, want the usage of %s", count, messages)
	}
}

// TestLogProbabilities echoes a text with log-probabilities, as evaluations of likelihoods do.
func TestLogProbabilities(t *testing.T) {
	model := simulated(t)
	url := serve(t, Config{Catalog: one{model}})
	_, body := ask(t, url+"/v1/completions",
		`{"model": "sums", "prompt": ["3+4=7", [51, 43]], "echo": true, "logprobs": 2, "max_tokens": 1, "temperature": 0}`)
	logprobs := at(t, body, "choices", 0, "logprobs").(map[string]any)
	prompt := len(model.Format.Tokens.Encode("3+4=7"))
	values := logprobs["token_logprobs"].([]any)
	if len(values) != prompt+1 || values[0] != nil {
		t.Fatalf("got %v, want values for %d tokens, none for the first, and one for the reply", values, prompt)
	}
	for i, value := range values[1:] {
		top := logprobs["top_logprobs"].([]any)[i+1].(map[string]any)
		if number, ok := value.(float64); !ok || number > 0 || len(top) != 2 {
			t.Errorf("token %d has %v and %v, want a log-probability and two alternatives", i+1, value, top)
		}
	}
	if !strings.HasPrefix(at(t, body, "choices", 0, "text").(string), "3+4=7") {
		t.Errorf("the prompt is not echoed: %s", body)
	}
	_, alone := ask(t, url+"/v1/completions",
		`{"model": "sums", "prompt": "3+4=7", "echo": true, "logprobs": 0, "max_tokens": 0}`)
	if got := at(t, alone, "choices", 0, "text"); got != "3+4=7" {
		t.Errorf("without a reply: got %q", got)
	}
	_, top := ask(t, url+"/v1/chat/completions", `{"model": "sums", "logprobs": true, "top_logprobs": 3, `+greedy+
		`"messages": [{"role": "user", "content": "3+4=?"}]}`)
	if got := at(t, top, "choices", 0, "logprobs", "content", 0, "top_logprobs").([]any); len(got) != 3 {
		t.Errorf("chat: got %v, want three alternatives", got)
	}
}

// TestSeedsAndChoices checks that equal seeds have equal replies, and that choices differ.
func TestSeedsAndChoices(t *testing.T) {
	url := serve(t, Config{Catalog: one{simulated(t)}})
	const body = `{"model": "sums", "prompt": "ab", "n": 8, "seed": 5, "max_tokens": 12, "temperature": 1.5}`
	texts := func() []string {
		_, answer := ask(t, url+"/v1/completions", body)
		var all []string
		for _, choice := range at(t, answer, "choices").([]any) {
			all = append(all, choice.(map[string]any)["text"].(string))
		}
		return all
	}
	first, second := texts(), texts()
	if len(first) != 8 || strings.Join(first, "|") != strings.Join(second, "|") {
		t.Errorf("equal seeds: got %q and %q", first, second)
	}
	different := map[string]bool{}
	for _, text := range first {
		different[text] = true
	}
	if len(different) < 2 {
		t.Errorf("all choices are %q", first)
	}
	_, stream := ask(t, url+"/v1/completions", strings.Replace(body, "{", `{"stream": true, "echo": true, `, 1))
	if got := strings.Count(stream, `"finish_reason":"`); got != 8 || !strings.HasSuffix(stream, "data: [DONE]\n\n") {
		t.Errorf("the stream has %d ends, want 8:\n%s", got, stream)
	}
}

// TestResponsesContinue makes a request that names the response that it continues.
func TestResponsesContinue(t *testing.T) {
	url := serve(t, Config{Catalog: one{simulated(t)}})
	_, first := ask(t, url+"/v1/responses", `{"model": "sums", "input": "3+4=?"}`)
	id, _ := at(t, first, "id").(string)
	_, second := ask(t, url+"/v1/responses", `{"model": "sums", "input": "and?", "previous_response_id": "`+id+`"}`)
	before, _ := at(t, first, "usage", "input_tokens").(float64)
	if after, _ := at(t, second, "usage", "input_tokens").(float64); after <= before+4 {
		t.Errorf("the second prompt has %v tokens, want more than the %v of the first", after, before)
	}
	status, unknown := ask(t, url+"/v1/responses", `{"model": "sums", "input": "x", "previous_response_id": "resp_x"}`)
	if status != http.StatusBadRequest || at(t, unknown, "error", "code") != "previous_response_not_found" {
		t.Errorf("an unknown response: %d %s", status, unknown)
	}
}

// TestRefusals checks that errors are answered in the words of each dialect.
func TestRefusals(t *testing.T) {
	model := simulated(t)
	url := serve(t, Config{Catalog: one{model}, Token: "secret"})
	const body = `{"model": "sums", "max_tokens": 2, "messages": [{"role": "user", "content": "3"}]}`
	gone := model
	gone.Weights = Weights{Path: "tinker://none/sampler_weights/1"}
	deleted := serve(t, Config{Catalog: one{gone}})
	open := serve(t, Config{Catalog: one{model}})
	for name, tc := range map[string]struct {
		url, body string
		headers   []string
		status    int
		want      string
	}{
		"no token": {url: url + "/v1/chat/completions", body: body,
			status: 401, want: "invalid_api_key"},
		"a wrong token": {url: url + "/v1/messages", body: body, headers: []string{"X-Api-Key", "x"},
			status: 401, want: "authentication_error"},
		"a token in the header": {url: url + "/v1/messages", body: body, headers: []string{"X-Api-Key", "secret"},
			status: 200, want: "message"},
		"a token in the address": {url: url + "/secret/v1/chat/completions", body: body,
			status: 200, want: "choices"},
		"an unknown model": {url: open + "/v1/chat/completions", body: strings.Replace(body, "sums", "gpt", 1),
			status: 404, want: "The models are: sums."},
		"an unknown path":       {url: open + "/v1/embeddings", body: body, status: 404, want: "embeddings"},
		"weights that are gone": {url: deleted + "/v1/messages", body: body, status: 404, want: "not_found_error"},
		"no JSON":               {url: open + "/v1/messages", body: "{", status: 400, want: "invalid_request_error"},
		"a token that does not exist": {url: open + "/v1/completions",
			body: `{"model": "sums", "prompt": [99999999]}`, status: 400, want: "Prompt 0 has a token"},
		"a page of another site": {url: open + "/v1/messages", body: body, headers: []string{"Origin", "https://example.com"},
			status: 403, want: "other sites"},
		"a name of another site": {url: open + "/v1/messages", body: body, headers: []string{"Host", "example.com:80"},
			status: 403, want: "other sites"},
		"a page of this machine": {url: open + "/v1/messages", body: body,
			headers: []string{"Origin", "http://localhost:3000"},
			status:  200, want: "message"},
	} {
		status, answer := ask(t, tc.url, tc.body, tc.headers...)
		if status != tc.status || !strings.Contains(answer, tc.want) {
			t.Errorf("%s: got %d %s, want %d with %q", name, status, answer, tc.status, tc.want)
		}
	}
}

// waiting is a source that does not answer before its request ends.
type waiting struct{ asked, ended chan struct{} }

func (w waiting) Sample(ctx context.Context, _ Weights, _ tinker.SampleRequest) (tinker.SampleResult, error) {
	close(w.asked)
	<-ctx.Done()
	close(w.ended)
	return tinker.SampleResult{}, ctx.Err()
}

// TestRequestsEndWithTheirClient cancels a request, and checks that its sampling ends. A stream is kept alive until
// then.
func TestRequestsEndWithTheirClient(t *testing.T) {
	model := simulated(t)
	source := waiting{make(chan struct{}), make(chan struct{})}
	model.Sampler = source
	url := serve(t, Config{Catalog: one{model}, KeepAlive: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions",
		strings.NewReader(`{"model": "sums", "prompt": "a", "stream": true}`))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	begin := make([]byte, 5)
	if _, err := io.ReadFull(response.Body, begin); err != nil || !bytes.HasPrefix(begin, []byte(":")) {
		t.Errorf("the stream begins with %q, %v, want a comment", begin, err)
	}
	<-source.asked
	cancel()
	select {
	case <-source.ended:
	case <-time.After(10 * time.Minute):
		t.Error("sampling goes on without a client")
	}
}
