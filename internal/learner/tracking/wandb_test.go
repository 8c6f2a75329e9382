// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	contracttracking "github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/trackertest"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/wandbtest"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

const runUID = "0b1c2d3e-0000-4000-8000-000000000001"

// newTestWandB returns a sink for a server, with a key.
func newTestWandB(t *testing.T, address string) *wandb {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 40)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return newWandB(
		contracttracking.WandB{BaseURL: address, Project: "arithmetic", RunName: "fast", Tags: []string{"night", "sweep"},
			KeyFile: key},
		Run{UID: runUID, Name: "run", Config: map[string]any{
			"algorithm": map[string]any{"steps": 6, "optimizer": map[string]any{"learningRate": 0.0003}},
			"model":     map[string]any{"name": "m"},
		}},
	)
}

func linesOf(first, last int64) []Line {
	var lines []Line
	for step := first; step < last; step++ {
		lines = append(lines, Line{Step: step, Time: time.Unix(1000+step, 0), Metrics: map[string]float64{
			"env/all/reward/total": float64(step) / 4, "optim/lr": 0.0003,
		}})
	}
	return lines
}

// TestWandBSendsWhatThePackageSends runs two attempts, and compares their calls with the calls of the official
// package, which testdata/wandb.txt records.
func TestWandBSendsWhatThePackageSends(t *testing.T) {
	server := wandbtest.New()
	defer server.Close()
	for _, attempt := range []struct{ first, last, newest int64 }{{0, 3, -1}, {3, 5, 2}} {
		sink := newTestWandB(t, server.URL)
		newest, err := sink.Open(t.Context())
		if err != nil || newest != attempt.newest {
			t.Fatalf("Open = step %d (%v), want %d", newest, err, attempt.newest)
		}
		for _, line := range linesOf(attempt.first, attempt.last) {
			if err := sink.Write(t.Context(), []Line{line}); err != nil {
				t.Fatal(err)
			}
		}
		if err := sink.Close(t.Context(), Completed); err != nil {
			t.Fatal(err)
		}
	}
	got, err := wandbtest.Events(server.Requests())
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/wandb.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), strings.Join(got, "\n")+"\n"); diff != "" {
		t.Errorf("requests (-package +ours):\n%s", diff)
	}
}

// TestWandBContinuesBehindALostAnswer checks that lines whose answer was lost are not sent again.
func TestWandBContinuesBehindALostAnswer(t *testing.T) {
	server := wandbtest.New()
	defer server.Close()
	sink := newTestWandB(t, server.URL)
	if _, err := sink.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.SetFault(func(string) trackertest.Fault { return trackertest.LoseAnswer })
	if err := sink.Write(t.Context(), linesOf(0, 3)); err == nil {
		t.Fatal("a lost answer is not reported as an error")
	}
	server.SetFault(nil)
	newest, err := sink.Open(t.Context())
	if err != nil || newest != 2 {
		t.Fatalf("Open = step %d (%v), want 2", newest, err)
	}
	if err := sink.Write(t.Context(), linesOf(3, 5)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{0, 1, 2, 3, 4}, stepsOf(server.History(runUID))); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	history := server.History(runUID)
	if first, last := history[0]["_runtime"], history[4]["_runtime"]; first != 0.0 || last != 4.0 {
		t.Errorf("_runtime begins at %v and ends at %v, want 0 and 4", first, last)
	}
}

func stepsOf(history []map[string]any) []float64 {
	var steps []float64
	for _, line := range history {
		steps = append(steps, line["_step"].(float64))
	}
	return steps
}

func TestWandBProblems(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	cases := map[string]struct {
		handler http.HandlerFunc
		reason  problem.Code
		message string
	}{
		"a key that is refused": {answer(401, `{"error":"x"}`), "TrackerKeyRefused", "tracking.wandb.apiKeySecretKeyRef"},
		"a project without the right": {answer(200, `{"errors":[{"message":"permission denied"}]}`), "PermissionDenied",
			"tracking.wandb"},
		"an entity that is not found": {answer(200, `{"errors":[{"message":"could not find entity: not found"}]}`),
			"ServiceNotFound", "tracking.wandb"},
		"another server":         {answer(404, "nothing"), "ServiceNotFound", "tracking.wandb.baseURL"},
		"a page":                 {answer(200, "<html>"), "ServiceNotFound", "does not answer with JSON"},
		"a redirect":             {answer(302, ""), "ServiceNotFound", "tracking.wandb.baseURL"},
		"an outage":              {answer(503, "later"), "ServiceFailing", "later"},
		"JSON of something else": {answer(200, `{"data":{}}`), "ServiceNotFound", "tracking.wandb.baseURL"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			_, err := newTestWandB(t, server.URL).Open(t.Context())
			checkProblem(t, err, tc.reason, tc.message)
		})
	}
	t.Run("a server that does not exist", func(t *testing.T) {
		_, err := newTestWandB(t, "http://127.0.0.1:1").Open(t.Context())
		checkProblem(t, err, "ServiceUnreachable", "tracking.wandb.baseURL")
	})
	t.Run("without a key", func(t *testing.T) {
		sink := newTestWandB(t, "http://127.0.0.1:1")
		sink.settings.KeyFile = filepath.Join(t.TempDir(), "missing")
		_, err := sink.Open(t.Context())
		checkProblem(t, err, "KeyMissing", "tracking.wandb.apiKeySecretKeyRef")
	})
}

func checkProblem(t *testing.T, err error, reason problem.Code, message string) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	got := problemOf("wandb", err)
	if got.Reason != reason || !strings.Contains(got.Message, message) {
		t.Errorf("the problem is %s: %s; want %s, with %q", got.Reason, got.Message, reason, message)
	}
}

func TestRetryAfter(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	_, err := newTestWandB(t, server.URL).Open(t.Context())
	var p *serviceError
	if !errors.As(err, &p) || p.retryAfter != 7*time.Second {
		t.Errorf("Open = %v, want a problem to be retried after 7 s", err)
	}
	tracker := NewTracker(Config{Pause: time.Millisecond})
	if got := tracker.pause(0, err); got != 7*time.Second {
		t.Errorf("the pause is %v", got)
	}
}
