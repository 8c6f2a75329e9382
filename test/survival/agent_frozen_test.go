// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
)

// askingTeachers changes the small run's file so that its agent also asks a frozen model for a second opinion on the
// helpers' replies. The reward depends on that opinion as well.
func askingTeachers(f *contract.RunFile) {
	researching(f)
	env := &f.Fixed.Environments[0]
	agent := env.Definition.Interaction.Agent
	agent.Python.Code = strings.NewReplacer(`def ask(base_url, messages):`, `def ask(base_url, messages, model="policy"):`,
		`"model": "policy"`, `"model": model`,
		`sum(map(ord, reply["content"])) % 7`, `sum(map(ord, reply["content"] + opinion["content"])) % 7`,
		`    return {"reward"`, `    opinion = await asyncio.to_thread(ask, base_url, task["messages"], "frozen/teacher")
    return {"reward"`).Replace(researcher)
	agent.Frozen = []environment.FrozenModel{{Name: "teacher", Model: f.Fixed.Model.Name,
		Sampling: environment.JudgeSampling{Temperature: new(1.0), MaxTokens: 12}}}
}

// teachersOf returns the models beside the policy for a worker. Their tokenizers are the simulator's.
func teachersOf() *rollout.Judges {
	return &rollout.Judges{
		Renderer: func(_ context.Context, model, _ string) (renderer.Renderer, error) { return families.ForModel(model) },
	}
}

// TestAgentsWithFrozenModelsSurvive kills processes in a run whose agents also ask a frozen model. Weights, rows,
// metrics and the policy's purchases equal an undisturbed run's. The replies of the frozen model are not stored, so
// they are requested again with the same seeds, and counted again.
func TestAgentsWithFrozenModelsSurvive(t *testing.T) {
	t.Parallel()
	undisturbed := newFixture(t, askingTeachers)
	undisturbed.startAgentWorker(undisturbed.newAgentWorker("w0"), func(int64) {})
	want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))
	if want.usage.JudgeSampledTokens == 0 || want.usage.SampledTokens == 0 {
		t.Fatalf("the usage of the undisturbed run is %+v, want samples of the policy and of the model beside it", want.usage)
	}
	for name, tc := range map[string]struct{ runner, worker, pod, learner []int64 }{
		"the worker's pod":     {pod: []int64{17, 60}},
		"the learner":          {learner: []int64{1, 2}},
		"all of them in a row": {runner: []int64{9, 50}, worker: []int64{24, 64}, pod: []int64{35}, learner: []int64{2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, askingTeachers)
			d := &agentDeaths{fixture: w, runner: tc.runner, worker: tc.worker, pod: tc.pod}
			d.next(w.newAgentWorker("w0"))
			t.Cleanup(d.stop)
			for i, step := range tc.learner {
				<-w.startLearner(int32(i+1), w.dieAt("row.written", step)).done
			}
			verdict := w.waitFor(w.startLearner(int32(len(tc.learner)+1), nil), contract.CauseCompleted)
			w.compareWeights(verdict, want)
			w.compareMetrics(want)
			if diff := cmp.Diff(undisturbed.goldenRows(), w.goldenRows()); diff != "" {
				t.Errorf("rows (-undisturbed +got):\n%s", diff)
			}
			d.expect(len(tc.runner) + len(tc.worker) + len(tc.pod))
			deaths := d.deaths.Load() + int64(len(tc.learner))
			used := w.outcome(verdict).usage
			if len(tc.learner) == 0 && (used.PromptTokens != want.usage.PromptTokens ||
				used.SampledTokens != want.usage.SampledTokens) {
				t.Errorf("the usage is %+v, want the samples of %+v", used, want.usage)
			}
			for _, judged := range []struct{ got, want int64 }{{used.JudgePromptTokens, want.usage.JudgePromptTokens},
				{used.JudgeSampledTokens, want.usage.JudgeSampledTokens}} {
				if judged.got+used.UnconfirmedTokens < judged.want || judged.got > (1+deaths)*judged.want {
					t.Errorf("the usage is %+v, want the replies of the model beside the policy of %+v, and those that were asked "+
						"again after %d deaths", used, want.usage, deaths)
				}
			}
		})
	}
}

// manage sends the heartbeats of a manager from the closing of begin to the closing of end, and counts the heartbeats
// that the learner answers.
func (w *fixture) manage(a *attempt, posted *atomic.Int64, begin, end <-chan struct{}) {
	select {
	case <-begin:
	case <-a.done:
		return
	}
	for ticker := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-end:
			return
		case <-a.done:
			return
		case <-ticker.C:
			if _, err := w.heartbeat(a, 1, contract.DesiredRun); err == nil {
				posted.Add(1)
			}
		}
	}
}

// TestAgentsSurviveTheManager stops the manager while agents play, starts another one much later, and lets both send
// heartbeats for a while. The run has an undisturbed run's result.
func TestAgentsSurviveTheManager(t *testing.T) {
	t.Parallel()
	undisturbed := newFixture(t, researching)
	undisturbed.startAgentWorker(undisturbed.newAgentWorker("w0"), func(int64) {})
	want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))
	w := newFixture(t, researching)
	died, began, both := make(chan struct{}), make(chan struct{}), make(chan struct{})
	w.startAgentWorker(w.newAgentWorker("w0"), func(n int64) {
		switch n { // Two helpers are in the middle of an episode.
		case 3:
			close(died)
		case 41:
			close(began)
		case 60:
			close(both)
		}
	})
	a := w.startLearner(1, nil)
	var posted atomic.Int64
	now := make(chan struct{})
	close(now)
	go w.manage(a, &posted, now, died)
	go w.manage(a, &posted, began, nil)
	go w.manage(a, &posted, both, nil)
	verdict := w.waitFor(a, contract.CauseCompleted)
	w.compareWeights(verdict, want)
	w.compareMetrics(want)
	if diff := cmp.Diff(undisturbed.goldenRows(), w.goldenRows()); diff != "" {
		t.Errorf("rows (-undisturbed +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.usage, w.outcome(verdict).usage); diff != "" {
		t.Errorf("the usage (-undisturbed +got):\n%s", diff)
	}
	if posted.Load() < 2 {
		t.Errorf("the learner answered %d heartbeats, want the heartbeats of several managers", posted.Load())
	}
}
