// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

// SampleRequest asks for one completion.
type SampleRequest struct {
	// Prompt is the text to continue: at least one token, and fewer than the context.
	Prompt []int32
	// MaxTokens is the most tokens to add, at least 1. The end of the context also ends a sample.
	MaxTokens int
	// Temperature divides the logits; 0 takes the likeliest token.
	Temperature float64
	// TopP, above 0 and at most 1, keeps the fewest likeliest tokens that have this much probability
	// together.
	TopP float64
	// TopK keeps this many of the likeliest tokens; -1 or 0 keeps all.
	TopK int
	// Seed and Index determine the random numbers. Index distinguishes the samples of one prompt.
	Seed  uint64
	Index int
	// StopTokens end the sample and are part of it. The token that stands for TokenEnd always ends it.
	StopTokens []int32
	// StopStrings end the sample as soon as its bytes end with one of them, and are part of it.
	StopStrings []string
	// Forced are the tokens that the sample begins with, instead of drawn ones. Nothing else changes: their
	// log-probabilities are the model's, and stops and limits apply. It is for tests.
	Forced []int32
	// Alternatives is the number of most likely tokens that are returned beside each one; 0 returns none.
	Alternatives int
	// Noise is the standard deviation of the noise that is added to each logit, as if the arithmetic were
	// inexact; 0 adds none. It is a function of NoiseKey, Index, the position and the token.
	Noise    float64
	NoiseKey uint64
	// Canceled ends the sample where it is once it is closed; nil never does.
	Canceled <-chan struct{}
}

// Sample is one completion.
type Sample struct {
	// Tokens are the tokens drawn, the stop included.
	Tokens []int32
	// Logprobs are the model's log-probabilities of Tokens, at temperature 1 and without top-k and
	// top-p, regardless of the request.
	Logprobs []float32
	// TopIDs and TopLogprobs are the likeliest tokens where each token was drawn, if they were asked for.
	TopIDs      [][]int32
	TopLogprobs [][]float32
	// Stopped says that a stop token or string ended the sample, not a limit.
	Stopped bool
}

// Validate returns a UserError if the request is invalid for the vocabulary.
func (b *BaseModel) Validate(r SampleRequest) error {
	_, err := b.readPrompt(r)
	return err
}

// readPrompt converts the prompt of a request to native tokens, if it can be sampled.
func (b *BaseModel) readPrompt(r SampleRequest) (spelling, error) {
	prompt, err := b.read(r.Prompt)
	switch {
	case err != nil:
		return spelling{}, userErrorf("the prompt cannot be read: %v", err)
	case len(r.Prompt) >= b.context:
		return spelling{}, userErrorf("the prompt of %d tokens leaves no room in the context of %d", len(r.Prompt), b.context)
	}
	for _, token := range r.Forced {
		if b.vocabulary.Spell(token) == nil {
			return spelling{}, userErrorf("the forced token %d is not in the vocabulary", token)
		}
	}
	return prompt, r.check()
}

// check checks the numbers of a request.
func (r SampleRequest) check() error {
	switch {
	case r.MaxTokens < 1:
		return userErrorf("max_tokens must be at least 1, not %d", r.MaxTokens)
	case !(r.Temperature >= 0) || math.IsInf(r.Temperature, 0):
		return userErrorf("the temperature must be at least 0, not %g", r.Temperature)
	case !(r.TopP > 0 && r.TopP <= 1):
		return userErrorf("top_p must be above 0 and at most 1, not %g", r.TopP)
	case r.TopK < -1:
		return userErrorf("top_k must be at least -1, not %d", r.TopK)
	case slices.Contains(r.StopStrings, ""):
		return userErrorf("a stop string is empty")
	}
	return nil
}

// sampleRows and sampleRoom bound the requests that are decoded together: their number, and the native tokens
// that they may come to, which decide the memory.
const (
	sampleRows = 32
	sampleRoom = 1 << 15
)

var errNotFinite = errors.New("the model's logits are not finite")

// Sample draws one completion for each request. Each is a function of the weights and its own
// request alone. It fails with a UserError when a request is not valid, with the error of ctx, or
// if the weights have diverged so far that there are no probabilities.
func (w *Weights) Sample(ctx context.Context, reqs []SampleRequest) ([]Sample, error) {
	out, completions := make([]Sample, len(reqs)), make([]*completion, len(reqs))
	for i, r := range reqs {
		prompt, err := w.base.readPrompt(r)
		if err != nil {
			return nil, userErrorf("request %d: %v", i, err)
		}
		completions[i] = newCompletion(w.base, r, prompt.native, &out[i])
	}
	for len(completions) > 0 {
		jobs := jobsOf(completions)
		moved, errs := make([][]*completion, len(jobs)), make([]error, len(jobs))
		transformer.InParallel(len(jobs), func(job int) {
			moved[job], errs[job] = w.sampleJob(ctx, jobs[job])
		})
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		completions = slices.Concat(moved...)
	}
	return out, nil
}

// jobsOf splits completions into jobs that are decoded together.
func jobsOf(all []*completion) [][]*completion {
	var jobs [][]*completion
	first, room := 0, 0
	for i, c := range all {
		room += c.room()
		if i > first && (i-first == sampleRows || room > sampleRoom) {
			jobs = append(jobs, all[first:i])
			first, room = i, c.room()
		}
	}
	if first < len(all) {
		jobs = append(jobs, all[first:])
	}
	return jobs
}

// sampleJob decodes a few completions together, each until it is complete or moves to another window. It returns the
// ones that moved.
func (w *Weights) sampleJob(ctx context.Context, live []*completion) (moved []*completion, err error) {
	decoder := w.base.decoders.Get().(*transformer.Decoder)
	defer w.base.decoders.Put(decoder)
	prompts, room := make([][]int32, len(live)), make([]int, len(live))
	for i, c := range live {
		c.slot = i
		prompts[i], room[i] = c.window, c.room()
	}
	decoder.Start(w.params, prompts, room)
	choose := chooser{silent: w.base.silent}
	slots, tokens := make([]int, 0, len(live)), make([]int32, 0, len(live))
	for {
		next := live[:0]
		slots, tokens = slots[:0], tokens[:0]
		for i, c := range live {
			if err := c.extend(&choose, decoder.Logits(i)); err != nil {
				return nil, err
			}
			switch {
			case c.isComplete():
			case c.move():
				moved = append(moved, c)
			default:
				next = append(next, c)
				slots, tokens = append(slots, c.slot), append(tokens, c.last)
			}
		}
		live = next
		if len(live) == 0 {
			return moved, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		decoder.Step(w.params, slots, tokens)
	}
}
