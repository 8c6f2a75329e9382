// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// ask draws one greedy sample of a few tokens of the base model.
func (b *backend) ask(change func(*tinker.SampleRequest)) tinker.SampleResult {
	b.t.Helper()
	params := tinker.DefaultSampling()
	params.MaxTokens, params.Temperature = new(5), 0
	request := tinker.SampleRequest{NumSamples: 1, Prompt: tinker.Text(text("12+34=")), SamplingParams: params,
		BaseModel: tinkersim.ModelName}
	change(&request)
	result, err := b.client().Sample(b.t.Context(), request)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// TestTargetPromptLogprobs compares targets that are the prompt's own tokens with the log-probabilities of the prompt,
// and likely targets with the alternatives to the prompt's tokens.
func TestTargetPromptLogprobs(t *testing.T) {
	b := start(t, tinkersim.Options{})
	prompt := text("12+34=")
	known := b.ask(func(r *tinker.SampleRequest) { r.PromptLogprobs, r.TopkPromptLogprobs = true, 1 })
	rows := int64(len(prompt) - 1)
	var tokens []int64
	var want []float32
	for i, token := range prompt[1:] {
		likeliest := known.TopkPromptLogprobs[i+1][0]
		tokens = append(tokens, int64(token), -1, int64(likeliest.Token))
		want = append(want, known.PromptLogprobs[i+1], 0, likeliest.Logprob)
	}
	dense := tinker.Ints(tokens, rows, 3)
	got := b.ask(func(r *tinker.SampleRequest) { r.TargetPromptLogprobs = &dense }).TargetPromptLogprobs
	wanted := tinker.Floats(want, rows, 3)
	if diff := cmp.Diff(&wanted, got); diff != "" {
		t.Errorf("log-probabilities of targets (-want +got):\n%s", diff)
	}
	// The second and the last row have one target each.
	sparse := tinker.Tensor{DType: tinker.Int64, Shape: []int64{rows, 4}, Int: []int64{int64(prompt[2]), int64(prompt[5])},
		Sparse: &tinker.Sparse{Rows: []int64{0, 0, 1, 1, 1, 2}, Cols: []int64{3, 0}}}
	got = b.ask(func(r *tinker.SampleRequest) { r.TargetPromptLogprobs = &sparse }).TargetPromptLogprobs
	wanted = tinker.Tensor{DType: tinker.Float32, Shape: sparse.Shape, Sparse: sparse.Sparse,
		Float: []float32{known.PromptLogprobs[2], known.PromptLogprobs[5]}}
	if diff := cmp.Diff(&wanted, got); diff != "" {
		t.Errorf("log-probabilities of sparse targets (-want +got):\n%s", diff)
	}
}

// TestTopkSampleLogprobs checks that the likeliest alternative to a token that is drawn greedily is the token itself.
func TestTopkSampleLogprobs(t *testing.T) {
	b := start(t, tinkersim.Options{})
	sample := b.ask(func(r *tinker.SampleRequest) { r.TopkSampleLogprobs = 3 }).Sequences[0]
	if len(sample.TopkLogprobs) != len(sample.Tokens) || len(sample.Tokens) == 0 {
		t.Fatalf("alternatives to %d of %d tokens", len(sample.TopkLogprobs), len(sample.Tokens))
	}
	for i, row := range sample.TopkLogprobs {
		own := tinker.TokenLogprob{Token: sample.Tokens[i], Logprob: sample.Logprobs[i]}
		falls := slices.IsSortedFunc(row, func(x, y tinker.TokenLogprob) int {
			if x.Logprob > y.Logprob {
				return -1
			}
			return 1
		})
		if len(row) != 3 || row[0] != own || !falls {
			t.Errorf("token %d is %v, and the likeliest are %v", i, own, row)
		}
	}
	if plain := b.ask(func(*tinker.SampleRequest) {}).Sequences[0]; plain.TopkLogprobs != nil ||
		!slices.Equal(plain.Tokens, sample.Tokens) {
		t.Errorf("without alternatives the sample is %v, with them it has the tokens %v", plain, sample.Tokens)
	}
}
