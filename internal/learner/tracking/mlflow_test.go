// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	contracttracking "github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/mlflowtest"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/trackertest"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// newTestMLflow returns a sink for a server, with a token.
func newTestMLflow(t *testing.T, address string) *mlflow {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 40)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return newMLflow(
		contracttracking.MLflow{BaseURL: address, Experiment: "arithmetic", RunName: "fast",
			Tags:    map[string]string{"night": "yes"},
			KeyFile: key},
		Run{UID: runUID, Namespace: "team", Name: "run", Config: map[string]any{
			"algorithm":    map[string]any{"steps": 6, "optimizer": map[string]any{"learningRate": 0.0003}},
			"environments": []any{map[string]any{"groupSize": 8, "name": "a"}}, "model": map[string]any{"name": "m"},
		}},
	)
}

// TestMLflowSendsWhatThePackageSends runs two attempts, and compares their calls with the calls of the official
// package, which testdata/mlflow.txt records.
func TestMLflowSendsWhatThePackageSends(t *testing.T) {
	server := mlflowtest.New()
	defer server.Close()
	for _, attempt := range []struct{ first, last, newest int64 }{{0, 3, -1}, {3, 5, 1}} {
		sink := newTestMLflow(t, server.URL)
		newest, err := sink.Open(t.Context())
		if err != nil || newest != attempt.newest {
			t.Fatalf("Open = step %d (%v), want %d", newest, err, attempt.newest)
		}
		for _, line := range linesOf(newest+1, attempt.last) {
			if err := sink.Write(t.Context(), []Line{line}); err != nil {
				t.Fatal(err)
			}
		}
		if err := sink.Close(t.Context(), Completed); err != nil {
			t.Fatal(err)
		}
	}
	got, err := mlflowtest.Events(server.Requests())
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/mlflow.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), strings.Join(got, "\n")+"\n"); diff != "" {
		t.Errorf("requests (-package +ours):\n%s", diff)
	}
}

// checkMLflow checks that the server has one run, which has each metric of the lines once and in order.
func checkMLflow(t *testing.T, server *mlflowtest.Server, lines []Line) mlflowtest.Run {
	t.Helper()
	runs := server.Runs()
	if len(runs) != 1 {
		t.Fatalf("the server has %d runs, want 1", len(runs))
	}
	type point struct {
		Step  int64
		Value float64
	}
	got, want := map[string][]point{}, map[string][]point{}
	for _, m := range runs[0].Metrics {
		got[m.Key] = append(got[m.Key], point{m.Step, m.Value})
	}
	for _, line := range lines {
		for name, value := range line.Metrics {
			want[mlflowName(name)] = append(want[mlflowName(name)], point{line.Step, value})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	return runs[0]
}

// TestMLflowContinuesBehindALostAnswer checks that nothing is missing and nothing is added twice after a request that
// failed and was executed completely, to one half, or not at all.
func TestMLflowContinuesBehindALostAnswer(t *testing.T) {
	for name, fault := range map[string]trackertest.Fault{"all": trackertest.LoseAnswer, "half": trackertest.LosePart,
		"nothing": trackertest.Refuse} {
		for lines := int64(1); lines <= 4; lines++ {
			t.Run(name, func(t *testing.T) {
				server := mlflowtest.New()
				defer server.Close()
				sink := newTestMLflow(t, server.URL)
				if _, err := sink.Open(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := sink.Write(t.Context(), linesOf(0, 2)); err != nil {
					t.Fatal(err)
				}
				server.SetFault(func(string) trackertest.Fault { return fault })
				if err := sink.Write(t.Context(), linesOf(2, 2+lines)); err == nil {
					t.Fatal("a lost answer is not reported as an error")
				}
				server.SetFault(nil)
				newest, err := sink.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := sink.Write(t.Context(), linesOf(newest+1, 8)); err != nil {
					t.Fatal(err)
				}
				checkMLflow(t, server, linesOf(0, 8))
			})
		}
	}
}

// TestMLflowFindsARunWhoseCreationWasNotAnswered loses the answers to the creation of the run and to its parameters.
func TestMLflowFindsARunWhoseCreationWasNotAnswered(t *testing.T) {
	server := mlflowtest.New()
	defer server.Close()
	lost := map[string]bool{}
	server.SetFault(func(path string) trackertest.Fault {
		if (path == "/runs/create" || path == "/runs/log-batch") && !lost[path] {
			lost[path] = true
			return trackertest.LosePart
		}
		return trackertest.None
	})
	sink := newTestMLflow(t, server.URL)
	opened := false
	for range 3 {
		_, err := sink.Open(t.Context())
		opened = err == nil
	}
	if !opened {
		t.Fatal("the run is not opened")
	}
	run := checkMLflow(t, server, nil)
	if diff := cmp.Diff(map[string]string{
		"algorithm.optimizer.learningRate": "0.0003", "algorithm.steps": "6", "environments.a.groupSize": "8",
		"environments.a.name": "a", "model.name": "m",
	}, run.Params); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
}

// TestMLflowOfChangedConfig resumes with another config. MLflow keeps the parameters that it has, and adds new ones.
func TestMLflowOfChangedConfig(t *testing.T) {
	server := mlflowtest.New()
	defer server.Close()
	for _, config := range []map[string]any{{"a": 1}, {"a": 2, "b": 3}} {
		sink := newTestMLflow(t, server.URL)
		sink.run.Config = config
		if _, err := sink.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "3"}, server.Runs()[0].Params); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
}

// TestMLflowDividesRequests sends more metrics and parameters than a request may have.
func TestMLflowDividesRequests(t *testing.T) {
	server := mlflowtest.New()
	defer server.Close()
	sink := newTestMLflow(t, server.URL)
	config := map[string]any{}
	for i := range 250 {
		config["p"+time.Duration(i).String()] = i
	}
	sink.run.Config = config
	if _, err := sink.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for first := int64(0); first < 1200; first += maxLines {
		if err := sink.Write(t.Context(), linesOf(first, min(first+maxLines, 1200))); err != nil {
			t.Fatal(err)
		}
	}
	if run := checkMLflow(t, server, linesOf(0, 1200)); len(run.Params) != 250 {
		t.Errorf("the run has %d parameters, want 250", len(run.Params))
	}
}

func TestMLflowOutcomes(t *testing.T) {
	for outcome, want := range map[Outcome]string{Completed: "FINISHED", Failed: "FAILED", Interrupted: "SCHEDULED"} {
		server := mlflowtest.New()
		defer server.Close()
		sink := newTestMLflow(t, server.URL)
		if _, err := sink.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := sink.Close(t.Context(), outcome); err != nil {
			t.Fatal(err)
		}
		if got := server.Runs()[0].Status; got != want {
			t.Errorf("the status is %s, want %s", got, want)
		}
		if _, err := sink.Open(t.Context()); err != nil || server.Runs()[0].Status != "RUNNING" {
			t.Errorf("the status of a run that continues is %s (%v)", server.Runs()[0].Status, err)
		}
	}
}

func TestMLflowAuthentication(t *testing.T) {
	cases := map[string]struct {
		change func(*contracttracking.MLflow)
		want   string
	}{
		"token": {func(*contracttracking.MLflow) {}, "Bearer " + strings.Repeat("k", 40)},
		"password": {func(s *contracttracking.MLflow) { s.Username = "me" },
			"Basic bWU6" + strings.Repeat("a2tr", 13) + "aw=="},
		"none": {func(s *contracttracking.MLflow) { s.KeyFile = "" }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := mlflowtest.New()
			defer server.Close()
			made := newTestMLflow(t, server.URL)
			tc.change(&made.settings)
			if _, err := newMLflow(made.settings, made.run).Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, r := range server.Requests() {
				if r.Authorization != tc.want {
					t.Errorf("%s has the authorization %q, want %q", r.Path, r.Authorization, tc.want)
				}
			}
		})
	}
}

func TestMLflowProblems(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	deleted := `{"experiment": {"experiment_id": "1", "lifecycle_stage": "deleted"}}`
	cases := map[string]struct {
		handler http.HandlerFunc
		reason  problem.Code
		message string
	}{
		"a token that is refused": {answer(401, "You are not authenticated."), "TrackerKeyRefused",
			"tracking.mlflow.tokenSecretKeyRef"},
		"a user without the right":       {answer(403, "Permission denied"), "PermissionDenied", "tracking.mlflow"},
		"another server":                 {answer(404, "nothing"), "ServiceNotFound", "tracking.mlflow.baseURL"},
		"a page":                         {answer(200, "<html>"), "ServiceNotFound", "does not answer with JSON"},
		"JSON of something else":         {answer(200, "{}"), "ServiceNotFound", "is not MLflow's interface"},
		"an experiment that was deleted": {answer(200, deleted), "ServiceNotFound", "restore it there, or name another one"},
		"an outage":                      {answer(503, "later"), "ServiceFailing", "later"},
		"a name that the service refuses": {answer(400, `{"error_code": "INVALID_PARAMETER_VALUE"}`), "ServiceNotFound",
			"INVALID_PARAMETER_VALUE"},
		"a redirect to a page": {answer(302, ""), "ServiceNotFound", "tracking.mlflow.baseURL"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			_, err := newTestMLflow(t, server.URL).Open(t.Context())
			checkProblem(t, err, tc.reason, tc.message)
		})
	}
	t.Run("authentication without a key", func(t *testing.T) {
		server := httptest.NewServer(answer(401, ""))
		defer server.Close()
		made := newTestMLflow(t, server.URL)
		made.settings.KeyFile = ""
		_, err := newMLflow(made.settings, made.run).Open(t.Context())
		checkProblem(t, err, "TrackerKeyRefused", "give tokenSecretKeyRef, or username and passwordSecretKeyRef")
	})
	t.Run("without a key", func(t *testing.T) {
		made := newTestMLflow(t, "http://127.0.0.1:1")
		made.settings.KeyFile, made.settings.Username = filepath.Join(t.TempDir(), "missing"), "me"
		_, err := newMLflow(made.settings, made.run).Open(t.Context())
		checkProblem(t, err, "KeyMissing", "tracking.mlflow.passwordSecretKeyRef")
	})
}

func TestMLflowNames(t *testing.T) {
	for name, want := range map[string]string{
		"test/pass@1": "test/pass_at_1", "loss:sum": "loss:sum", "env/a b/x-y.z": "env/a b/x-y.z", "ü(%)": "____",
	} {
		if got := mlflowName(name); got != want {
			t.Errorf("the name of %s is %s, want %s", name, got, want)
		}
	}
}
