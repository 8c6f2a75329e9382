// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build cookbook

package survival

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/latency"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// heldOut is the number of tasks on which the last weights are evaluated.
const heldOut = 512

// BenchmarkCookbook trains on the same tasks with rl/train.py of tinker-cookbook, in each of its modes, and with a
// learner and two workers, at simulators of their own. COOKBOOK_PYTHON is the Python of its environment, and
// COOKBOOK_NEXT the folder of the next version, whose asynchronous mode differs. BENCH_STEPS (40) is the length.
func BenchmarkCookbook(b *testing.B) {
	python, next := os.Getenv("COOKBOOK_PYTHON"), os.Getenv("COOKBOOK_NEXT")
	if python == "" || next == "" {
		b.Fatal("COOKBOOK_PYTHON or COOKBOOK_NEXT is not set: run make bench-compare")
	}
	steps := benchSize(b, "BENCH_STEPS", 40)
	for _, endpoint := range []struct {
		name    string
		profile latency.Profile
		trials  []trial
	}{
		{"fast", latency.Profile{}, []trial{{ours: true}, {ours: true, shared: true}, {mode: "sync"}, {mode: "streaming"}}},
		{"hosted", hostedTimes, []trial{
			{ours: true}, {mode: "sync"}, {mode: "streaming"},
			{ours: true, lag: 1}, {mode: "async", lag: 1}, {mode: "async", next: true, lag: 1},
			{ours: true, lag: 4}, {mode: "async", lag: 4}, {mode: "async", next: true, lag: 4},
		}},
	} {
		for _, t := range endpoint.trials {
			b.Run(endpoint.name+"/"+t.String(), func(b *testing.B) {
				for b.Loop() {
					c := newComparison(b, endpoint.profile, steps, t)
					var sampler string
					if t.ours {
						c.trainOurs(b)
						sampler = c.lastSampler(b)
					} else {
						packages := ""
						if t.next {
							packages = next
						}
						sampler = c.trainCookbook(b, python, packages, t.mode)
					}
					least := steps - 1
					if t.mode == "async" {
						least = 3 // It ends when all tasks are used. The older version discards groups that have become too old.
					}
					c.front.figures(b, least, steps).report(b)
					b.ReportMetric(c.evaluate(b, python, sampler), "pass@1")
				}
			})
		}
	}
}

// lastSampler returns the path of the last weights of a run with a learner.
func (c *comparison) lastSampler(b *testing.B) (sampler string) {
	b.Helper()
	for checkpoint, err := range c.client.Checkpoints(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		path, err := tinker.ParsePath(checkpoint.TinkerPath)
		if err == nil && path.Kind == tinker.KindSampler && strings.Contains(path.Name, fmt.Sprintf("-s%06d", c.steps)) {
			sampler = checkpoint.TinkerPath
		}
	}
	return sampler
}

// trainCookbook trains with rl/train.py, and returns the path of its last weights. Packages is a folder that goes
// before the packages of the environment, or "".
func (c *comparison) trainCookbook(b *testing.B, python, packages, mode string) (sampler string) {
	b.Helper()
	var path bytes.Buffer
	log := filepath.Join(b.TempDir(), "cookbook.log")
	stderr, err := os.Create(log)
	if err != nil {
		b.Fatal(err)
	}
	defer stderr.Close()
	config := c.config(b, filepath.Dir(log), mode)
	p := &process{Cmd: exec.CommandContext(b.Context(), python, "../conformance/cookbook_train.py", "train", config),
		done: make(chan struct{})}
	p.Env, p.Stdout, p.Stderr = append(c.pythonEnv(), "PYTHONPATH="+packages), &path, stderr
	if err := p.Start(); err != nil {
		b.Fatal(err)
	}
	c.front.follow([]*process{p})
	if err := p.Wait(); err != nil {
		text, _ := os.ReadFile(log)
		b.Fatalf("%v\n%s", err, text[max(0, len(text)-4000):])
	}
	printed := strings.Fields(path.String())
	return printed[len(printed)-1]
}

func (c *comparison) pythonEnv() []string {
	return append(os.Environ(), "TINKER_API_KEY="+apiKey, "TINKER_BASE_URL="+c.url, "HF_ENDPOINT="+c.url,
		"HF_HOME="+filepath.Join(c.artifacts, "hub"),
		"HF_HUB_DISABLE_TELEMETRY=1", "HF_HUB_DISABLE_XET=1", "TOKENIZERS_PARALLELISM=false", "WANDB_MODE=disabled",
		"PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1")
}

// config writes the file of cookbook_train.py: the tasks of each step, in the order in which a run takes them, and
// held-out ones.
func (c *comparison) config(b *testing.B, dir, mode string) string {
	b.Helper()
	algorithm := c.file.Fixed.Algorithm
	loss := client.LossOf(algorithm.Loss)
	tasks := newComparedTasks(b)
	stream, err := rl.NewStream(uint64(algorithm.Seed),
		[]rl.Source{{Environment: "arithmetic", Split: "train", Tasks: comparedTaskCount, Shuffle: true}})
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
		"learning_rate": algorithm.Optimizer.LearningRate, "loss": loss.Name, "loss_config": loss.Config,
		"max_tokens": comparedTokens, "group_size": comparedGroupSize, "stop": tasks.format.Stop().Tokens,
		"mode": mode, "lag": c.lag, "batches": batches, "held_out": test,
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

// evaluate returns the share of held-out tasks that weights solve.
func (c *comparison) evaluate(b *testing.B, python, sampler string) float64 {
	b.Helper()
	command := exec.CommandContext(b.Context(), python, "../conformance/cookbook_train.py", "evaluate",
		c.config(b, b.TempDir(), "sync"), sampler)
	command.Env, command.Stderr = c.pythonEnv(), os.Stderr
	output, err := command.Output()
	if err != nil {
		b.Fatalf("evaluating %s: %v", sampler, err)
	}
	share, err := strconv.ParseFloat(strings.TrimSpace(string(output)), 64)
	if err != nil {
		b.Fatal(err)
	}
	return share
}
