// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// divergedVersion is a transport that refuses to sample a version, as an endpoint does if the weights are not finite.
type divergedVersion struct {
	// name is a part of the version's name.
	name string

	mu       sync.Mutex
	sessions map[string]bool
}

func (d *divergedVersion) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var request struct {
		Path    string `json:"model_path"`
		Session string `json:"sampling_session_id"`
	}
	_ = json.Unmarshal(body, &request)
	d.mu.Lock()
	refused := strings.HasSuffix(r.URL.Path, "/asample") && d.sessions[request.Session]
	d.mu.Unlock()
	if refused {
		return answer(r, http.StatusBadRequest, `{"detail":"probabilities are not finite"}`), nil
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/create_sampling_session") || !strings.Contains(request.Path,
		d.name) {
		return response, err
	}
	defer response.Body.Close()
	made, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(made))
	var created tinker.CreateSamplingSessionResponse
	_ = json.Unmarshal(made, &created)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[created.SamplingSession] = true
	return response, err
}

// answer returns the response to a request in an endpoint's place.
func answer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {tinker.ContentJSON}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// TestDivergedPolicyEndsTheRun trains a version that cannot be sampled. Workers report its groups as invalid, or wait
// as in an outage; the learner finds the cause by itself. The run ends at the state before that version, and does not
// commit the remaining steps without training.
func TestDivergedPolicyEndsTheRun(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*fixture, http.RoundTripper){
		"groups are invalid": func(w *fixture, _ http.RoundTripper) { w.startWorker("w0", invalidFrom(8)) },
		"workers wait": func(w *fixture, diverged http.RoundTripper) {
			w.startRolloutWorkerBy("w0", diverged, func(*rollout.Config) {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Steps, f.Evaluation = 6, nil })
			diverged := &divergedVersion{name: "s000002", sessions: map[string]bool{}}
			w.http = &http.Client{Transport: diverged}
			start(w, diverged)
			verdict := w.waitFor(w.startLearner(1, nil), contract.CauseDataRejected)
			if verdict.Reason != "Diverged" || verdict.Progress.Step != 2 {
				t.Errorf("the run ended at step %d with %s: %s; want step 2 and Diverged", verdict.Progress.Step, verdict.Reason,
					verdict.Message)
			}
			if rows := w.rows(); len(rows) != 2 {
				t.Errorf("there are %d rows, want 2: none of a step without training", len(rows))
			}
			if made := w.sim.Stats().Calls["create_model"]; made != 1 {
				t.Errorf("%d models were made, want 1", made)
			}
		})
	}
}

// TestInvalidGroupsOfASoundPolicy checks that a run has not diverged if its groups are invalid, but their version can
// be sampled.
func TestInvalidGroupsOfASoundPolicy(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Steps, f.Evaluation = 6, nil })
	w.startWorker("w0", invalidFrom(8))
	verdict := w.waitFor(w.startLearner(1, nil), contract.CauseDataRejected)
	if verdict.Reason != problem.Untrainable || !strings.Contains(verdict.Message, "have no valid tokens") ||
		verdict.Progress.Step != 2 {
		t.Errorf("the run ended at step %d with %q: %s; want step 2 and the fault of the groups", verdict.Progress.Step,
			verdict.Reason, verdict.Message)
	}
}

// invalidFrom returns the behavior of a worker whose groups have invalid tokens from a slot on.
func invalidFrom(first int64) behavior {
	return behavior{outcome: func(slot int64) rl.Outcome {
		if slot >= first {
			return rl.InvalidTokens
		}
		return rl.Usable
	}}
}
