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
	// window is the native tokens of the window that predicts the next token, and start the position of the first of
	// them in the sequence, which begins with the prompt.
	window []int32
	start  int
	slot   int
	text   []byte
	// last is the native token that was added last.
	last int32
	// pending are the native tokens of the current forced token that were not added yet, and sum is the log-probability of
	// the added ones.
	pending []int32
	sum     float64
}

// newCompletion returns the completion of a request with its prompt in native tokens.
func newCompletion(base *BaseModel, r SampleRequest, prompt []int32, out *Sample) *completion {
	r.MaxTokens = min(r.MaxTokens, base.context-len(r.Prompt))
	c := &completion{SampleRequest: r, Sample: out, vocabulary: base.vocabulary, window: slices.Clip(prompt)}
	c.move()
	return c
}

// move moves the window to the prediction of the next token, and reports whether it has changed.
func (c *completion) move() bool {
	last := c.start + len(c.window) - 1
	if position := len(c.Tokens); position < len(c.Forced) {
		last += len(c.vocabulary.Spell(c.Forced[position])) - 1
	}
	start := windowOf(last).start()
	if len(c.pending) > 0 || start == c.start {
		return false
	}
	c.window, c.start = slices.Clone(c.window[start-c.start:]), start
	return true
}

// room is the most native tokens that the window may have.
func (c *completion) room() int {
	forced := 0
	for _, token := range c.Forced[:min(c.MaxTokens, len(c.Forced))] {
		forced += len(c.vocabulary.Spell(token))
	}
	drawn := max(0, c.MaxTokens-len(c.Forced))
	return min(len(c.window)+forced+drawn, Window)
}

// extend adds one native token. If it completes a token of the vocabulary, it adds that token as well.
func (c *completion) extend(choose *chooser, logits []float32) error {
	position := len(c.Tokens)
	if len(c.pending) == 0 && position < len(c.Forced) {
		c.pending, c.sum = c.vocabulary.Spell(c.Forced[position]), 0
	}
	addNoise(logits, c.SampleRequest, c.start+len(c.window))
	if c.Alternatives > 0 && len(c.TopIDs) == position { // not within a forced token of several native ones
		ids, logprobs := likeliestOf(c.vocabulary, logits, c.Alternatives)
		c.TopIDs, c.TopLogprobs = append(c.TopIDs, ids), append(c.TopLogprobs, logprobs)
	}
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
	c.window = append(c.window, c.last)
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

// isComplete reports whether the completion has ended.
func (c *completion) isComplete() bool {
	return c.Stopped || len(c.Tokens) == c.MaxTokens || c.isCanceled()
}

func (c *completion) isCanceled() bool {
	select {
	case <-c.Canceled:
		return true
	default:
		return false
	}
}
