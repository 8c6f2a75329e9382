// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// chatJudge speaks OpenAI's chat completions. Its ratings of three criteria follow from the text that it is asked
// about.
type chatJudge struct {
	down  atomic.Bool
	calls atomic.Int64
}

// ServeHTTP implements http.Handler.
func (j *chatJudge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	j.calls.Add(1)
	w.Header().Set("Content-Type", "application/json")
	if j.down.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"error": {"message": "the model is being loaded"}}`)
		return
	}
	var request struct{ Messages []struct{ Content string } }
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	hash := fnv.New64a()
	for _, m := range request.Messages {
		fmt.Fprint(hash, m.Content)
	}
	var ratings []map[string]any
	for i, sum := 0, hash.Sum64(); i < 3; i++ {
		ratings = append(ratings, map[string]any{"criterion": i + 1, "rationale": "r", "rating": sum>>i&1 == 1})
	}
	text, _ := json.Marshal(map[string]any{"ratings": ratings})
	_ = json.NewEncoder(w).Encode(map[string]any{
		"choices": []any{map[string]any{"finish_reason": "stop", "message": map[string]any{"role": "assistant",
			"content": string(text)}}},
		"usage": map[string]any{"prompt_tokens": 100, "completion_tokens": 20},
	})
}

// withChatJudge sets a judge at a URL for the environments of a run.
func withChatJudge(url string) func(*contract.RunFile) {
	return func(f *contract.RunFile) {
		withJudge(f)
		for _, list := range [][]contract.Environment{f.Fixed.Environments, f.Evaluation.Environments} {
			for i := range list {
				rule := *list[i].Definition.Reward.Rubric
				rule.Judge.Tinker, rule.Judge.OpenAI, rule.Judge.Retries = nil,
					&settings.OpenAIJudge{BaseURL: url, Model: "grader"}, new(int32(0))
				list[i].Definition.Reward = &settings.Reward{RewardRule: settings.RewardRule{Rubric: &rule}}
			}
		}
	}
}

// TestChatJudgeOutage runs a judge at an OpenAI endpoint that fails from the beginning: the learner reports the
// address, the answer and the repair, and nothing is scored. Once the judge answers, the run completes with the weights
// of the undisturbed run.
func TestChatJudgeOutage(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, down bool) outcome {
		judge := &chatJudge{}
		judge.down.Store(down)
		server := httptest.NewServer(judge)
		t.Cleanup(server.Close)
		w := newFixture(t, withChatJudge(server.URL))
		rows := newCriteriaRows(t)
		w.startJudgedWorkerOf("w0", judgedWorker{builder: registry.Builder{
			Data: func(context.Context, contract.Dataset) (dataset.Dataset, error) { return rows, nil },
		}})
		a := w.startLearner(1, nil)
		if down {
			blocked := w.awaitProblem(a, problem.JudgeBlocked).Evidence
			for _, want := range []string{server.URL, "grader", "503", "the model is being loaded",
				"correct the judge's baseURL"} {
				if !strings.Contains(blocked, want) {
					t.Errorf("the run waits for %q, which lacks %q", blocked, want)
				}
			}
			judge.down.Store(false)
		}
		done := w.outcome(w.waitFor(a, contract.CauseCompleted))
		if judge.calls.Load() == 0 {
			t.Error("the judge was never asked")
		}
		done.usage.JudgePromptTokens, done.usage.JudgeSampledTokens = 0, 0 // trial requests are also counted
		return done
	}
	want := run(t, false)
	if got := run(t, true); got.adapter != want.adapter {
		t.Errorf("after the outage the adapter is %s, undisturbed %s", got.adapter, want.adapter)
	}
}

// TestEvidenceOfFailedJudgements fails every judgement of a judge on Tinker, and nothing else: the learner reports
// which request fails and how it is answered, and the run completes with the weights of the undisturbed run when the
// endpoint recovers.
func TestEvidenceOfFailedJudgements(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, fails bool) outcome {
		w := newFixture(t, withJudge)
		if fails {
			// The judge samples from a base model, whose name is not a path; the policy is a checkpoint.
			w.addFaults(fault.Rule{Op: "asample", Name: "^$", Stage: fault.Execute, Count: -1, Do: fault.Fail,
				Category: "server", Message: "out of memory"})
		}
		w.startJudgedWorker("w0", nil)
		a := w.startLearner(1, nil)
		if fails {
			const want = "POST /api/v1/retrieve_future was answered with 200: out of memory"
			if found := w.awaitProblem(a, problem.EndpointFailing); found.Evidence != want {
				t.Errorf("the learner reports %q, want %q", found.Evidence, want)
			}
			w.sim.Faults().Clear()
		}
		return w.outcome(w.waitFor(a, contract.CauseCompleted))
	}
	want := run(t, false)
	if got := run(t, true); got.adapter != want.adapter {
		t.Errorf("after the outage the adapter is %s, undisturbed %s", got.adapter, want.adapter)
	}
}
