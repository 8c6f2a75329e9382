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

// What the probe samples at a time: so much that two draws are hardly the same by chance.
const (
	drawnSamples = 8
	drawnTokens  = 8
)

// studio is a sampling session of the first model's weights as it was made.
type studio struct {
	*lab
	session string
	seq     atomic.Int64
}

// sampling finds out about seeds, the choice of tokens, and log-probabilities of prompts.
func (l *lab) sampling(ctx context.Context) {
	choices := map[Feature]func(*tinker.SamplingParams){
		Temperature: func(p *tinker.SamplingParams) { p.Temperature = 0.01 },
		TopK:        func(p *tinker.SamplingParams) { p.TopK = 1 },
		TopP:        func(p *tinker.SamplingParams) { p.TopP = 1e-3 },
	}
	asked := slices.DeleteFunc([]Feature{Seed, Temperature, TopK, TopP, PromptLogprobs}, func(f Feature) bool { return !l.wants(f) })
	if len(asked) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.Patience)
	defer cancel()
	session, err := l.API.CreateSamplingSession(ctx, l.session, 0, l.sampler, "")
	if err != nil {
		for _, f := range asked {
			l.conclude(f, err)
		}
		return
	}
	s := &studio{lab: l, session: session}
	for _, f := range asked {
		switch f {
		case Seed:
			s.seed(ctx)
		case PromptLogprobs:
			s.promptLogprobs(ctx)
		default:
			s.choice(ctx, f, choices[f])
		}
	}
}

// draw samples under a number of its own, so that nothing is answered with what was drawn before.
func (s *studio) draw(ctx context.Context, seed int64, change func(*tinker.SamplingParams)) ([][]int32, error) {
	params := tinker.DefaultSampling()
	params.MaxTokens, params.Seed = new(drawnTokens), &seed
	if change != nil {
		change(&params)
	}
	result, err := s.API.Sample(ctx, tinker.SampleRequest{
		NumSamples: drawnSamples, Prompt: tinker.Text(sequence), SamplingParams: params,
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

// pair draws twice, with seeds that are the same or not, and says whether the samples are.
func (s *studio) pair(ctx context.Context, seeds [2]int64, change func(*tinker.SamplingParams)) (bool, error) {
	one, err := s.draw(ctx, seeds[0], change)
	if err != nil {
		return false, err
	}
	other, err := s.draw(ctx, seeds[1], change)
	return slices.EqualFunc(one, other, slices.Equal), err
}

// seed draws twice with one seed and once with another.
func (s *studio) seed(ctx context.Context) {
	same, err := s.pair(ctx, [2]int64{1, 1}, nil)
	if err != nil {
		s.conclude(Seed, err)
		return
	}
	other, err := s.pair(ctx, [2]int64{1, 2}, nil)
	switch {
	case err != nil:
		s.conclude(Seed, err)
	case !same:
		s.find(Seed, Ignored, "the same seed draws other tokens")
	case other:
		s.find(Seed, Ignored, "another seed draws the same tokens")
	default:
		s.find(Seed, Supported, "")
	}
}

// choice tries a setting that leaves a single token to choose: then another seed draws the same.
func (s *studio) choice(ctx context.Context, f Feature, narrow func(*tinker.SamplingParams)) {
	wide, err := s.pair(ctx, [2]int64{1, 2}, nil)
	if err != nil {
		s.conclude(f, err)
		return
	}
	same, err := s.pair(ctx, [2]int64{1, 2}, narrow)
	switch {
	case err != nil:
		s.conclude(f, err)
	case wide:
		s.find(f, Unknown, "another seed draws the same tokens as it is")
	case !same:
		s.find(f, Ignored, "tokens are drawn as without it")
	default:
		s.find(f, Supported, "")
	}
}

// promptLogprobs compares those of a prompt with those of a forward pass over it.
func (s *studio) promptLogprobs(ctx context.Context) {
	got, err := s.API.ComputeLogprobs(ctx, s.session, s.seq.Add(1), sequence)
	if err != nil {
		s.conclude(PromptLogprobs, err)
		return
	}
	if s.blind { // there is nothing to compare with; their number is right
		s.find(PromptLogprobs, Supported, "")
		return
	}
	const tolerance = 0.25 // nats: sampler and trainer round differently
	far := 0.0
	for i, want := range s.base {
		far = max(far, math.Abs(float64(got[i+1])-want))
	}
	if far <= tolerance { // and not NaN
		s.find(PromptLogprobs, Supported, "")
		return
	}
	s.find(PromptLogprobs, Unsupported, fmt.Sprintf("they are %.2g nats from those of a forward pass", far))
}
