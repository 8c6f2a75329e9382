// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

// SampleRequest asks for one completion.
type SampleRequest struct {
	// Prompt is the text to continue, 1 to MaxContext-1 tokens.
	Prompt []int32
	// MaxTokens is the most tokens to add, at least 1. The end of the context ends a sample, too.
	MaxTokens int
	// Temperature divides the logits; 0 takes the likeliest token.
	Temperature float64
	// TopP, above 0 and at most 1, keeps the fewest likeliest tokens that have this much probability
	// together.
	TopP float64
	// TopK keeps this many of the likeliest tokens; -1 or 0 keeps all.
	TopK int
	// Seed and Index, which tells the samples of one prompt apart, key the random numbers.
	Seed  uint64
	Index int
	// StopTokens end the sample and are part of it. TokenEnd always does.
	StopTokens []int32
	// StopStrings end the sample as soon as its bytes end with one of them, and are part of it.
	StopStrings []string
}

// Sample is one completion.
type Sample struct {
	// Tokens are the tokens drawn, the stop included.
	Tokens []int32
	// Logprobs are the model's log-probabilities of Tokens, at temperature 1 and without top-k and
	// top-p, whatever the request.
	Logprobs []float32
	// Stopped says that a stop token or string ended it and not a limit.
	Stopped bool
}

// Validate returns a UserError when the request cannot be sampled.
func (r SampleRequest) Validate() error {
	if err := checkTokens(r.Prompt); err != nil {
		return userErrorf("the prompt cannot be read: %v", err)
	}
	switch {
	case len(r.Prompt) >= MaxContext:
		return userErrorf("the prompt of %d tokens leaves no room in the context of %d", len(r.Prompt), MaxContext)
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

// room is the most tokens that prompt and completion may have.
func (r SampleRequest) room() int {
	return len(r.Prompt) + min(r.MaxTokens, MaxContext-len(r.Prompt))
}

// stops says whether the sample is at a stop.
func (r SampleRequest) stops(tokens []int32, text []byte) bool {
	last := tokens[len(tokens)-1]
	if last == TokenEnd || slices.Contains(r.StopTokens, last) {
		return true
	}
	return slices.ContainsFunc(r.StopStrings, func(s string) bool {
		return bytes.HasSuffix(text, []byte(s))
	})
}

// sampleRows is the number of requests that are decoded together.
const sampleRows = 32

var errNotFinite = errors.New("the model's logits are not finite")

// Sample draws one completion for each request. Each is a function of the weights and its own
// request alone. It fails with a UserError when a request is not valid, with the error of ctx, or
// when the weights have diverged so far that there are no probabilities.
func (w *Weights) Sample(ctx context.Context, reqs []SampleRequest) ([]Sample, error) {
	for i, r := range reqs {
		if err := r.Validate(); err != nil {
			return nil, userErrorf("request %d: %v", i, err)
		}
	}
	out := make([]Sample, len(reqs))
	jobs := (len(reqs) + sampleRows - 1) / sampleRows
	errs := make([]error, jobs)
	transformer.InParallel(jobs, func(job int) {
		first := job * sampleRows
		end := min(first+sampleRows, len(reqs))
		errs[job] = w.sampleJob(ctx, reqs[first:end], out[first:end])
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// sampleJob decodes a few requests together, each until it is at its end.
func (w *Weights) sampleJob(ctx context.Context, reqs []SampleRequest, out []Sample) error {
	decoder := w.base.decoder()
	defer w.base.decoders.Put(decoder)
	prompts, room := make([][]int32, len(reqs)), make([]int, len(reqs))
	live := make([]*completion, len(reqs))
	for i, r := range reqs {
		prompts[i], room[i] = r.Prompt, r.room()
		live[i] = &completion{SampleRequest: r, slot: i, Sample: &out[i]}
	}
	decoder.Start(w.params, prompts, room)
	var choose chooser
	slots, tokens := make([]int, 0, len(reqs)), make([]int32, 0, len(reqs))
	for {
		next := live[:0]
		slots, tokens = slots[:0], tokens[:0]
		for i, c := range live {
			if err := c.extend(&choose, decoder.Logits(i)); err != nil {
				return err
			}
			if !c.done() {
				next = append(next, c)
				slots, tokens = append(slots, c.slot), append(tokens, c.Tokens[len(c.Tokens)-1])
			}
		}
		live = next
		if len(live) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		decoder.Step(w.params, slots, tokens)
	}
}

// completion is a request and what it has got so far.
type completion struct {
	SampleRequest
	*Sample
	slot int
	text []byte
}

// extend draws one more token.
func (c *completion) extend(choose *chooser, logits []float32) error {
	position := len(c.Tokens)
	token, logprob := choose.token(logits, c.SampleRequest, uniform(c.Seed, c.Index, position))
	if math.IsNaN(logprob) {
		return errNotFinite
	}
	c.Tokens, c.Logprobs = append(c.Tokens, token), append(c.Logprobs, float32(logprob))
	if token < 256 {
		c.text = append(c.text, byte(token))
	}
	c.Stopped = c.stops(c.Tokens, c.text)
	return nil
}

func (c *completion) done() bool {
	return c.Stopped || len(c.Prompt)+len(c.Tokens) == c.room()
}

func (b *BaseModel) decoder() *transformer.Decoder {
	if d, ok := b.decoders.Get().(*transformer.Decoder); ok {
		return d
	}
	return new(transformer.Decoder)
}
