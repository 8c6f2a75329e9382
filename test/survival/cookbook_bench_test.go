// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build cookbook

package survival

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/latency"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// alias is a name that tinker-cookbook knows, under which the simulator serves its model to it.
const alias = "Qwen/Qwen3-8B-Base"

// The runs that are compared train on 32 groups of 8 a step.
const (
	comparedGroups    = 32
	comparedGroupSize = 8
	comparedTokens    = 16
	comparedTaskCount = 4000
	heldOut           = 512
)

// figures is what a trainer needed for the steps between its first and its last optimizer step.
type figures struct {
	secondsPerStep, cpuPerStep float64
	memory                     float64 // MiB, of all its processes together, each at its greatest
	requestsPerStep            float64
	promptTokens               float64 // that were sent to be sampled from, a step
	passAt1                    float64 // of held-out tasks with the last weights
}

func (f figures) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(3600/f.secondsPerStep, "steps/hour")
	b.ReportMetric(f.cpuPerStep, "cpu-s/step")
	b.ReportMetric(f.memory, "MiB")
	b.ReportMetric(f.requestsPerStep, "requests/step")
	b.ReportMetric(f.promptTokens, "prompt-tokens/step")
	b.ReportMetric(f.passAt1, "pass@1")
}

// BenchmarkCookbook trains on the same tasks with rl/train.py of tinker-cookbook, in each of its modes, and with a learner and
// two workers, at simulators of their own. COOKBOOK_PYTHON is the Python of its environment. BENCH_STEPS (40) is the length.
func BenchmarkCookbook(b *testing.B) {
	python := os.Getenv("COOKBOOK_PYTHON")
	if python == "" {
		b.Fatal("COOKBOOK_PYTHON is not set: run make bench-compare")
	}
	steps := benchSize(b, "BENCH_STEPS", 40)
	for _, endpoint := range []struct {
		name    string
		profile latency.Profile
		trials  []trial
	}{
		{"fast", latency.Profile{}, []trial{{ours: true}, {mode: "sync"}, {mode: "streaming"}}},
		{"hosted", hostedTimes, []trial{
			{ours: true}, {mode: "sync"}, {mode: "streaming"},
			{ours: true, lag: 1}, {mode: "async", lag: 1}, {ours: true, lag: 4}, {mode: "async", lag: 4},
		}},
	} {
		for _, t := range endpoint.trials {
			b.Run(endpoint.name+"/"+t.String(), func(b *testing.B) {
				for b.Loop() {
					c := newComparison(b, endpoint.profile, steps, t)
					if t.ours {
						c.trainOurs(b, python).report(b)
					} else {
						c.trainCookbook(b, python).report(b)
					}
				}
			})
		}
	}
}

// trial is one way to train.
type trial struct {
	ours bool
	mode string // of the cookbook
	lag  int    // greatest, in steps
}

func (t trial) String() string {
	name := "cookbook-" + t.mode
	if t.ours {
		name = "tinker-operator"
	}
	return fmt.Sprintf("lag-%d/%s", t.lag, name)
}

// comparison is a simulator with the tasks of a run, and what its trainer sent.
type comparison struct {
	*fixture
	trial
	steps int
	front *front
}

func newComparison(b *testing.B, profile latency.Profile, steps int, t trial) *comparison {
	b.Helper()
	w := newFixtureOn(b, tinkersim.Options{SessionTimeout: time.Minute, Latency: profile, Aliases: []string{alias}}, func(f *contract.RunFile) {
		f.Fixed.Environments = []contract.Environment{arithmetic("train", comparedTaskCount, comparedGroupSize, comparedTokens)}
		f.Fixed.Model.LoraRank = 8
		f.Fixed.Algorithm.TasksPerStep, f.Fixed.Algorithm.Steps, f.Fixed.Algorithm.Lag = comparedGroups, int64(steps), t.lag
		f.Fixed.Algorithm.Optimizer.LearningRate = 3e-4
		if t.lag > 0 {
			f.Fixed.Algorithm.Loss = contract.Loss{Name: "ppo", Config: map[string]float64{"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}}
		}
		f.Concurrency, f.Evaluation = comparedGroups*comparedGroupSize*(t.lag+1), nil
	})
	c := &comparison{fixture: w, trial: t, steps: steps, front: &front{}}
	server := httptest.NewServer(c.front.before(w.sim))
	b.Cleanup(server.Close)
	w.url, w.file.Capabilities.BaseURL = server.URL, server.URL // nothing is checked, as by tinker-cookbook
	return c
}

// trainOurs trains with a learner and two workers.
func (c *comparison) trainOurs(b *testing.B, python string) figures {
	b.Helper()
	f := newProcessFixtureOf(b, c.fixture)
	workers := []*process{f.startWorkerProcess("w0"), f.startWorkerProcess("w1")}
	learner := f.startLearnerProcess(1, "")
	all := append(workers, learner)
	c.front.follow(all)
	<-learner.done
	if learner.code != contract.CauseCompleted.ExitCode() {
		b.Fatalf("the learner ended with code %d", learner.code)
	}
	for _, w := range workers {
		w.signal(syscall.SIGTERM)
		<-w.done
	}
	sampler := ""
	for checkpoint, err := range f.client.Checkpoints(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		path, err := tinker.ParsePath(checkpoint.TinkerPath)
		if err == nil && path.Kind == tinker.KindSampler && strings.Contains(path.Name, fmt.Sprintf("-s%06d", c.steps)) {
			sampler = checkpoint.TinkerPath
		}
	}
	return c.figures(b, python, all, sampler)
}

// trainCookbook trains with rl/train.py.
func (c *comparison) trainCookbook(b *testing.B, python string) figures {
	b.Helper()
	var path bytes.Buffer
	log := filepath.Join(b.TempDir(), "cookbook.log")
	stderr, err := os.Create(log)
	if err != nil {
		b.Fatal(err)
	}
	defer stderr.Close()
	config := c.config(b, filepath.Dir(log))
	p := &process{Cmd: exec.CommandContext(b.Context(), python, "../conformance/cookbook_train.py", "train", config), done: make(chan struct{})}
	p.Env, p.Stdout, p.Stderr = c.pythonEnv(), &path, stderr
	if err := p.Start(); err != nil {
		b.Fatal(err)
	}
	c.front.follow([]*process{p})
	if err := p.Wait(); err != nil {
		text, _ := os.ReadFile(log)
		b.Fatalf("%v\n%s", err, text[max(0, len(text)-4000):])
	}
	printed := strings.Fields(path.String())
	return c.figures(b, python, []*process{p}, printed[len(printed)-1])
}

func (c *comparison) pythonEnv() []string {
	return append(os.Environ(), "TINKER_API_KEY="+apiKey, "TINKER_BASE_URL="+c.url, "HF_ENDPOINT="+c.url, "HF_HOME="+filepath.Join(c.artifacts, "hub"),
		"HF_HUB_DISABLE_TELEMETRY=1", "HF_HUB_DISABLE_XET=1", "TOKENIZERS_PARALLELISM=false", "WANDB_MODE=disabled", "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1")
}

// config writes the file of cookbook_train.py: the tasks of each step, in the order in which a run takes them, and held-out ones.
func (c *comparison) config(b *testing.B, dir string) string {
	b.Helper()
	algorithm := c.file.Fixed.Algorithm
	tasks := newComparedTasks(b)
	stream, err := rl.NewStream(uint64(algorithm.Seed), []rl.Source{{Environment: "arithmetic", Split: "train", Tasks: comparedTaskCount, Shuffle: true}})
	if err != nil {
		b.Fatal(err)
	}
	batches := make([][]comparedTask, c.steps)
	for slot := range int64(c.steps * comparedGroups) {
		batches[slot/comparedGroups] = append(batches[slot/comparedGroups], tasks.row("train", stream.Task(slot).Index))
	}
	var test []comparedTask
	for i := range int64(heldOut) {
		test = append(test, tasks.row("test", i))
	}
	encoded, err := json.Marshal(map[string]any{
		"url": c.url, "model": alias, "log": filepath.Join(dir, "run"), "lora_rank": c.file.Fixed.Model.LoraRank,
		"learning_rate": algorithm.Optimizer.LearningRate, "loss": algorithm.Loss.Name, "loss_config": algorithm.Loss.Config,
		"max_tokens": comparedTokens, "group_size": comparedGroupSize, "stop": tasks.format.Stop().Tokens,
		"mode": c.mode, "lag": c.lag, "batches": batches, "held_out": test,
	})
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(dir, "config.json")
	if err := os.WriteFile(file, encoded, 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}

// comparedTask is a task as cookbook_train.py reads it.
type comparedTask struct {
	Prompt []int32 `json:"prompt"`
	Answer string  `json:"answer"`
}

// comparedTasks makes tasks of sums.
type comparedTasks struct {
	b      *testing.B
	sums   dataset.Dataset
	format renderer.Renderer
}

func newComparedTasks(b *testing.B) comparedTasks {
	b.Helper()
	sums, err := dataset.NewArithmetic(99)
	if err != nil {
		b.Fatal(err)
	}
	tokens, err := tokenizer.Parse(model.TokenizerJSON())
	if err != nil {
		b.Fatal(err)
	}
	format, err := families.New("role_colon_end", tokens, families.Options{End: "<|end|>"})
	if err != nil {
		b.Fatal(err)
	}
	return comparedTasks{b, sums, format}
}

func (t comparedTasks) row(split string, index int64) comparedTask {
	row, err := t.sums.Row(t.b.Context(), split, index)
	if err != nil {
		t.b.Fatal(err)
	}
	prompt, err := t.format.Prompt(renderer.Conversation{Messages: []chat.Message{{Role: "user", Content: row.Prompt}}})
	if err != nil {
		t.b.Fatal(err)
	}
	return comparedTask{prompt, row.Answer}
}

// figures computes the figures of a run that ended, and evaluates its last weights.
func (c *comparison) figures(b *testing.B, python string, processes []*process, sampler string) figures {
	b.Helper()
	evaluate := exec.CommandContext(b.Context(), python, "../conformance/cookbook_train.py", "evaluate", c.config(b, b.TempDir()), sampler)
	evaluate.Env, evaluate.Stderr = c.pythonEnv(), os.Stderr
	result := c.front.figures(b, c.steps)
	output, err := evaluate.Output()
	if err != nil {
		b.Fatalf("evaluating %s: %v", sampler, err)
	}
	if result.passAt1, err = strconv.ParseFloat(strings.TrimSpace(string(output)), 64); err != nil {
		b.Fatal(err)
	}
	for _, p := range processes {
		result.memory += float64(p.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
	}
	return result
}
