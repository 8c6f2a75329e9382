// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"math"
	"slices"
)

// completion is a request with the tokens that were drawn so far.
type completion struct {
	SampleRequest
	*Sample
	vocabulary Vocabulary
	// prompt is the prompt in native tokens, and length is the number of native tokens including those that were added.
	prompt []int32
	length int
	slot   int
	text   []byte
	// last is the native token that was added last.
	last int32
	// pending are the native tokens of the current forced token that were not added yet, and sum is the
	// log-probability of those that were.
	pending []int32
	sum     float64
}

func newCompletion(vocabulary Vocabulary, r SampleRequest, prompt []int32, out *Sample) *completion {
	return &completion{SampleRequest: r, Sample: out, vocabulary: vocabulary, prompt: prompt, length: len(prompt)}
}

// room is the most native tokens that prompt and completion may have.
func (c *completion) room() int {
	forced := 0
	for _, token := range c.Forced[:min(c.MaxTokens, len(c.Forced))] {
		forced += len(c.vocabulary.Spell(token))
	}
	drawn := max(0, min(c.MaxTokens, MaxContext)-len(c.Forced))
	return min(len(c.prompt)+forced+drawn, MaxContext)
}

// extend adds one native token. If it completes a token of the vocabulary, it adds that token as well.
func (c *completion) extend(choose *chooser, logits []float32) error {
	position := len(c.Tokens)
	if len(c.pending) == 0 && position < len(c.Forced) {
		c.pending, c.sum = c.vocabulary.Spell(c.Forced[position]), 0
	}
	addNoise(logits, c.SampleRequest, c.length)
	var token int32
	var logprob float64
	if len(c.pending) > 0 {
		c.last, c.pending = c.pending[0], c.pending[1:]
		token, logprob = c.Forced[position], c.sum+score(logits, c.last)
	} else {
		c.last, logprob = choose.token(logits, c.SampleRequest, uniform(c.Seed, c.Index, position))
		token, _ = c.vocabulary.Token(c.last)
	}
	if math.IsNaN(logprob) {
		return errNotFinite
	}
	c.length++
	c.text = appendText(c.text, c.last)
	if c.sum = logprob; len(c.pending) > 0 {
		return nil
	}
	c.Tokens, c.Logprobs = append(c.Tokens, token), append(c.Logprobs, float32(logprob))
	c.Stopped = c.stops(token)
	return nil
}

// stops reports whether the completion stops after the token that was added.
func (c *completion) stops(token int32) bool {
	if c.last == TokenEnd || slices.Contains(c.StopTokens, token) {
		return true
	}
	return slices.ContainsFunc(c.StopStrings, func(s string) bool {
		return bytes.HasSuffix(c.text, []byte(s))
	})
}

// isComplete reports whether the completion has ended. A forced token that does not fit into the context is cut off.
func (c *completion) isComplete() bool {
	return c.Stopped || len(c.Tokens) == c.MaxTokens || c.length == MaxContext
}
