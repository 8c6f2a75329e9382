// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// serve starts a learner's side over TLS and gives a client that trusts it, and its address.
func serve(t *testing.T, observe func(HeartbeatRequest) HeartbeatReply) (HeartbeatClient, string) {
	t.Helper()
	server := httptest.NewTLSServer(HeartbeatHandler("uid", func(token string) bool { return token == "token" }, observe))
	t.Cleanup(server.Close)
	return HeartbeatClient{HTTP: server.Client(), Token: "token"}, strings.TrimPrefix(server.URL, "https://")
}

func TestHeartbeat(t *testing.T) {
	var received HeartbeatRequest
	client, address := serve(t, func(r HeartbeatRequest) HeartbeatReply {
		received = r
		return HeartbeatReply{RunUID: "uid", Attempt: 2, Sequence: 7, Progress: Progress{
			Phase: PhaseTraining, Step: 3, Metrics: map[string]float64{"a": 1, "b": math.NaN(), "c": math.Inf(-1)},
		}}
	})
	sent := HeartbeatRequest{RunUID: "uid", Attempt: 3, Desired: DesiredDrain}
	got, err := client.Post(t.Context(), address, sent)
	if err != nil {
		t.Fatalf("Post: %v", err)
	}
	if diff := cmp.Diff(sent, received); diff != "" {
		t.Errorf("the request changed on its way (-sent +received):\n%s", diff)
	}
	want := HeartbeatReply{RunUID: "uid", Attempt: 2, Sequence: 7, Progress: Progress{
		Phase: PhaseTraining, Step: 3, Metrics: map[string]float64{"a": 1}, Diverged: true,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
}

func TestHandlerRefuses(t *testing.T) {
	client, address := serve(t, func(HeartbeatRequest) HeartbeatReply {
		t.Error("a request that is refused reached the learner")
		return HeartbeatReply{}
	})
	cases := map[string]struct {
		token string
		run   string
		want  int
	}{
		"no token of the run": {"other", "uid", http.StatusUnauthorized},
		"no token at all":     {"", "uid", http.StatusUnauthorized},
		"another run":         {"token", "other", http.StatusMisdirectedRequest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := HeartbeatClient{HTTP: client.HTTP, Token: tc.token}.Post(t.Context(), address, HeartbeatRequest{RunUID: tc.run})
			var status *StatusError
			if !errors.As(err, &status) || status.Status != tc.want {
				t.Errorf("Post = %v, want status %d", err, tc.want)
			}
		})
	}
	response, err := client.HTTP.Get("https://" + address + HeartbeatPath)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET = %d, want %d", response.StatusCode, http.StatusMethodNotAllowed)
	}
	request, _ := http.NewRequest(http.MethodPost, "https://"+address+HeartbeatPath, strings.NewReader("no json"))
	request.Header.Set("Authorization", "Bearer token")
	response, err = client.HTTP.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("POST of nonsense = %d, want %d", response.StatusCode, http.StatusBadRequest)
	}
}

func TestPostOfNoReply(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer server.Close()
	client := HeartbeatClient{HTTP: server.Client()}
	if _, err := client.Post(t.Context(), strings.TrimPrefix(server.URL, "https://"), HeartbeatRequest{}); err == nil {
		t.Error("something that is no reply was taken")
	}
	if _, err := client.Post(t.Context(), "127.0.0.1:1", HeartbeatRequest{}); err == nil {
		t.Error("nobody answered, and there is no error")
	}
}

func TestVerdictFits(t *testing.T) {
	path := "tinker://" + strings.Repeat("m", 60) + "/weights/" + strings.Repeat("n", 80)
	progress := Progress{Step: 60, Metrics: map[string]float64{}, Best: &Checkpoint{State: path, Value: new(math.Inf(1))}}
	for range 16 {
		progress.Checkpoints = append(progress.Checkpoints, Checkpoint{Step: 60, State: path, Sampler: path, Lineage: strings.Repeat("a", 64)})
	}
	for i := range 60 {
		progress.Metrics["a/metric/with/a/long/name/"+strings.Repeat("x", i)] = float64(i)
	}
	for range 32 {
		progress.Environments = append(progress.Environments, EnvironmentMetrics{Name: strings.Repeat("e", 63), Reward: new(0.5)})
	}
	for i := range 16 {
		last := &progress.Environments[i%4]
		last.Evaluation = append(last.Evaluation, Estimate{Name: fmt.Sprintf("pass@%d", i), Value: 0.5, Low: new(0.25), High: new(math.NaN())}, Estimate{Name: "reward/total"})
	}
	progress.Capabilities = &Capabilities{BaseURL: "http://tinkersim", Model: "m"}
	for i := range 64 {
		progress.Capabilities.Supported = append(progress.Capabilities.Supported, fmt.Sprintf("%064d", i))
	}
	sent := Verdict{Cause: CauseCrashed, Reason: "R", Message: strings.Repeat("é", 3000), Attempt: 4, Progress: progress}
	data, err := EncodeVerdict(sent)
	if err != nil {
		t.Fatalf("EncodeVerdict: %v", err)
	}
	if len(data) > MaxVerdictBytes {
		t.Errorf("verdict has %d bytes, at most %d fit", len(data), MaxVerdictBytes)
	}
	got, err := DecodeVerdict(string(data))
	if err != nil {
		t.Fatalf("DecodeVerdict: %v", err)
	}
	if got.Cause != CauseCrashed || got.Attempt != 4 || got.Progress.Step != 60 || len(got.Progress.Checkpoints) == 0 || got.Progress.Checkpoints[0].State != path {
		t.Errorf("the verdict lost what matters: %+v", got)
	}
}

func TestVerdictRoundTrip(t *testing.T) {
	want := Verdict{Cause: CauseCompleted, Reason: "R", Message: "m", Attempt: 1, Progress: Progress{
		Phase: PhaseDone, Step: 60, Checkpoints: []Checkpoint{{Step: 60, State: "s", Value: new(0.5)}}, Environments: []EnvironmentMetrics{{
			Name: "e", PassAt1: new(0.25), Evaluation: []Estimate{{Name: "pass@1", Value: 0.25, Low: new(0.125), High: new(0.5)}, {Name: "solver_acc", Value: 1}},
		}},
		Capabilities: &Capabilities{BaseURL: "u", Model: "m", Ignored: []string{CapabilitySeed}}, ColdOptimizer: true,
	}}
	data, err := EncodeVerdict(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeVerdict(string(data))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the verdict changed on its way (-written +read):\n%s", diff)
	}
}

func TestWhatIsNoVerdict(t *testing.T) {
	for _, text := range []string{"", "panic: oh", "{}", `{"cause": "Completed"}`, `{"attempt": 1}`, `{"cause": "Completed", "attempt": 1`} {
		if v, err := DecodeVerdict(text); err == nil {
			t.Errorf("%q was taken for %+v", text, v)
		}
	}
}

func TestExitCodes(t *testing.T) {
	want := map[Cause]int{
		CauseCompleted: 0, CauseConfigRejected: 64, CauseDataRejected: 65, CauseDrained: 75, CauseUpstream: 75, CauseFenced: 77, CauseCrashed: 1, CauseUnknown: 1,
	}
	for cause, code := range want {
		if got := cause.ExitCode(); got != code {
			t.Errorf("%s exits with %d, want %d", cause, got, code)
		}
	}
}

func FuzzDecodeVerdict(f *testing.F) {
	f.Add(`{"cause":"Completed","attempt":1,"progress":{"step":3}}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := DecodeVerdict(text)
		if err != nil {
			return
		}
		if _, err := EncodeVerdict(v); err != nil && len(text) < 1000 {
			t.Errorf("a short verdict that was read cannot be written: %v", err)
		}
	})
}

// FuzzHandler posts anything to a learner: it is answered or refused, and what is answered can be read.
func FuzzHandler(f *testing.F) {
	f.Add(`{"runUID":"uid","attempt":2,"desired":"Drain"}`, 0.5)
	f.Add(`{"runUID":"uid","attempt":2147483648}`, math.NaN())
	f.Fuzz(func(t *testing.T, body string, metric float64) {
		handler := HeartbeatHandler("uid", func(string) bool { return true }, func(r HeartbeatRequest) HeartbeatReply {
			return HeartbeatReply{RunUID: r.RunUID, Attempt: r.Attempt, Progress: Progress{Metrics: map[string]float64{"m": metric}}}
		})
		request := httptest.NewRequest(http.MethodPost, HeartbeatPath, strings.NewReader(body))
		request.Header.Set("Authorization", "Bearer token")
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if recorder.Code >= http.StatusInternalServerError {
			t.Fatalf("%q is answered %d", body, recorder.Code)
		}
		var reply HeartbeatReply
		if recorder.Code == http.StatusOK && json.Unmarshal(recorder.Body.Bytes(), &reply) != nil {
			t.Errorf("%q is answered with %q", body, recorder.Body)
		}
	})
}
