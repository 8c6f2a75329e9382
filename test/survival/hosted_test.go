// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/hub/hubtest"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors/orstest"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/test/sample"
)

// TestHostedSolverJudge takes a step of the sample with rLLM's settings, which reads its data set from a hub: 64 tasks
// of 4 episodes, each of 2 solvers and a judge, are 768 trajectories. The model is the simulator's, and its replies
// are short.
func TestHostedSolverJudge(t *testing.T) {
	t.Parallel()
	const test, train, stage = 1024, 100_000, 50_000
	var rows strings.Builder
	for i := range test + train {
		fmt.Fprintf(&rows, "{\"target\": %d, \"nums\": [%d, 35, 19]}\n", 98+i, 44+i)
	}
	hub := hubtest.New(t, "Jiayi-Pan/Countdown-Tasks-3to4", map[string][]byte{"data/train.jsonl": []byte(rows.String())})
	builder := registry.Builder{Data: source.New(source.Config{Dir: t.TempDir(), Space: 1 << 24}).Open}
	s := sample.Read(t, "hosted/solver-judge.yaml")
	pins := s.PinsOf(t, builder, func(d *contract.Definition) { d.Dataset.Hub.BaseURL = hub.URL })
	wantSplits(t, pins["countdown-3to4"].Splits, map[string]int64{"test": test, "train": train, "stage2": stage,
		"stage3": stage})
	file := s.RunFile(t, pins)
	w := newFixture(t, func(f *contract.RunFile) {
		takeStep(file, tinkersim.CountdownModelName)(f)
		d := f.Fixed.Environments[0].Definition // short prompts cost less
		d.Dataset.Prompt, d.Interaction.SolverJudge.SolverPrompt, d.Interaction.SolverJudge.JudgePrompt = "$(target)",
			"$(prompt)", "$(solutions)"
	})
	w.startRolloutWorkerOf("w0", builder)
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	w.wantMetrics(map[string]float64{
		"batch/groups": 64, "env/all/total_episodes": 256, "env/all/solver/total_trajectories": 512,
		"env/all/judge/total_trajectories": 256,
	})
	// All trajectories of a role in the episodes of a task are compared with each other.
	if roles := file.Fixed.Environments[0].Definition.Roles(); len(roles) != 2 ||
		file.Fixed.Algorithm.Grouping != algorithm.GroupingTrajectory {
		t.Errorf("the roles are %v with grouping %q, want two with grouped trajectories", roles,
			file.Fixed.Algorithm.Grouping)
	}
}

// TestHostedRubrics takes a step of the sample with the settings of tinker-cookbook's recipe and rows from files of a
// volume: 32 tasks of 8 episodes, and one call of the judge for each episode. Policy and judge are models of the
// simulator.
func TestHostedRubrics(t *testing.T) {
	t.Parallel()
	const train, test = 900, 100
	root := t.TempDir()
	folder := filepath.Join(root, "claim", "rlvr-data")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"train.jsonl": train, "test.jsonl": test} {
		var rows strings.Builder
		for i := range n {
			fmt.Fprintf(&rows, `{"task_id": "%s-%d", "prompt": "What is %d + 1?", "rubrics": ["The response contains %d."]}`+
				"\n", name, i, i, i+1)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(rows.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data := source.New(source.Config{Root: root, Dir: t.TempDir(), Space: 1 << 24}).Open
	s := sample.Read(t, "hosted/rlvr.yaml")
	pins := s.Pins(t, registry.Builder{Data: data})
	wantSplits(t, pins["rlvr"].Splits, map[string]int64{"test": test, "train": train})
	file := s.RunFile(t, pins)
	if steps := file.Algorithm().Steps; steps != train/32 {
		t.Errorf("an epoch has %d steps, want %d", steps, train/32)
	}
	if tested := file.Evaluation.Environments[0].Splits[0].Tasks; tested != test {
		t.Errorf("an evaluation has %d tasks, want %d", tested, test)
	}
	judge := &file.Fixed.Environments[0].Definition.Reward.Rubric.Judge
	if judge.Tinker.Model != "Qwen/Qwen3.6-35B-A3B" || judge.Tinker.Renderer != "qwen3_5_disable_thinking" {
		t.Errorf("the judge is %+v, want the sample's", judge.Tinker)
	}
	judge.Tinker = &settings.TinkerJudge{Model: tinkersim.JudgeName}
	w := newFixture(t, takeStep(file, tinkersim.ModelName))
	w.startJudgedWorkerOf("w0", judgedWorker{builder: registry.Builder{Data: data}})
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	w.wantMetrics(map[string]float64{"batch/groups": 32, "env/all/total_episodes": 256, "env/all/num_rubrics": 1,
		"batch/judge_calls": 256})
}

// TestHostedGSM8K reads the data set of the sample with the recipe's settings from a hub, and makes its run file.
func TestHostedGSM8K(t *testing.T) {
	t.Parallel()
	const row = `{"question": "What is 2 + 3?", "answer": "It is 5.\n#### 5"}` + "\n"
	hub := hubtest.New(t, "openai/gsm8k", map[string][]byte{"main/train.jsonl": []byte(strings.Repeat(row, 96)),
		"main/test.jsonl": []byte(row)})
	s := sample.Read(t, "hosted/gsm8k.yaml")
	pins := s.PinsOf(t, registry.Builder{Data: source.New(source.Config{Dir: t.TempDir(), Space: 1 << 24}).Open},
		func(d *contract.Definition) { d.Dataset.Hub.BaseURL = hub.URL })
	wantSplits(t, pins["gsm8k"].Splits, map[string]int64{"test": 1, "train": 96})
	file := s.RunFile(t, pins)
	if a := file.Algorithm(); a.Steps != 3 || a.TasksPerStep != 32 || file.Fixed.Environments[0].GroupSize != 64 {
		t.Errorf("%d steps of %d tasks of %d episodes, want 3 of 32 of 64", a.Steps, a.TasksPerStep,
			file.Fixed.Environments[0].GroupSize)
	}
}

// TestHostedOpenReward begins the episodes of a step of the sample with the settings of openreward-cookbook's example,
// against a server that simulates the hosting service: 32 tasks of 16 sessions, each with the deployment, the key and
// the secret.
func TestHostedOpenReward(t *testing.T) {
	t.Parallel()
	const deployment, tasks = "GeneralReasoning/WhoDunIt", 64
	service := &orstest.Hosted{Keys: map[string][]string{"user-key": {deployment}},
		Deployments: map[string][]*orstest.Server{deployment: {{
			Name: "whodunit", Splits: map[string]int64{"train": tasks},
			Prompt: func(*orstest.Session) string { return "Who did it?" },
			Tools: map[string]orstest.Tool{"answer": func(*orstest.Session, json.RawMessage) (orstest.Output, error) {
				return orstest.Output{Text: "No.", Finished: true}, nil
			}},
		}}}}
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	s := sample.Read(t, "hosted/openreward.yaml")
	builder := registry.Builder{Secret: func(key ref.SecretKey) (string, error) {
		return map[string]string{"OPENREWARD_API_KEY": "user-key", "OPENAI_API_KEY": "secret"}[key.Key], nil
	}}
	pins := s.PinsOf(t, builder, func(d *contract.Definition) {
		if d.ORS.URL != "https://sessions.openreward.ai" {
			t.Errorf("sessions are at %s, want the hosted service", d.ORS.URL)
		}
		d.ORS.URL = server.URL
	})
	wantSplits(t, pins["whodunit"].Splits, map[string]int64{"train": tasks})
	file := s.RunFile(t, pins)
	use := file.Fixed.Environments[0]
	env, err := builder.Build(t.Context(), use.Definition)
	if err != nil {
		t.Fatal(err)
	}
	for task := range int64(file.Fixed.Algorithm.TasksPerStep) {
		for range use.GroupSize {
			wantEpisode(t, env, environment.Task{Split: "train", Index: task})
		}
	}
	created := 0
	for _, r := range service.Requests() {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.Path, "/create") {
			continue
		}
		created++
		if r.Header.Get("X-API-Key") != "user-key" || r.Header.Get("X-Deployment") != deployment ||
			r.Status != http.StatusOK {
			t.Fatalf("a session was created with %+v", r)
		}
		if secrets := r.Header.Get("X-Secrets"); secrets == "" {
			t.Fatalf("a session was created without its secret: %v", r.Header)
		}
	}
	if created != 32*16 || service.Places() != 0 {
		t.Errorf("%d sessions were created, want %d, and %d still take a place", created, 32*16, service.Places())
	}
}

// wantEpisode begins and ends an episode. The policy must see the task and the server's tool.
func wantEpisode(t *testing.T, env environment.Environment, task environment.Task) {
	t.Helper()
	episode, err := env.Start(t.Context(), task)
	if err != nil {
		t.Fatalf("starting task %d: %v", task.Index, err)
	}
	defer episode.Close(t.Context())
	prompts, err := episode.Prompts(t.Context())
	if err != nil || len(prompts) != 1 || len(prompts[0].Tools) != 1 || prompts[0].Tools[0].Name != "answer" {
		t.Fatalf("the prompts of task %d are %+v, %v, want one with the tool answer", task.Index, prompts, err)
	}
}

// takeStep returns a change to a run of one step with the environments and the algorithm of a sample and with a model
// of the simulator. Replies have one token.
func takeStep(file contract.RunFile, model string) func(*contract.RunFile) {
	return func(f *contract.RunFile) {
		f.Fixed.Environments, f.Fixed.Algorithm = file.Fixed.Environments, file.Fixed.Algorithm
		f.Fixed.Model.Name, f.Fixed.Algorithm.Steps = model, 1
		f.Fixed.Environments[0].Sampling.MaxTokens = 1
		f.Evaluation, f.Concurrency = nil, file.Concurrency
	}
}

// wantSplits compares the numbers of tasks of some splits.
func wantSplits(t *testing.T, got, want map[string]int64) {
	t.Helper()
	for name, tasks := range want {
		if got[name] != tasks {
			t.Errorf("split %s has %d tasks, want %d", name, got[name], tasks)
		}
	}
}

// wantMetrics compares metrics of the first step.
func (w *fixture) wantMetrics(want map[string]float64) {
	w.t.Helper()
	line := w.metrics()[0]
	for name, value := range want {
		if got, ok := line[name]; !ok || got != value {
			w.t.Errorf("%s is %v (%v), want %v", name, got, ok, value)
		}
	}
}
