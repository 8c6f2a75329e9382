// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// The size of one request for samples, which is so large that two are hardly equal by chance.
const (
	numSamples = 8
	maxTokens  = 8
)

// samplingCheck checks sampling from the initial weights of the first model.
type samplingCheck struct {
	*check
	session string
	seq     atomic.Int64
}

// checkSampling checks seeds, the choice of tokens, and the log-probabilities of prompts.
func (k *check) checkSampling(ctx context.Context) {
	settings := map[Feature]func(*tinker.SamplingParams){
		Temperature: func(p *tinker.SamplingParams) { p.Temperature = 0.01 },
		TopK:        func(p *tinker.SamplingParams) { p.TopK = 1 },
		TopP:        func(p *tinker.SamplingParams) { p.TopP = 1e-3 },
	}
	wanted := slices.DeleteFunc([]Feature{Seed, Temperature, TopK, TopP, PromptLogprobs}, func(f Feature) bool { return !k.wants(f) })
	if len(wanted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, k.Patience)
	defer cancel()
	session, err := k.API.CreateSamplingSession(ctx, k.session, 0, k.sampler, "")
	if err != nil {
		for _, f := range wanted {
			k.recordError(f, err)
		}
		return
	}
	s := &samplingCheck{check: k, session: session}
	for _, f := range wanted {
		switch f {
		case Seed:
			s.seed(ctx)
		case PromptLogprobs:
			s.promptLogprobs(ctx)
		default:
			s.choice(ctx, f, settings[f])
		}
	}
}

// draw samples under a new number, so that the server does not return earlier samples.
func (s *samplingCheck) draw(ctx context.Context, seed int64, change func(*tinker.SamplingParams)) ([][]int32, error) {
	params := tinker.DefaultSampling()
	params.MaxTokens, params.Seed = new(maxTokens), &seed
	if change != nil {
		change(&params)
	}
	result, err := s.API.Sample(ctx, tinker.SampleRequest{
		NumSamples: numSamples, Prompt: tinker.Text(sequence), SamplingParams: params,
		SamplingSession: s.session, SeqID: new(s.seq.Add(1)),
	})
	if err != nil {
		return nil, err
	}
	var drawn [][]int32
	for _, sample := range result.Sequences {
		drawn = append(drawn, sample.Tokens)
	}
	return drawn, nil
}

// drawTwice draws with two seeds, and reports whether the samples are equal.
func (s *samplingCheck) drawTwice(ctx context.Context, seeds [2]int64, change func(*tinker.SamplingParams)) (bool, error) {
	one, err := s.draw(ctx, seeds[0], change)
	if err != nil {
		return false, err
	}
	other, err := s.draw(ctx, seeds[1], change)
	return slices.EqualFunc(one, other, slices.Equal), err
}

// seed draws with equal and with different seeds.
func (s *samplingCheck) seed(ctx context.Context) {
	same, err := s.drawTwice(ctx, [2]int64{1, 1}, nil)
	if err != nil {
		s.recordError(Seed, err)
		return
	}
	other, err := s.drawTwice(ctx, [2]int64{1, 2}, nil)
	switch {
	case err != nil:
		s.recordError(Seed, err)
	case !same:
		s.record(Seed, Ignored, "the same seed draws different tokens")
	case other:
		s.record(Seed, Ignored, "another seed draws the same tokens")
	default:
		s.record(Seed, Supported, "")
	}
}

// choice checks a setting that leaves a single token to choose, so that another seed draws the same tokens.
func (s *samplingCheck) choice(ctx context.Context, f Feature, narrow func(*tinker.SamplingParams)) {
	wide, err := s.drawTwice(ctx, [2]int64{1, 2}, nil)
	if err != nil {
		s.recordError(f, err)
		return
	}
	same, err := s.drawTwice(ctx, [2]int64{1, 2}, narrow)
	switch {
	case err != nil:
		s.recordError(f, err)
	case wide:
		s.record(f, Unknown, "another seed draws the same tokens even without it")
	case !same:
		s.record(f, Ignored, "the setting does not narrow the choice of tokens")
	default:
		s.record(f, Supported, "")
	}
}

// promptLogprobs compares the log-probabilities of a prompt with those of a forward pass over it.
func (s *samplingCheck) promptLogprobs(ctx context.Context) {
	got, err := s.API.ComputeLogprobs(ctx, s.session, s.seq.Add(1), sequence)
	if err != nil {
		s.recordError(PromptLogprobs, err)
		return
	}
	if s.noLogprobs { // there is nothing to compare them with; their number is right
		s.record(PromptLogprobs, Supported, "")
		return
	}
	const maxDistance = 0.25 // nats; sampler and trainer round differently
	far := 0.0
	for i, want := range s.initial {
		far = max(far, math.Abs(float64(got[i+1])-want))
	}
	if far <= maxDistance { // this is false for NaN
		s.record(PromptLogprobs, Supported, "")
		return
	}
	s.record(PromptLogprobs, Unsupported, fmt.Sprintf("they differ from those of a forward pass by %.2g nats", far))
}
