// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package supervised

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/shuffle"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
	"github.com/tinker-operator/tinker-operator/test/archive"
)

const (
	byteModel = "tinkersim/byte-136k"
	qwenModel = "Qwen/Qwen3-8B"
)

// training is the configuration of a training, which is the same on both sides.
type training struct {
	URL          string  `json:"url"`
	Model        string  `json:"model"`
	Renderer     string  `json:"renderer"`
	Log          string  `json:"log"`
	File         string  `json:"file"`
	TrainOn      string  `json:"train_on"`
	Reduction    string  `json:"reduction"`
	Schedule     string  `json:"schedule"`
	LearningRate float64 `json:"learning_rate"`
	Rank         int     `json:"rank"`
	Steps        int     `json:"steps"`
	Epochs       int     `json:"epochs"`
	BatchSize    int     `json:"batch_size"`
	MaxLength    int     `json:"max_length"`
}

// result is the result of a training.
type result struct {
	State string `json:"state"`
	// CPU is the client's, in seconds a step, from the end of the first step to the end of the last.
	CPU     float64 `json:"cpu"`
	Metrics []struct {
		NLL  float64 `json:"train_mean_nll"`
		Rate float64 `json:"learning_rate"`
	} `json:"metrics"`
}

// This module's names for the cookbook's names.
var (
	trainOn = map[string]supervised.TrainOn{
		"last_assistant_message": supervised.LastAssistant, "all_assistant_messages": supervised.AllAssistant,
		"all_messages": supervised.All,
	}
	normalization = map[string]supervised.Normalization{
		"default": supervised.PerExample, "mean": supervised.PerExample, "none": supervised.PerToken,
	}
	schedule = map[string]algorithm.Schedule{
		"linear": algorithm.ScheduleLinear, "cosine": algorithm.ScheduleCosine, "constant": algorithm.ScheduleConstant,
	}
)

// TestWeightsAreThoseOfTheCookbook trains 20 steps with the cookbook's supervised/train.py and with this module's rows,
// batches and client, and compares the weights, and the negative log-likelihood of each step. The simulator computes
// exactly, so the weights have to be equal.
func TestWeightsAreThoseOfTheCookbook(t *testing.T) {
	vocabulary := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(vocabulary, unzip(t, filepath.Join(tokenizers, "qwen3.json.gz")), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serve(t, qwenModel+"="+vocabulary)
	file := writeRows(t, 400)
	installed := versions(t)
	base := training{
		URL: url, File: file, LearningRate: 1e-3, Rank: 8, Steps: 20, Epochs: 2, BatchSize: 32, MaxLength: 96,
		Reduction: "default",
	}
	for name, edit := range map[string]func(*training){
		"all replies, by the default of the cookbook": func(c *training) {
			c.Model, c.Renderer, c.TrainOn, c.Schedule = qwenModel, "qwen3", "all_assistant_messages", "linear"
		},
		"last reply, cut, each example": func(c *training) {
			c.Model, c.Renderer, c.TrainOn, c.Schedule = byteModel, "role_colon", "last_assistant_message", "cosine"
			c.Reduction, c.MaxLength = "mean", 200
		},
		"all messages, cut, each token": func(c *training) {
			c.Model, c.Renderer, c.TrainOn, c.Schedule = qwenModel, "qwen3_disable_thinking", "all_messages", "constant"
			c.Reduction, c.MaxLength, c.LearningRate = "none", 24, 1e-4
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := base
			edit(&config)
			got := config.train(t, vocabulary)
			for _, c := range installed {
				if c.path != "" && config.Model == qwenModel {
					continue // For minutes, this version would copy the tokenizer for each row and print ids without a token.
				}
				config.Log = filepath.Join(t.TempDir(), "run")
				var want result
				out := bytes.TrimSpace(c.run(t, url, "loops.py", "supervised", write(t, config)))
				if err := json.Unmarshal(out[bytes.LastIndexByte(out, '\n')+1:], &want); err != nil {
					t.Fatal(err)
				}
				compareResults(t, c.name, url, got, want)
				t.Logf("client CPU of a step of %d examples: %.1f ms, of tinker-cookbook %s: %.1f ms; ratio %.3f (goal 0.2)",
					config.BatchSize, 1e3*got.CPU, c.name, 1e3*want.CPU, got.CPU/want.CPU)
			}
		})
	}
}

func compareResults(t *testing.T, version, url string, got, want result) {
	t.Helper()
	if len(got.Metrics) != len(want.Metrics) {
		t.Fatalf("%d steps, and %d of the cookbook", len(got.Metrics), len(want.Metrics))
	}
	for i := range got.Metrics {
		if g, w := got.Metrics[i], want.Metrics[i]; math.Abs(g.NLL-w.NLL) > 1e-5*w.NLL || math.Abs(g.Rate-w.Rate) > 1e-12 {
			t.Errorf("step %d: nll %v at rate %v, want %v at %v of the cookbook %s", i, g.NLL, g.Rate, w.NLL, w.Rate, version)
		}
	}
	gotFiles, wantFiles := unpack(t, url, got.State), unpack(t, url, want.State)
	if len(wantFiles) == 0 || len(gotFiles) != len(wantFiles) {
		t.Errorf("the state has %d files, want %d", len(gotFiles), len(wantFiles))
	}
	for name, data := range wantFiles {
		if !bytes.Equal(gotFiles[name], data) {
			t.Errorf("%s of the weights differs from tinker-cookbook %s", name, version)
		}
	}
}

// unpack returns the files of a state's archive.
func unpack(t *testing.T, url, state string) map[string][]byte {
	t.Helper()
	body := archive.Open(t, url, key, state)
	defer body.Close()
	files := map[string][]byte{}
	for reader := tar.NewReader(body); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

// writeRows writes conversations of one to three turns, with and without a system prompt, with empty replies and other
// alphabets.
func writeRows(t *testing.T, n int) (file string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	questions := []string{
		"What is %d plus %d?", "Wieviel ist %d und %d? Schön rechnen!", "%d 加 %d 等于多少？", "Add %d to %d 🙂",
	}
	var out bytes.Buffer
	for i := range n {
		var messages []message
		if i%3 == 0 {
			messages = append(messages, message{"system", "Answer with a number — nothing else."})
		}
		for range 1 + i%3 {
			a, b := random.IntN(100), random.IntN(100)
			answer := strconv.Itoa(a + b)
			if i%17 == 0 {
				answer = ""
			}
			question := fmt.Sprintf(questions[random.IntN(len(questions))], a, b)
			messages = append(messages, message{"user", question}, message{"assistant", answer})
		}
		line, err := json.Marshal(map[string]any{"messages": messages})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	file = filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// train trains with the packages of this module.
func (c training) train(t *testing.T, vocabulary string) result {
	t.Helper()
	ctx := t.Context()
	api, err := client.New(client.Config{BaseURL: c.URL, APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	data := c.open(t, vocabulary)
	session, err := api.CreateSession(ctx, client.SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	lora := tinker.DefaultLora()
	lora.Rank = c.Rank
	model, err := api.CreateModel(ctx, tinker.CreateModelRequest{Session: session, BaseModel: c.Model, Lora: lora})
	if err != nil {
		t.Fatal(err)
	}
	var out result
	var cursor int64
	load := data.load()
	var ahead func()
	var ends []time.Duration
	for step := range c.Steps {
		batch, err := data.batches.Next(ctx, cursor, load)
		if err != nil || len(batch.Tombstones) > 0 {
			t.Fatalf("Next(%d): %v, %v", cursor, batch.Tombstones, err)
		}
		cursor = batch.Next
		rate := c.rate(step, data.batchesOfRun())
		finish := submit(ctx, t, model, batch, rate)
		if ahead != nil {
			ahead()
		}
		ahead = func() {
			out.Metrics = append(out.Metrics, struct {
				NLL  float64 `json:"train_mean_nll"`
				Rate float64 `json:"learning_rate"`
			}{finish(), rate})
			ends = append(ends, cpu(t))
		}
	}
	ahead()
	save, err := model.SaveState(ctx, client.SaveRequest{Name: "final"})
	if err != nil {
		t.Fatal(err)
	}
	saved, err := save.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out.State, out.CPU = saved.Path, (ends[len(ends)-1]-ends[0]).Seconds()/float64(len(ends)-1)
	return out
}

// rate is the learning rate of a step.
func (c training) rate(step, batches int) float64 {
	optimizer := algorithm.Optimizer{LearningRate: c.LearningRate, Schedule: schedule[c.Schedule]}
	return rl.LearningRate(optimizer, int64(step), int64(min(c.Steps, batches)))
}

// submit sends a step, and returns a function that waits for it and returns its negative log-likelihood.
func submit(ctx context.Context, t *testing.T, model *client.Model, batch supervised.Batch,
	rate float64) func() float64 {
	t.Helper()
	pass, err := model.ForwardBackward(ctx, encode(batch.Datums), tinker.Loss{Name: tinker.LossCrossEntropy})
	if err != nil {
		t.Fatal(err)
	}
	update, err := model.OptimStep(ctx, tinker.AdamParams{LearningRate: rate, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8})
	if err != nil {
		t.Fatal(err)
	}
	return func() float64 {
		found, err := pass.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := update.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		var logprobs [][]float32
		for _, output := range found.LossFnOutputs {
			tensor, err := output["logprobs"].Dense()
			if err != nil {
				t.Fatal(err)
			}
			logprobs = append(logprobs, tensor.Float)
		}
		nll, err := supervised.MeanNLL(batch.Datums, logprobs)
		if err != nil {
			t.Fatal(err)
		}
		return nll
	}
}

func encode(datums []supervised.Datum) []tinker.Datum {
	encoded := make([]tinker.Datum, len(datums))
	for i, d := range datums {
		targets := make([]int64, len(d.Targets))
		for j, token := range d.Targets {
			targets[j] = int64(token)
		}
		encoded[i] = tinker.Datum{
			ModelInput: tinker.Text(d.Tokens),
			LossFnInputs: map[string]tinker.Tensor{
				tinker.InputTargetTokens: tinker.Ints(targets), tinker.InputWeights: tinker.Floats(d.Weights),
			},
		}
	}
	return encoded
}

// rows are the rows of a training in the cookbook's order.
type rows struct {
	lines   [][]byte
	builder *supervised.Builder
	batches supervised.Batches
	// first is the order of the file's builder, and epochs the order of each epoch, which permutes the first.
	first  []uint32
	epochs [][]uint32
}

func (c training) open(t *testing.T, vocabulary string) *rows {
	t.Helper()
	var tokens tokenizer.Tokenizer
	var err error
	if c.Model == byteModel {
		tokens, err = tokenizer.ForModel(c.Model)
	} else {
		tokens, err = tokenizer.Parse([]byte(read(t, vocabulary)))
	}
	if err != nil {
		t.Fatal(err)
	}
	format, err := families.New(c.Renderer, tokens, families.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rows{
		lines: bytes.Split(bytes.TrimSpace([]byte(read(t, c.File))), []byte("\n")),
		builder: &supervised.Builder{
			Renderer: format, TrainOn: trainOn[c.TrainOn], Normalization: normalization[c.Reduction], MaxTokens: c.MaxLength,
		},
	}
	// The cookbook leaves out the rows of an epoch that fill no batch.
	n := int64(len(r.lines))
	taken := n / int64(c.BatchSize) * int64(c.BatchSize)
	stream, err := rl.NewStream(0, []rl.Source{{Environment: "rows", Split: "train", Tasks: taken}})
	if err != nil {
		t.Fatal(err)
	}
	r.batches = supervised.Batches{Stream: stream, Size: c.BatchSize}
	r.first = shuffle.Permutation(0, n)
	for epoch := range c.Epochs {
		r.epochs = append(r.epochs, shuffle.Permutation(uint64(epoch), n))
	}
	return r
}

func (r *rows) batchesOfRun() int { return len(r.epochs) * (len(r.lines) / r.batches.Size) }

// load returns the datum of a row. Each row of the stream is the next of the cookbook's order.
func (r *rows) load() supervised.Load {
	loaded := int64(0)
	return func(_ context.Context, task rl.Task) (supervised.Datum, error) {
		epoch := loaded / r.batches.Stream.Tasks()
		loaded++
		return r.builder.Datum(r.lines[r.first[r.epochs[epoch][task.Index]]])
	}
}

func cpu(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
