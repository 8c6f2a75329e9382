// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"math"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rl/distill"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// scorer computes the log-probabilities of sampled tokens under the reference of the run's KL penalty, or under a
// teacher.
type scorer struct {
	policy *policy
	from   weights
	// session is the number of the sampling session. References and teachers do not share it with the policy, but it
	// differs for each version of the policy: a slot that is played again under another policy does not get the
	// log-probabilities of the former tokens.
	session int64
	use     rl.Use
	counted client.Use
}

// newScorer returns the scorer of a model or checkpoint, for rl.UseReference or rl.UseTeacher.
func newScorer(p *policy, use rl.Use, r algorithm.Reference) *scorer {
	s := &scorer{
		policy: p, from: weights{path: r.Checkpoint, base: r.Model}, use: use, counted: client.UseReference,
		session: rl.SamplingSession(rl.Train, p.group.key.Lineage, string(use)+" "+r.String()),
	}
	if use == rl.UseTeacher {
		s.counted = client.UseTeacher
	}
	return s
}

// Logprobs implements episode.Scorer: the policy that the lease names scores, in its own session.
func (p *policy) Logprobs(ctx context.Context, request episode.Request, last int) ([]float32, error) {
	lease := p.group.lease.Load()
	s := &scorer{policy: p, from: weightsOf(lease.Sampler), session: lease.SamplingSession, use: rl.UsePrompt,
		counted: client.UsePolicy}
	return s.Logprobs(ctx, request, last)
}

// Logprobs implements episode.Scorer. It tries again and fails as policy.Sample does.
func (s *scorer) Logprobs(ctx context.Context, request episode.Request, last int) ([]float32, error) {
	var logprobs []float32
	from := func() weights { return s.from }
	err := s.policy.repeat(ctx, request, s.use, from, func(number int64) (key samplerKey, err error) {
		logprobs, key, err = s.once(ctx, request.Prompt, last, number)
		return key, err
	})
	return logprobs, err
}

// once computes the log-probabilities of the last tokens under one number. They come with a sample of one token, which
// is not used. Log-probabilities that cannot be right are a wrong answer of the endpoint, which is asked again under
// another number.
func (s *scorer) once(ctx context.Context, tokens []int32, last int, number int64) ([]float32, samplerKey, error) {
	key, session, err := s.policy.worker.sessions.sampler(ctx, s.session, s.from)
	if err != nil {
		return nil, samplerKey{}, err
	}
	result, err := s.ask(ctx, session, tokens, last, number)
	if err != nil {
		return nil, key, fmt.Errorf("computing log-probabilities of the %s: %w", s.use, err)
	}
	if len(result.PromptLogprobs) != len(tokens) {
		return nil, key, s.wrong("there are %d for %d tokens", len(result.PromptLogprobs), len(tokens))
	}
	logprobs := result.PromptLogprobs[len(tokens)-last:]
	for i, v := range logprobs {
		isImpossible := s.use == rl.UsePrompt && math.IsInf(float64(v), -1) // An agent may ask about any token.
		if !distill.IsLogprob(v) && !isImpossible {
			return nil, key, s.wrong("token %d has %v", len(tokens)-last+i, v)
		}
	}
	return logprobs, key, nil
}

// wholePrompt is the bit by which the number of a request for a whole prompt differs from the number of the refused
// request.
const wholePrompt = 1 << 61

// ask asks for the log-probabilities of the last tokens, or of all tokens if the endpoint refuses requests for a
// part. The worker remembers such a refusal. An endpoint that ignores PromptLogprobsLastN returns all
// log-probabilities.
func (s *scorer) ask(ctx context.Context, session string, tokens []int32, last int,
	number int64) (tinker.SampleResult, error) {
	ctx, config, whole := client.WithUse(ctx, s.counted), s.policy.worker.config, &s.policy.worker.scoresWholePrompts
	request := tinker.SampleRequest{
		NumSamples: 1, Prompt: tinker.Text(tokens), SamplingSession: session, SeqID: &number,
		SamplingParams: tinker.DefaultSampling(), PromptLogprobs: true,
	}
	request.SamplingParams.MaxTokens = new(1)
	if last >= len(tokens) || whole.Load() {
		return config.Endpoint.Sample(ctx, request)
	}
	request.PromptLogprobsLastN = last
	result, err := config.Endpoint.Sample(ctx, request)
	if err == nil || retryFor(err) != retryRefused {
		return result, err
	}
	request.PromptLogprobsLastN, request.SeqID = 0, new(number^wholePrompt)
	result, again := config.Endpoint.Sample(ctx, request)
	if again != nil {
		return result, again
	}
	if !whole.Swap(true) {
		config.Logger.Warn("the endpoint refuses prompt_logprobs_last_n, so that teachers and references score whole prompts",
			"err", err)
	}
	return result, nil
}

// wrong returns the error for log-probabilities that cannot be right.
func (s *scorer) wrong(format string, args ...any) error {
	return &client.Error{
		Category: tinker.CategoryProtocol, Op: opSample, MayHaveRun: true,
		Err: fmt.Errorf("computing log-probabilities of the %s, %s: %s", s.use, s.from, fmt.Sprintf(format, args...)),
	}
}

var (
	_ episode.Scorer = (*scorer)(nil)
	_ episode.Scorer = (*policy)(nil)
)
