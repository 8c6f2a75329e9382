// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/vocabulary"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

const foreignName = "Qwen/Qwen3-8B"

// qwen3 returns the part of Qwen3's tokenizer.json that the tests of the renderers use.
func qwen3(t *testing.T) []byte {
	t.Helper()
	file, err := os.Open("../renderer/families/testdata/tokenizers/qwen3.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// startWithQwen starts a server with a base model that has Qwen3's tokens. It also returns the tokenizer's encoder.
func startWithQwen(t *testing.T, options tinkersim.Options) (*backend, func(text string) []int32) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, qwen3(t), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := vocabulary.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := tokenizer.Parse(qwen3(t))
	if err != nil {
		t.Fatal(err)
	}
	options.Vocabularies = map[string]*vocabulary.Vocabulary{foreignName: v}
	return start(t, options), func(text string) []int32 { return tokens.AppendEncode(nil, text, tokenizer.Specials) }
}

// foreignDatum returns a datum that trains on a sequence of ids.
func foreignDatum(ids []int32) tinker.Datum {
	targets, weights := make([]int64, len(ids)-1), make([]float32, len(ids)-1)
	for i := range targets {
		targets[i], weights[i] = int64(ids[i+1]), 1
	}
	return tinker.Datum{
		ModelInput: tinker.Text(ids[:len(targets)]),
		LossFnInputs: map[string]tinker.Tensor{tinker.InputTargetTokens: tinker.Ints(targets),
			tinker.InputWeights: tinker.Floats(weights)},
	}
}

func (b *backend) foreignModel(c *client.Client, session string, seq int) *client.Model {
	b.t.Helper()
	m, err := c.CreateModel(b.t.Context(), tinker.CreateModelRequest{Session: session, ModelSeq: seq,
		BaseModel: foreignName, Lora: lora})
	if err != nil {
		b.t.Fatal(err)
	}
	return m
}

const exchange = "<|im_start|>user\nWhat is 12 + 30?<|im_end|>\n<|im_start|>assistant\n42<|im_end|>"

func TestHubServesVocabularyFiles(t *testing.T) {
	b, _ := startWithQwen(t, tinkersim.Options{})
	for file, want := range map[string]string{
		"tokenizer.json":        string(qwen3(t)),
		"tokenizer_config.json": `"eos_token":"\u003c|im_end|\u003e"`,
		"config.json":           `"eos_token_id":151645`,
	} {
		got, err := b.call(http.MethodGet, "/"+foreignName+"/resolve/main/"+file, "", "X-API-Key", "")
		if err != nil || got.status != http.StatusOK || !strings.Contains(got.body, want) || !json.Valid([]byte(got.body)) {
			t.Errorf("%s: %d, %v, want it to have %.60s", file, got.status, err, want)
		}
	}
	own, err := b.call(http.MethodHead, "/"+tinkersim.ModelName+"/resolve/main/tokenizer.json", "")
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.call(http.MethodHead, "/"+foreignName+"/resolve/main/tokenizer.json", "")
	if err != nil || own.header.Get("X-Repo-Commit") == other.header.Get("X-Repo-Commit") {
		t.Errorf("both repositories are at commit %s: %v", other.header.Get("X-Repo-Commit"), err)
	}
	missing, err := b.call(http.MethodGet, "/"+foreignName+"/resolve/main/merges.txt", "")
	if err != nil || missing.status != http.StatusNotFound {
		t.Errorf("a missing file: %d, %v", missing.status, err)
	}
}

func TestForeignVocabularyTrainSaveSample(t *testing.T) {
	b, write := startWithQwen(t, tinkersim.Options{})
	c := b.client()
	capabilities, err := c.Capabilities(t.Context())
	if err != nil || len(capabilities.SupportedModels) != 5 || capabilities.SupportedModels[3].ModelName != foreignName {
		t.Fatalf("capabilities %+v, %v", capabilities, err)
	}
	session := b.session(c)
	m := b.foreignModel(c, session, 0)
	data := foreignDatum(write(exchange))
	first := step(t, m, data)
	step(t, m, data)
	saving, err := m.SaveState(t.Context(), client.SaveRequest{Name: "two"})
	state := done(t, saving, err)
	third := step(t, m, data)
	if !(third < first) {
		t.Errorf("the loss went from %v to %v: the loss does not fall", first, third)
	}
	resumed := b.foreignModel(c, session, 1)
	loading, err := resumed.LoadState(t.Context(), state.Path, true)
	done(t, loading, err)
	if got := step(t, resumed, data); got != third {
		t.Errorf("resumed: loss %v, want exactly %v", got, third)
	}
	saving, err = m.SaveSampler(t.Context(), client.SaveRequest{Name: "s"})
	sampler := done(t, saving, err)
	b.checkSampler(c, session, m, sampler.Path, write)
}

// checkSampler checks that samples and prompt log-probabilities are from the trainer's weights.
func (b *backend) checkSampler(c *client.Client, session string, m *client.Model, path string,
	write func(string) []int32) {
	t := b.t
	t.Helper()
	sampling, err := c.CreateSamplingSession(t.Context(), session, 7, path, "")
	if err != nil {
		t.Fatal(err)
	}
	question, _, _ := strings.Cut(exchange, "42")
	prompt := write(question)
	req := tinker.SampleRequest{NumSamples: 4, Prompt: tinker.Text(prompt), SamplingSession: sampling,
		SeqID: new(int64(1)), PromptLogprobs: true, TopkPromptLogprobs: 3}
	req.SamplingParams = tinker.DefaultSampling()
	req.SamplingParams.MaxTokens, req.SamplingParams.Seed = new(40), new(int64(5))
	req.SamplingParams.Stop.Tokens = write("<|im_end|>")
	samples, err := c.Sample(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for i, sequence := range samples.Sequences {
		for _, id := range sequence.Tokens[:len(sequence.Tokens)-1] {
			if id > 255 { // Qwen's bytes are its first ids
				t.Errorf("sample %d has the id %d, which is not a byte", i, id)
			}
		}
		forward, err := m.Forward(t.Context(), []tinker.Datum{foreignDatum(append(append([]int32{}, prompt...),
			sequence.Tokens...))}, crossEntropy)
		trained := done(t, forward, err).LossFnOutputs[0]["logprobs"].Float
		if diff := cmp.Diff(trained[len(prompt)-1:], sequence.Logprobs, cmpopts.EquateApprox(0.1, 0.3)); diff != "" {
			t.Errorf("log-probabilities of sample %d (-trainer +sampler):\n%s", i, diff)
		}
		if diff := cmp.Diff(trained[:len(prompt)-1], samples.PromptLogprobs[1:], cmpopts.EquateApprox(0.1, 0.3)); diff != "" {
			t.Errorf("log-probabilities of the prompt (-trainer +sampler):\n%s", diff)
		}
	}
	if len(samples.TopkPromptLogprobs) != len(prompt) || len(samples.TopkPromptLogprobs[3]) != 3 {
		t.Errorf("alternatives %v", samples.TopkPromptLogprobs)
	}
}

// TestCheckpointWithoutVocabulary checks that a checkpoint cannot be used at a server without its vocabulary: the ids
// mean other tokens there.
func TestCheckpointWithoutVocabulary(t *testing.T) {
	dir := t.TempDir()
	before, _ := startWithQwen(t, tinkersim.Options{Dir: dir})
	c := before.client()
	m := before.foreignModel(c, before.session(c), 0)
	saving, err := m.SaveState(t.Context(), client.SaveRequest{Name: "one"})
	state := done(t, saving, err)
	saving, err = m.SaveSampler(t.Context(), client.SaveRequest{Name: "two"})
	sampler := done(t, saving, err)
	before.sim.Close()

	after := start(t, tinkersim.Options{Dir: dir})
	c = after.client()
	session := after.session(c)
	if got := after.do("load_weights", fill(`{"path":"{P}","optimizer":true,"session_id":"S","model_seq_id":0}`, "P",
		state.Path, "S", session)); !strings.Contains(got, "not supported") {
		t.Errorf("the state was loaded: %s", got)
	}
	sampling, err := c.CreateSamplingSession(t.Context(), session, 1, sampler.Path, "")
	if err != nil {
		t.Fatal(err)
	}
	req := tinker.SampleRequest{NumSamples: 1, Prompt: tinker.Text([]int32{7}), SamplingSession: sampling,
		SeqID: new(int64(1)), SamplingParams: tinker.DefaultSampling()}
	if got, err := c.Sample(t.Context(), req); err == nil || !strings.Contains(err.Error(), "not supported") {
		t.Errorf("it was sampled from: %v, %v", got, err)
	}
}

func TestForeignVocabularyBaseModel(t *testing.T) {
	b, write := startWithQwen(t, tinkersim.Options{})
	c := b.client()
	sampling, err := c.CreateSamplingSession(t.Context(), b.session(c), 1, "", foreignName)
	if err != nil {
		t.Fatal(err)
	}
	// The model gets a prompt of its training in Qwen's tokens: it replies, and ends with Qwen's end token.
	req := tinker.SampleRequest{NumSamples: 8, Prompt: tinker.Text(write("User: What is 27 + 58?\n\nAssistant:")),
		SamplingSession: sampling, SeqID: new(int64(1))}
	req.SamplingParams = tinker.DefaultSampling()
	req.SamplingParams.MaxTokens, req.SamplingParams.Seed = new(40), new(int64(5))
	samples, err := c.Sample(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for _, sequence := range samples.Sequences {
		if last := sequence.Tokens[len(sequence.Tokens)-1]; sequence.StopReason != tinker.StopReasonStop || last != 151645 {
			t.Errorf("a sample ends with %d (%s), want <|im_end|>", last, sequence.StopReason)
		}
	}
	req.Prompt, req.SeqID = tinker.Text([]int32{151643 + 30}), new(int64(2)) // beyond the vocabulary
	if _, err := c.Sample(t.Context(), req); err == nil {
		t.Error("an unknown id was accepted")
	}
}

// cpuTime returns the processor time that this process has used. It does not depend on other processes of the machine.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// TestLongPrompt checks that a prompt may be as long as the announced context, and that the reply to a long prompt
// does not take long: the sampler reads only the end of the prompt.
func TestLongPrompt(t *testing.T) {
	b, write := startWithQwen(t, tinkersim.Options{})
	c := b.client()
	capabilities, err := c.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	announced := map[string]int{}
	for _, m := range capabilities.SupportedModels {
		announced[m.ModelName] = m.MaxContextLength
	}
	if diff := cmp.Diff(map[string]int{
		tinkersim.ModelName: 4096, tinkersim.CountdownModelName: 4096, tinkersim.SumsModelName: 4096,
		foreignName: 32768, tinkersim.JudgeName: 32768,
	}, announced); diff != "" {
		t.Errorf("context lengths (-want +announced):\n%s", diff)
	}
	sampling, err := c.CreateSamplingSession(t.Context(), b.session(c), 1, "", foreignName)
	if err != nil {
		t.Fatal(err)
	}
	prompt := write(strings.Repeat("What is the sum of these numbers? ", 4000))
	req := tinker.SampleRequest{NumSamples: 2, Prompt: tinker.Text(prompt[:30000]), SamplingSession: sampling,
		SeqID: new(int64(1))}
	req.SamplingParams = tinker.DefaultSampling()
	req.SamplingParams.MaxTokens = new(8)
	start := cpuTime(t)
	samples, err := c.Sample(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if took := cpuTime(t) - start; took > longPromptLimit {
		t.Errorf("a prompt of 30000 tokens took %v of a processor", took)
	}
	if n := len(samples.Sequences[0].Tokens); n < 1 || n > 8 {
		t.Errorf("%d tokens were sampled", n)
	}
	req.Prompt, req.SeqID = tinker.Text(prompt[:32768]), new(int64(2))
	if _, err := c.Sample(t.Context(), req); err == nil || !strings.Contains(err.Error(), "context of 32768") {
		t.Errorf("a prompt beyond the context: %v", err)
	}
}

func TestForcedSamples(t *testing.T) {
	b, write := startWithQwen(t, tinkersim.Options{})
	c := b.client()
	sampling, err := c.CreateSamplingSession(t.Context(), b.session(c), 1, "", foreignName)
	if err != nil {
		t.Fatal(err)
	}
	wanted := write("<tool_call>\n{}\n</tool_call><|im_end|>")
	body, err := json.Marshal(map[string]any{"rules": []map[string]any{
		{"contains": "30?", "scripts": []map[string]any{{"share": 1, "tokens": wanted}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	seq := int64(0)
	sample := func(text string) tinker.SampledSequence {
		t.Helper()
		seq++
		req := tinker.SampleRequest{NumSamples: 1, Prompt: tinker.Text(write(text)), SamplingSession: sampling, SeqID: &seq}
		req.SamplingParams = tinker.DefaultSampling()
		req.SamplingParams.MaxTokens, req.SamplingParams.Seed = new(30), new(int64(5))
		samples, err := c.Sample(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return samples.Sequences[0]
	}
	before := sample("What is 12 + 30?")
	b.admin(http.MethodPost, "/admin/forced-samples", string(body))
	forcedSample, free := sample("What is 12 + 30?"), sample("What is 12 + 31?")
	if diff := cmp.Diff(wanted, forcedSample.Tokens); diff != "" || forcedSample.StopReason != tinker.StopReasonStop {
		t.Errorf("a forced sample, %s (-want +got):\n%s", forcedSample.StopReason, diff)
	}
	for i, logprob := range forcedSample.Logprobs {
		if !(logprob < 0) || math.IsInf(float64(logprob), 0) {
			t.Errorf("token %d has the log-probability %v", i, logprob)
		}
	}
	if cmp.Equal(wanted, free.Tokens) {
		t.Error("a sample of another prompt was forced, too")
	}
	refused, err := b.call(http.MethodPost, "/admin/forced-samples", `{"rules":[{}]}`)
	if err != nil || refused.status != http.StatusBadRequest {
		t.Errorf("invalid rules: %d, %v", refused.status, err)
	}
	b.admin(http.MethodDelete, "/admin/forced-samples", "")
	if diff := cmp.Diff(before, sample("What is 12 + 30?")); diff != "" {
		t.Errorf("without the rules (-before +after):\n%s", diff)
	}
}

func TestDuplicateVocabulary(t *testing.T) {
	for _, name := range []string{tinkersim.ModelName, "an/alias"} {
		options := tinkersim.Options{Dir: t.TempDir(), Aliases: []string{"an/alias"},
			Vocabularies: map[string]*vocabulary.Vocabulary{name: nil}}
		if sim, err := tinkersim.New(options); err == nil {
			sim.Close()
			t.Errorf("%s has two vocabularies", name)
		}
	}
}
