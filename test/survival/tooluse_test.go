// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/sampling"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/vocabulary"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

const qwen = "Qwen/Qwen3-8B"

// qwenTokenizer returns Qwen3's tokenizer.json: the whole file from the directory that TOKENIZERS_DIR names, or the
// part that the renderers' tests have. The part has all bytes, all added tokens and some hundred merges, with the ids
// of the whole.
func qwenTokenizer(t testing.TB) []byte {
	t.Helper()
	path := "../../internal/renderer/families/testdata/tokenizers/qwen3.json.gz"
	if dir := os.Getenv("TOKENIZERS_DIR"); dir != "" {
		path = filepath.Join(dir, "qwen3", "tokenizer.json.gz")
	}
	t.Logf("the vocabulary is from %s", path)
	zipped, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// scriptedReplies forces most replies: valid and invalid calls of the calculator, and then an answer. The other
// replies are sampled, and do not have the format, since the policy was not trained in it.
func scriptedReplies(t testing.TB, write func(string) []int32) []sampling.ForcedRule {
	t.Helper()
	end := "<|im_end|>"
	call := write("<tool_call>\n{\"name\": \"calculator\", \"arguments\": {\"operation\": \"add\", \"operands\": [1, " +
		"1]}}\n</tool_call>" + end)
	wrong := write("<tool_call>\n{\"name\": \"calculator\", \"arguments\": {\"operation\": \"add\"}}\n</tool_call>" + end)
	broken := write("<tool_call>\n{\"name\": \"calculator\"\n</tool_call>" + end)
	one, two := write("It is 1."+end), write("It is 2."+end)
	return []sampling.ForcedRule{
		{Contains: "<tool_response>", Scripts: []sampling.Script{{Share: 0.4, Tokens: one}, {Share: 0.4, Tokens: two},
			{Share: 0.1, Tokens: call}}},
		{Contains: "No tool was called", Scripts: []sampling.Script{{Share: 0.4, Tokens: call}, {Share: 0.3, Tokens: broken},
			{Share: 0.2, Tokens: one}}},
		{Contains: "calculator", Scripts: []sampling.Script{{Share: 0.4, Tokens: call}, {Share: 0.15, Tokens: wrong},
			{Share: 0.25, Tokens: broken}}},
	}
}

// newQwenFixture prepares a run that trains Qwen3 by name, on sums with a calculator.
func newQwenFixture(t testing.TB) *fixture {
	t.Helper()
	data := qwenTokenizer(t)
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := vocabulary.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := tokenizer.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	options := tinkersim.Options{SessionTimeout: time.Minute,
		Vocabularies: map[string]*vocabulary.Vocabulary{qwen: loaded}}
	w := newFixtureOn(t, options, func(f *contract.RunFile) {
		model := &f.Fixed.Model
		model.Name, model.Renderer = qwen, "qwen3"
		model.Tokenizer = &contract.Tokenizer{Repository: qwen, SHA256: hex.EncodeToString(sum[:])}
		environment := arithmetic("train", 6, 4, 64)
		environment.Definition.Dataset.Arithmetic.MaxOperand = 2
		environment.Definition.Interaction = &settings.Interaction{ToolUse: &settings.ToolUse{
			ParseErrors: settings.ParseErrors{MaxConsecutive: new(int32(2)), Train: settings.KeepParseErrors},
		}}
		environment.Limits = playing.Limits{Turns: 4, TrajectoryTokens: 2000, OnLimit: "Grade"}
		f.Fixed.Environments = []contract.Environment{environment}
		f.Fixed.Algorithm.TasksPerStep, f.Fixed.Algorithm.Steps = 2, 2
		f.Evaluation = nil
	})
	err = w.sim.ForcedSamples().Replace(scriptedReplies(t,
		func(text string) []int32 { return tokens.AppendEncode(nil, text, tokenizer.Specials) }))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// startQwenWorker starts a real rollout worker that has read the run's tokenizer from the simulator, as from a hub.
func (w *fixture) startQwenWorker(name string) {
	w.t.Helper()
	files := &fetch.Fetcher{Endpoint: w.url, Cache: w.t.TempDir()}
	speech, err := load.ForModel(w.t.Context(), files, w.file.Fixed.Model)
	if err != nil {
		w.t.Fatal(err)
	}
	w.startRolloutWorkerWith(name, func(c *rollout.Config) {
		c.Renderer = func(context.Context, contract.Model) (*load.Renderer, error) { return speech, nil }
	})
}

// environmentMetric returns a metric of all environments together, one value for each step.
func (w *fixture) environmentMetric(name string) []float64 {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.artifacts, w.file.Run.UID, "metrics.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	var values []float64
	for text := range strings.Lines(string(data)) {
		var line map[string]float64
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			w.t.Fatal(err)
		}
		if value, ok := line["env/all/"+name]; ok {
			values = append(values, value)
		}
	}
	if int64(len(values)) != w.file.Fixed.Algorithm.Steps {
		w.t.Fatalf("metrics.jsonl has %s of %d steps", name, len(values))
	}
	return values
}

func total(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum
}

// TestToolUse trains the simulator's model with the name, format and vocabulary of Qwen3, in episodes of several turns
// in which it calls a tool. A second run whose learner dies has the same outcome.
func TestToolUse(t *testing.T) {
	t.Parallel()
	w := newQwenFixture(t)
	w.startQwenWorker("w0")
	want := w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	for _, name := range []string{"tool_calls", "tool_errors", "parse_errors", "by_group/frac_mixed", "stop/stop"} {
		if total(w.environmentMetric(name)) == 0 {
			t.Errorf("%s is 0 in every step", name)
		}
	}
	if got := w.environmentMetric("turns_per_episode"); total(got) <= float64(len(got)) {
		t.Errorf("turns per episode %v, want several", got)
	}
	for step, segments := range w.environmentMetric("segments_per_episode") {
		if segments != 1 {
			t.Errorf("step %d has %v segments per episode, want 1: sampled tokens stay as they were", step, segments)
		}
	}
	for _, name := range []string{"tool_calls", "tool_errors", "parse_errors", "turns_per_episode", "correct", "no_answer",
		"truncated"} {
		t.Logf("%s %.2f", name, w.environmentMetric(name))
	}
	t.Run("the learner dies", func(t *testing.T) {
		w := newQwenFixture(t)
		w.startQwenWorker("w0")
		w.startQwenWorker("w1")
		<-w.startLearner(1, w.dieAt("save.answered", 1)).done
		w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
	})
}
