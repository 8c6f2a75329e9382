// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// script is a server that records its requests and answers them by a table of paths.
type script struct {
	mu      sync.Mutex
	seen    []string
	headers []http.Header
	answers map[string]http.HandlerFunc
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	read, _ := io.ReadAll(r.Body)
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/")
	s.mu.Lock()
	s.seen = append(s.seen, path+" "+string(read))
	s.headers = append(s.headers, r.Header)
	do := s.answers[path]
	s.mu.Unlock()
	switch {
	case do != nil:
		do(w, r)
	case path == "client/config":
		_, _ = io.WriteString(w, `{"pjwt_auth_enabled":false}`)
	case path == "create_session":
		_, _ = io.WriteString(w, `{"session_id":"s1"}`)
	default:
		_, _ = fmt.Fprintf(w, `{"request_id":"future-of-%s","model_id":"m1"}`, path)
	}
}

// requests returns the requests that the server received: paths with bodies.
func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// set replaces the server's answer to a path.
func (s *script) set(path string, do http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = do
}

// serve serves a handler until the test ends.
func serve(t *testing.T, handler http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// scripted serves a broker in front of a scripted server, at which the first run has a session and a model.
func scripted(t *testing.T) (*fixture, *script) {
	t.Helper()
	s := &script{answers: map[string]http.HandlerFunc{}}
	f := newFixture(t, func(c *broker.Config) { c.BaseURL = serve(t, s) })
	for path, body := range map[string]string{"create_session": `{}`, "create_model": `{}`} {
		if got := f.callAs(first, http.MethodPost, "/api/v1/"+path, body); got.status != http.StatusOK {
			t.Fatalf("%s = %+v", path, got)
		}
	}
	s.mu.Lock()
	s.seen, s.headers = nil, nil
	s.mu.Unlock()
	return f, s
}

const step = `{"model_id":"m1","seq_id":41,"adam_params":{"learning_rate":1e-4,"new_setting":[1.50]}}`

func TestRequestsGoOnAsTheyCame(t *testing.T) {
	f, s := scripted(t)
	got := f.callAs(first, http.MethodPost, "/api/v1/optim_step?x=1", step, "X-Tinker-Request-Type", "OptimStep",
		"X-Idempotency-Key", "k", "Cookie", "c", "Authorization", "a", "X-Forwarded-For", "b", "User-Agent", "agent")
	if want := `{"request_id":"future-of-optim_step","model_id":"m1"}`; got.body != want || got.status != http.StatusOK {
		t.Errorf("answer = %+v, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"optim_step " + step}, s.requests()); diff != "" {
		t.Errorf("the server saw (-want +got):\n%s", diff)
	}
	s.mu.Lock()
	header := s.headers[0].Clone()
	s.mu.Unlock()
	header.Del("Accept-Encoding")
	header.Del("Content-Length")
	want := http.Header{"X-Api-Key": {apiKey}, "Content-Type": {"application/json"}, "User-Agent": {"agent"},
		"X-Tinker-Request-Type": {"OptimStep"}}
	if diff := cmp.Diff(want, header); diff != "" {
		t.Errorf("headers at the server (-want +got):\n%s", diff)
	}
}

func TestTheBrokerRepeatsNothing(t *testing.T) {
	f, s := scripted(t)
	s.set("optim_step", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	got := f.callAs(first, http.MethodPost, "/api/v1/optim_step", step, "X-Idempotency-Key", "k")
	checkRefusal(t, got, http.StatusBadGateway, problem.EndpointUnreachable, true)
	if seen := s.requests(); len(seen) != 1 {
		t.Errorf("the server saw %d requests, want 1: %v", len(seen), seen)
	}
}

// checkRefusal checks an answer that the broker itself gave.
func checkRefusal(t *testing.T, got answer, status int, code problem.Code, forwarded bool) {
	t.Helper()
	var body struct {
		Detail    string
		Code      problem.Code
		Forwarded bool
	}
	if err := json.Unmarshal([]byte(got.body), &body); err != nil || body.Detail == "" {
		t.Errorf("the answer %+v has no message: %v", got, err)
	}
	if got.status != status || body.Code != code || body.Forwarded != forwarded ||
		got.header.Get(tinker.HeaderBrokerForwarded) != fmt.Sprint(forwarded) {
		t.Errorf("answer = %+v, want %d %s, forwarded: %t", got, status, code, forwarded)
	}
}

func TestAnEndpointThatCannotBeReachedWasNotGivenTheRequest(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	f := newFixture(t, nil)
	mine := f.make(first)
	f.broker.Close()
	closed.Close()
	connected := f.config.HTTP
	f.config.HTTP = &http.Client{Transport: switchTo(closed.URL)}
	f.open()
	f.config.HTTP = connected
	got := f.callAs(first, http.MethodPost, "/api/v1/session_heartbeat", fmt.Sprintf(`{"session_id":%q}`, mine.session))
	checkRefusal(t, got, http.StatusBadGateway, problem.EndpointUnreachable, false)
}

// switchTo returns a transport that sends all but the configuration and its JWT to another server.
func switchTo(url string) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Path, "client/config") && !strings.HasSuffix(r.URL.Path, "auth/token") {
			r = r.Clone(r.Context())
			r.URL.Scheme, r.URL.Host, _ = strings.Cut(url, "://")
		}
		return http.DefaultTransport.RoundTrip(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestARefusedKeyIsNotTheRuns(t *testing.T) {
	f, s := scripted(t)
	s.set("optim_step", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"detail":"key %s has expired"}`, apiKey)
	})
	got := f.callAs(first, http.MethodPost, "/api/v1/optim_step", step)
	checkRefusal(t, got, http.StatusServiceUnavailable, problem.EndpointKeyRefused, false)
	if strings.Contains(got.body, apiKey) || !strings.Contains(got.body, "has expired") {
		t.Errorf("answer = %s, want the server's message without the key", got.body)
	}
	if message := f.broker.KeyRefused(); !strings.Contains(message, "has expired") || strings.Contains(message, apiKey) {
		t.Errorf("KeyRefused = %q, want the server's message without the key", message)
	}
	s.set("optim_step", nil)
	f.callAs(first, http.MethodPost, "/api/v1/optim_step", step)
	if message := f.broker.KeyRefused(); message != "" {
		t.Errorf("KeyRefused = %q after the key was accepted, want nothing", message)
	}
}

func TestErrorsOfTheServerPassWithoutTheKey(t *testing.T) {
	f, s := scripted(t)
	s.set("optim_step", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = fmt.Fprintf(w, `{"detail":"slow down, %s"}`, apiKey)
	})
	got := f.callAs(first, http.MethodPost, "/api/v1/optim_step", step)
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "7" ||
		got.header.Get("Set-Cookie") != "" || got.body != `{"detail":"slow down, [redacted]"}` {
		t.Errorf("answer = %+v, want the server's 429 without key and cookie", got)
	}
}

func TestAReplyDoesNotPassBeforeItsOwnerIsRecorded(t *testing.T) {
	f, s := scripted(t)
	f.broker.Close() // from here on no record becomes durable
	got := f.callAs(first, http.MethodPost, "/api/v1/optim_step", step)
	checkRefusal(t, got, http.StatusServiceUnavailable, problem.RecordsBlocked, true)
	f.open()
	// The client repeats the step with its number, and the server answers with the same future.
	if got := f.callAs(first, http.MethodPost, "/api/v1/optim_step", step); got.status != http.StatusOK {
		t.Errorf("the repeat = %+v, want the future", got)
	}
	want := []string{"optim_step " + step, "client/config", "optim_step " + step}
	if diff := cmp.Diff(want, trimConfig(s.requests())); diff != "" {
		t.Errorf("the server saw (-want +got):\n%s", diff)
	}
}

func trimConfig(seen []string) []string {
	for i, request := range seen {
		if strings.HasPrefix(request, "client/config") {
			seen[i] = "client/config"
		}
	}
	return seen
}

func TestRepliesOfAnotherFormDoNotPass(t *testing.T) {
	f, s := scripted(t)
	for name, body := range map[string]string{"no future": `{}`, "a page": `<html>`, "too much": `"` +
		strings.Repeat("a", 5<<20) + `"`} {
		s.set("optim_step", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		got := f.callAs(first, http.MethodPost, "/api/v1/optim_step", step)
		t.Log(name)
		checkRefusal(t, got, http.StatusBadGateway, problem.EndpointFailing, true)
	}
}

func TestAResultThatBreaksOffIsNoResult(t *testing.T) {
	f, s := scripted(t)
	f.callAs(first, http.MethodPost, "/api/v1/optim_step", step)
	s.set("retrieve_future", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", tinker.ContentProtobuf)
		_, _ = io.WriteString(w, "part")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/api/v1/retrieve_future",
		strings.NewReader(`{"request_id":"future-of-optim_step"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(tinker.HeaderAPIKey, contract.RunToken(tokenKey, first.UID))
	resp, err := http.DefaultClient.Do(r)
	if err == nil {
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
	}
	if err == nil {
		t.Error("part of a result is passed as all of it, want an error of the connection")
	}
}

func TestDrainingAnswersLongPollsAndTakesNothingNew(t *testing.T) {
	f, s := scripted(t)
	f.callAs(first, http.MethodPost, "/api/v1/optim_step", step)
	polled := make(chan struct{})
	s.set("retrieve_future", func(_ http.ResponseWriter, r *http.Request) {
		close(polled)
		<-r.Context().Done()
	})
	const poll = `{"request_id":"future-of-optim_step"}`
	answers := make(chan answer)
	go func() { answers <- f.callAs(first, http.MethodPost, "/api/v1/retrieve_future", poll) }()
	<-polled
	f.broker.Drain()
	for name, got := range map[string]answer{
		"in progress": <-answers, "later": f.callAs(first, http.MethodPost, "/api/v1/retrieve_future", poll),
	} {
		var again tinker.TryAgain
		if err := json.Unmarshal([]byte(got.body), &again); err != nil || got.status != http.StatusOK ||
			again.Type != tinker.TypeTryAgain || again.RequestID != "future-of-optim_step" {
			t.Errorf("the poll %s gets %+v (%v), want try_again", name, got, err)
		}
	}
	got := f.callAs(first, http.MethodPost, "/api/v1/optim_step", step)
	checkRefusal(t, got, http.StatusServiceUnavailable, problem.BrokerDraining, false)
}

func TestExpiredTokensOfTheServerAreRenewed(t *testing.T) {
	f := newFixture(t, nil)
	mine := f.make(first)
	inner := http.DefaultTransport
	rejected := 0
	f.broker.Close()
	f.config.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "get_info") && rejected == 0 {
			rejected++
			return &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{}, Request: r,
				Body: io.NopCloser(strings.NewReader("{}"))}, nil
		}
		return inner.RoundTrip(r)
	})}
	f.open()
	got := f.callAs(first, http.MethodPost, "/api/v1/get_info", fmt.Sprintf(`{"model_id":%q}`, mine.model))
	if got.status != http.StatusOK || rejected != 1 {
		t.Errorf("answer = %+v after %d rejected tokens, want the model after one", got, rejected)
	}
}

func TestTrainingThroughTheBrokerIsTrainingWithoutIt(t *testing.T) {
	train := func(url, key string) []float32 {
		t.Helper()
		ctx := t.Context()
		c, err := client.New(client.Config{BaseURL: url, APIKey: key})
		if err != nil {
			t.Fatal(err)
		}
		return trainOnce(ctx, t, c)
	}
	f := newFixture(t, nil)
	want := train(f.config.BaseURL, apiKey)
	if got := train(f.url, contract.RunToken(tokenKey, first.UID)); !cmp.Equal(got, want) || len(got) == 0 {
		t.Errorf("log-probabilities through the broker = %v, want %v", got, want)
	}
}

// trainOnce makes a step, and returns the log-probabilities of a text at the trained weights.
func trainOnce(ctx context.Context, t *testing.T, c *client.Client) []float32 {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	session, err := c.CreateSession(ctx, client.SessionRequest{})
	must(err)
	lora := tinker.LoraConfig{Rank: 4, Seed: new(int64(3)), TrainAttn: true, TrainMLP: true, TrainUnembed: true}
	m, err := c.CreateModel(ctx, tinker.CreateModelRequest{Session: session, BaseModel: tinkersim.ModelName, Lora: lora})
	must(err)
	pass, err := m.ForwardBackward(ctx, []tinker.Datum{{ModelInput: tinker.Text([]int32{1, 2, 3}),
		LossFnInputs: map[string]tinker.Tensor{tinker.InputTargetTokens: tinker.Ints([]int64{2, 3, 4}),
			tinker.InputWeights: tinker.Floats([]float32{1, 1, 1})}}}, tinker.Loss{Name: tinker.LossCrossEntropy})
	must(err)
	_, err = pass.Wait(ctx)
	must(err)
	step, err := m.OptimStep(ctx, tinker.DefaultAdam())
	must(err)
	_, err = step.Wait(ctx)
	must(err)
	saved, err := m.SaveSampler(ctx, client.SaveRequest{Name: "w"})
	must(err)
	weights, err := saved.Wait(ctx)
	must(err)
	sampler, err := c.CreateSamplingSession(ctx, session, 0, weights.Path, "")
	must(err)
	logprobs, err := c.ComputeLogprobs(ctx, sampler, 1, []int32{1, 2, 3, 4})
	must(err)
	return logprobs[1:]
}
