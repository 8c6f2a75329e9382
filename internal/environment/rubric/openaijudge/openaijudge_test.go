// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package openaijudge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric"
)

// request is a request to the server.
type request struct {
	path, key string
	body      map[string]any
}

// serve returns the URL of a server that answers its n-th request, from 0, with the result of handle.
func serve(t *testing.T, handle func(n int, r request) (status int, header,
	body string)) (url string, requests *[]request) {
	t.Helper()
	requests = &[]request{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := request{path: r.URL.Path, key: r.Header.Get("Authorization")}
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(data, &got.body)
		}
		if err != nil {
			t.Errorf("reading a request: %v", err)
		}
		*requests = append(*requests, got)
		status, retryAfter, body := handle(len(*requests)-1, got)
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if _, err := io.WriteString(w, body); err != nil {
			t.Errorf("answering: %v", err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1", requests
}

func completion(text, finish string) string {
	content, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(
		`{"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "finish_reason": %q,
		"message": {"role": "assistant", "content": %s}}], "usage": {"prompt_tokens": 31, "completion_tokens": 7,
			"total_tokens": 38}}`, finish, content)
}

func newJudge(url string) *Judge {
	return New(Config{BaseURL: url, Model: "judge-1", Temperature: 0.7, MaxTokens: 64,
		Key: func() (string, error) { return "secret-key", nil }})
}

var asked = rubric.Request{Messages: []chat.Message{{Role: chat.RoleSystem, Content: "Grade."},
	{Role: chat.RoleUser, Content: "Yes?"}}}

func TestComplete(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "key-of-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	url, requests := serve(t, func(int, request) (int, string, string) { return 200, "", completion("Yes.", "stop") })
	text, usage, err := newJudge(url).Complete(t.Context(), asked)
	if err != nil || text != "Yes." || usage != (rubric.Usage{PromptTokens: 31, SampledTokens: 7}) {
		t.Fatalf("Complete = %q, %+v, %v", text, usage, err)
	}
	want := []request{{path: "/v1/chat/completions", key: "Bearer secret-key", body: map[string]any{
		"model": "judge-1", "temperature": 0.7, "max_tokens": 64.0, "seed": float64(seedOf(asked)),
		"messages": []any{map[string]any{"role": "system", "content": "Grade."},
			map[string]any{"role": "user", "content": "Yes?"}},
	}}}
	if diff := cmp.Diff(want, *requests, cmp.AllowUnexported(request{})); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestNoKeyIsSentWithoutOne(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "key-of-the-environment")
	url, requests := serve(t, func(int, request) (int, string, string) { return 200, "", completion("Yes.", "stop") })
	if _, _, err := New(Config{BaseURL: url, Model: "m", MaxTokens: 1}).Complete(t.Context(), asked); err != nil ||
		(*requests)[0].key != "" {
		t.Errorf("Complete: err %v, with the key %q", err, (*requests)[0].key)
	}
}

func TestNewNameOfTheLimit(t *testing.T) {
	url, requests := serve(t, func(_ int, r request) (int, string, string) {
		if _, old := r.body["max_tokens"]; old {
			return 400, "",
				`{"error": {"message": "Use 'max_completion_tokens' instead.", "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter"}}`
		}
		return 200, "", completion("Yes.", "stop")
	})
	judge := newJudge(url)
	for range 2 {
		if _, _, err := judge.Complete(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
	}
	if len(*requests) != 3 || (*requests)[2].body["max_completion_tokens"] != 64.0 {
		t.Errorf("requests are %+v, want three, the last with the new name", *requests)
	}
}

// TestSeeds checks that equal requests have the same seed, and that a request for another judgement has another seed.
func TestSeeds(t *testing.T) {
	url, requests := serve(t, func(int, request) (int, string, string) { return 200, "", completion("Yes.", "stop") })
	judge, again := newJudge(url), asked
	again.Try = 1
	for _, r := range []rubric.Request{asked, asked, again} {
		if _, _, err := judge.Complete(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	first, second, third := (*requests)[0].body["seed"], (*requests)[1].body["seed"], (*requests)[2].body["seed"]
	if first == nil || first != second || first == third {
		t.Errorf("the seeds are %v, %v and %v, want the same twice and then another", first, second, third)
	}
}

// TestRefusedSeed uses servers that refuse the parameter, which is then left out.
func TestRefusedSeed(t *testing.T) {
	for name, refusal := range map[string]struct {
		status int
		body   string
	}{
		"by its name": {400,
			`{"error": {"message": "Unsupported parameter.", "type": "invalid_request_error", "param": "seed", "code": "unsupported_parameter"}}`},
		"in the message": {422,
			`{"error": {"message": "body.seed: Extra inputs are not permitted", "type": "invalid_request_error"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			url, requests := serve(t, func(_ int, r request) (int, string, string) {
				if r.body["seed"] != nil {
					return refusal.status, "", refusal.body
				}
				return 200, "", completion("Yes.", "stop")
			})
			judge := newJudge(url)
			for range 2 {
				if _, _, err := judge.Complete(t.Context(), asked); err != nil {
					t.Fatal(err)
				}
			}
			if len(*requests) != 3 {
				t.Errorf("%d requests for two judgements, want one that is refused and two without a seed", len(*requests))
			}
		})
	}
}

// TestLongReply checks that a reply is refused if it is longer than the bound.
func TestLongReply(t *testing.T) {
	url, _ := serve(t, func(int, request) (int, string, string) {
		return 200, "", completion(strings.Repeat("a", maxReply), "stop")
	})
	_, _, err := newJudge(url).Complete(t.Context(), asked)
	if err == nil || !strings.Contains(err.Error(), "more than 16 MiB") {
		t.Errorf("Complete: %v, want an error that names the bound", err)
	}
}

func TestErrors(t *testing.T) {
	failure := func(message string) string { return `{"error": {"message": "` + message + `", "type": "t"}}` }
	cases := map[string]struct {
		status            int
		retryAfter, body  string
		final             bool
		unavailable       bool
		after             time.Duration
		names             string
		promptTokensCount int64
	}{
		"an unknown key":       {status: 401, body: failure("wrong key"), unavailable: true, names: "apiKeySecretKeyRef"},
		"a key without rights": {status: 403, body: failure("no access"), unavailable: true, names: "no access"},
		"an unknown model": {status: 404, body: failure("no such model"), unavailable: true,
			names: "baseURL or model"},
		"a prompt that is long": {status: 400, body: failure("context length exceeded"), final: true,
			names: "context length exceeded"},
		"too many requests": {status: 429, retryAfter: "7", body: failure("slow down"), after: 7 * time.Second,
			names: "slow down: wait, or raise the rate limit"},
		"a server that is down": {status: 503, body: "<html>",
			names: "repair that endpoint, or correct the judge's baseURL"},
		"no choices": {status: 200, body: `{"choices": [], "usage": {"prompt_tokens": 31}}`, names: "no choices",
			promptTokensCount: 31},
		"a judgement that is cut": {status: 200, body: completion("Yes", "length"), names: "sampling.maxTokens",
			promptTokensCount: 31},
		"no JSON": {status: 200, body: "Yes", names: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url, requests := serve(t, func(int, request) (int, string, string) { return tc.status, tc.retryAfter, tc.body })
			_, usage, err := newJudge(url).Complete(t.Context(), asked)
			if err == nil || !strings.Contains(err.Error(), tc.names) || strings.Contains(err.Error(), "secret-key") ||
				usage.PromptTokens != tc.promptTokensCount {
				t.Fatalf("Complete: err = %v with %+v, want %q", err, usage, tc.names)
			}
			var fault *environment.Fault
			if errors.As(err, &fault) != tc.final || tc.final && (!fault.Permanent || fault.Kind != environment.JudgeFault) {
				t.Errorf("Complete: err = %#v, want final %v", err, tc.final)
			}
			var unavailable *rubric.UnavailableError
			if errors.As(err, &unavailable) != tc.unavailable {
				t.Errorf("Complete: err = %#v, want unavailable %v", err, tc.unavailable)
			}
			var reply *rubric.ReplyError
			if errors.As(err, &reply) != (tc.promptTokensCount > 0) {
				t.Errorf("Complete: err = %#v, want one of the reply %v", err, tc.promptTokensCount > 0)
			}
			var retry *rubric.RetryError
			if errors.As(err, &retry) && retry.After != tc.after || tc.after > 0 && retry == nil {
				t.Errorf("Complete: err = %#v, want a retry after %v", err, tc.after)
			}
			if len(*requests) != 1 {
				t.Errorf("%d requests were sent, want 1", len(*requests))
			}
		})
	}
}

func TestUnreachableServer(t *testing.T) {
	const url = "http://127.0.0.1:1" // Nothing listens there. Another server may get the port of a closed one.
	_, _, err := newJudge(url).Complete(t.Context(), asked)
	var fault *environment.Fault
	if err == nil || errors.As(err, &fault) {
		t.Errorf("Complete: err = %v, want one that is retried", err)
	}
	judge := newJudge(url)
	judge.config.Key = func() (string, error) { return "", errors.New("no such file") }
	if _, _, err := judge.Complete(t.Context(), asked); err == nil || !strings.Contains(err.Error(), "API key") {
		t.Errorf("Complete without a key file: err = %v", err)
	}
}

// TestGradeAtAServer asks a judge that fails, then gives no ratings, and then rates.
func TestGradeAtAServer(t *testing.T) {
	url, requests := serve(t, func(n int, r request) (int, string, string) {
		switch n {
		case 0:
			return 500, "", "{}"
		case 1:
			return 200, "", completion("I cannot tell.", "stop")
		default:
			return 200, "", completion("```json\n{\"ratings\": [{\"criterion\": 1, \"rating\": \"Yes\"}, {\"criterion\": 2, "+
				"\"rating\": \"No\"}]}\n```", "stop")
		}
	})
	grader, err := rubric.New(newJudge(url), rubric.Options{Scoring: settings.ScorePassRate, MinCoverage: 1, Retries: 2,
		Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	row := dataset.Row{Prompt: "Name a fruit.", Fields: map[string]any{rubric.FieldRubrics: []any{"It is a fruit.",
		"It is red."}}}
	score, err := grader.Grade(t.Context(), row, environment.Reply{Message: chat.Message{Content: "An apple."}})
	if err != nil || score.Reward != 0.5 || score.Metrics[rubric.MetricCalls] != 3 ||
		score.Metrics[rubric.MetricSampledTokens] != 14 || len(*requests) != 3 {
		t.Errorf("Grade = %+v, %v after %d requests", score, err, len(*requests))
	}
}

// TestKeyStaysAtItsHost redirects a request to another port of the host, which net/http treats as the same host: the
// client does not follow it.
func TestKeyStaysAtItsHost(t *testing.T) {
	var received atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	judge := New(Config{BaseURL: server.URL + "/v1", Model: "m", Key: func() (string, error) { return "secret", nil }})
	_, _, err := judge.Complete(t.Context(), asked)
	if err == nil || !strings.Contains(err.Error(), "correct the judge's baseURL") || received.Load() > 0 {
		t.Errorf("Complete() = %v, and the other port receives %d requests, want none", err, received.Load())
	}
}
