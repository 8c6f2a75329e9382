// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// The number of prompts, which are prefixes of the sequence, and of samples of one token after each.
const (
	numPrompts = 16
	numSamples = 32
)

// samplingCheck checks sampling from the initial weights of the first model.
type samplingCheck struct {
	api      *client.Client
	findings *findings
	session  string
	seq      atomic.Int64
	// initial are the log-probabilities of the weights. noLogprobs says that the server returns none.
	initial    []float64
	noLogprobs bool
	// firstSeed is added to the seeds of all requests. seedsRefused says that the server refused seeds of 63 bits.
	firstSeed    int64
	seedsRefused string
}

// draw is a set of samples: the first seed of its requests, and how a setting narrows it. drawn and err are its result.
type draw struct {
	seed   int64
	narrow func(*tinker.SamplingParams)
	drawn  [][]string
	err    error
}

// sampled returns the wanted features that samples from the first model's initial weights show.
func (k *check) sampled() []Feature {
	return slices.DeleteFunc([]Feature{Seed, NumSamples, Temperature, TopK, TopP, PromptLogprobs, PromptLogprobsLastN},
		func(f Feature) bool { return !k.findings.wants(f) })
}

// sampleFrom creates the session in which the initial weights are sampled.
func (k *check) sampleFrom(ctx context.Context) error {
	session, err := k.trainer.API.CreateSamplingSession(ctx, k.trainer.session, 0, k.sampler, "")
	if err == nil {
		k.samples = &samplingCheck{api: k.trainer.API, findings: k.findings, session: session, initial: k.trainer.initial,
			noLogprobs: k.noLogprobs, firstSeed: longSeed}
	}
	return err
}

// trySeed asks for a sample with a seed of 63 bits before any others are drawn: a server may refuse all samples that it
// draws together with one whose seed it cannot keep, as SkyRL does. Errors show again later.
func (k *check) trySeed(ctx context.Context) {
	if len(k.sampled()) == 0 {
		return
	}
	if k.early != nil {
		<-k.early.done // which samples as well
	}
	ctx, cancel := context.WithTimeout(ctx, k.trainer.Patience)
	defer cancel()
	if k.sampleFrom(ctx) != nil {
		return
	}
	s, params := k.samples, tinker.DefaultSampling()
	params.MaxTokens, params.Seed = new(1), new(int64(longSeed))
	_, err := s.api.Sample(ctx, tinker.SampleRequest{
		NumSamples: 1, Prompt: tinker.Text(sequence), SamplingParams: params, SamplingSession: s.session,
		SeqID: new(s.seq.Add(1)),
	})
	if isRejected(err) {
		s.useShortSeeds(err)
	}
}

// checkSampling checks seeds, the choice of tokens, and the log-probabilities of prompts.
func (k *check) checkSampling(ctx context.Context) {
	wanted := k.sampled()
	if len(wanted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, k.trainer.Patience)
	defer cancel()
	if k.samples == nil {
		if err := k.sampleFrom(ctx); err != nil {
			for _, f := range wanted {
				k.findings.recordError(f, err)
			}
			return
		}
	}
	var parts sync.WaitGroup
	if k.findings.wants(PromptLogprobs) {
		parts.Go(func() { k.samples.promptLogprobs(ctx) })
		wanted = slices.DeleteFunc(wanted, func(f Feature) bool { return f == PromptLogprobs })
	}
	if k.findings.wants(PromptLogprobsLastN) {
		parts.Go(func() { k.samples.lastLogprobs(ctx) })
		wanted = slices.DeleteFunc(wanted, func(f Feature) bool { return f == PromptLogprobsLastN })
	}
	if len(wanted) > 0 {
		k.samples.choices(ctx, wanted)
	}
	parts.Wait()
}

// choices checks seeds and the settings that leave a single token to choose, except for noise. All samples are drawn
// concurrently, since each takes as long as a sample of a run. If the server refuses seeds of 63 bits, they are drawn
// again with small seeds.
func (s *samplingCheck) choices(ctx context.Context, wanted []Feature) {
	wide, sets := s.drawAll(ctx, wanted)
	if s.seedsRefused == "" && isRejected(wide.err) {
		s.useShortSeeds(wide.err)
		wide, sets = s.drawAll(ctx, wanted)
	}
	for _, f := range wanted {
		err := wide.err
		for _, d := range sets[f] {
			err = cmp.Or(err, d.err)
		}
		if err != nil {
			s.findings.recordError(f, err)
			continue
		}
		var support Support
		var note string
		switch f {
		case Seed:
			s.recordSeed(seeding(wide.drawn, sets[f][0].drawn, sets[f][1].drawn))
			continue
		case NumSamples:
			support, note = placing(wide.drawn, sets[f][0].drawn, sets[f][1].drawn)
		default:
			support, note = narrowing(wide.drawn, sets[f][0].drawn)
		}
		s.findings.record(f, support, note)
	}
}

// useShortSeeds makes further samples use seeds of 31 bits.
func (s *samplingCheck) useShortSeeds(refused error) {
	s.firstSeed, s.seedsRefused = 0, refused.Error()
}

func (s *samplingCheck) recordSeed(support Support, note string) {
	if s.seedsRefused != "" {
		support, note = Unsupported, "seeds of 63 bits are refused: "+s.seedsRefused
	}
	s.findings.record(Seed, support, note)
}

// drawAll draws samples that no setting narrows, and the samples that they are compared with for each feature:
// samples with equal and with different seeds, or with the feature's setting.
func (s *samplingCheck) drawAll(ctx context.Context, wanted []Feature) (wide *draw, sets map[Feature][]*draw) {
	repeated := []*draw{{seed: seedWide}, {seed: seedOther}}
	all := map[Feature][]*draw{
		Seed:        repeated,
		NumSamples:  repeated,
		Temperature: {{seed: seedNarrow, narrow: func(p *tinker.SamplingParams) { p.Temperature = 0.01 }}},
		TopK:        {{seed: seedNarrow, narrow: func(p *tinker.SamplingParams) { p.TopK = 1 }}},
		TopP:        {{seed: seedNarrow, narrow: func(p *tinker.SamplingParams) { p.TopP = 1e-3 }}},
	}
	wide = &draw{seed: seedWide}
	draws := []*draw{wide}
	for _, f := range wanted {
		if !slices.Contains(draws, all[f][0]) {
			draws = append(draws, all[f]...)
		}
	}
	var inFlight sync.WaitGroup
	for _, d := range draws {
		inFlight.Go(func() { d.drawn, d.err = s.draw(ctx, d.seed, d.narrow) })
	}
	inFlight.Wait()
	return wide, all
}

// draw draws samples after each of several prompts. The requests have consecutive seeds, beginning with the given
// one. It samples under new numbers, so that the server does not return earlier samples.
func (s *samplingCheck) draw(ctx context.Context, seed int64, change func(*tinker.SamplingParams)) ([][]string, error) {
	params := tinker.DefaultSampling()
	params.MaxTokens = new(1)
	if change != nil {
		change(&params)
	}
	drawn := make([][]string, numPrompts)
	requests, ctx := errgroup.WithContext(ctx)
	for i := range drawn {
		own := params
		own.Seed = new(s.firstSeed + seed + int64(i))
		requests.Go(func() error {
			result, err := s.api.Sample(ctx, tinker.SampleRequest{
				NumSamples: numSamples, Prompt: tinker.Text(sequence[:len(sequence)-i]), SamplingParams: own,
				SamplingSession: s.session, SeqID: new(s.seq.Add(1)),
			})
			for _, sample := range result.Sequences {
				drawn[i] = append(drawn[i], fmt.Sprint(sample.Tokens))
			}
			return err
		})
	}
	return drawn, requests.Wait()
}

// The first seeds of the requests.
const (
	seedWide   = 1
	seedOther  = 101
	seedNarrow = 201
)

// longSeed has 63 bits, as most seeds of a run have.
const longSeed = 1 << 62

// promptLogprobs compares the log-probabilities of a prompt with those of a forward pass over it.
func (s *samplingCheck) promptLogprobs(ctx context.Context) {
	got, err := s.api.ComputeLogprobs(ctx, s.session, s.seq.Add(1), sequence)
	if err != nil {
		s.findings.recordError(PromptLogprobs, err)
		return
	}
	if s.noLogprobs { // there is nothing to compare them with; their number is right
		s.findings.record(PromptLogprobs, Supported, "")
		return
	}
	// Sampler and trainer round differently. These are root mean squares in nats.
	const near, far = 0.35, 0.6
	squares := 0.0
	for i, want := range s.initial {
		squares += math.Pow(float64(got[i+1])-want, 2)
	}
	distance := math.Sqrt(squares / float64(len(s.initial)))
	note := fmt.Sprintf("they differ from those of a forward pass by %.2g nats", distance)
	switch {
	case distance <= near:
		s.findings.record(PromptLogprobs, Supported, "")
	case distance <= far:
		s.findings.record(PromptLogprobs, Unknown, note)
	default: // this includes NaN
		s.findings.record(PromptLogprobs, Unsupported, note)
	}
}

// lastLogprobs asks for the log-probabilities of the last tokens of a prompt. A server that does not know the field
// returns the log-probabilities of all tokens.
func (s *samplingCheck) lastLogprobs(ctx context.Context) {
	const last = 2
	params := tinker.DefaultSampling()
	params.MaxTokens = new(1)
	result, err := s.api.Sample(ctx, tinker.SampleRequest{
		NumSamples: 1, Prompt: tinker.Text(sequence), SamplingParams: params, SamplingSession: s.session,
		SeqID: new(s.seq.Add(1)), PromptLogprobs: true, PromptLogprobsLastN: last,
	})
	got := result.PromptLogprobs
	isThere := func(v float32) bool { return finite.Is(float64(v)) }
	switch {
	case err != nil:
		s.findings.recordError(PromptLogprobsLastN, err)
	case len(got) != len(sequence) || !isThere(got[len(got)-1]) || !isThere(got[len(got)-last]):
		s.findings.record(PromptLogprobsLastN, Unsupported, fmt.Sprintf("%d of %d log-probabilities are returned, without "+
			"the last", len(got), len(sequence)))
	case slices.ContainsFunc(got[:len(got)-last], isThere):
		s.findings.record(PromptLogprobsLastN, Ignored, "the log-probabilities of the whole prompt are returned")
	default:
		s.findings.record(PromptLogprobsLastN, Supported, "")
	}
}
