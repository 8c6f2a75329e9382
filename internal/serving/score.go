// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Score returns the tokens of a prompt and of a reply to it. The tokens of the reply have their log-probabilities. If
// prompts is set, the tokens of the prompt have theirs as well. If top is not 0, each token has the top most likely
// tokens at its place. Both need a request to the endpoint, after which all log-probabilities are at temperature 1.
func (m Model) Score(ctx context.Context, prompt []int32, reply Answer, top int, prompts bool) ([]dialect.Token,
	error) {
	all := slices.Concat(prompt, reply.Tokens)
	tokens := make([]dialect.Token, len(all))
	for i, id := range all {
		tokens[i].Text = m.textOf(id)
		if of := i - len(prompt); of >= 0 && of < len(reply.Logprobs) {
			tokens[i].Logprob = new(float64(reply.Logprobs[of]))
		}
	}
	if top == 0 && !prompts || len(all) == 0 {
		return tokens, nil
	}
	params := tinker.DefaultSampling()
	params.MaxTokens = new(1)
	result, err := m.Sampler.Sample(ctx, m.Weights, tinker.SampleRequest{NumSamples: 1, Prompt: tinker.Text(all),
		SamplingParams: params, PromptLogprobs: true, TopkPromptLogprobs: top})
	if err != nil {
		return nil, err
	}
	if len(result.PromptLogprobs) != len(all) {
		return nil, fmt.Errorf("scoring tokens: the endpoint returned %d log-probabilities of %d tokens",
			len(result.PromptLogprobs), len(all))
	}
	for i := range all {
		if logprob := float64(result.PromptLogprobs[i]); !math.IsNaN(logprob) {
			tokens[i].Logprob = &logprob
		}
		if i < len(result.TopkPromptLogprobs) {
			for _, other := range result.TopkPromptLogprobs[i] {
				tokens[i].Top = append(tokens[i].Top,
					dialect.Token{Text: m.textOf(other.Token), Logprob: new(float64(other.Logprob))})
			}
		}
	}
	return tokens, nil
}

// textOf returns the text of one token, in which half a character is U+FFFD.
func (m Model) textOf(id int32) string {
	text, err := m.Format.Tokens.Decode([]int32{id})
	if err != nil {
		return fmt.Sprintf("<%d>", id)
	}
	return text
}
