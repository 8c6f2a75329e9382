// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// reference computes log-probabilities under the reference of the run's KL penalty.
type reference struct {
	policy *policy
	from   weights
	// session is the number of the sampling session, which no policy has. Each version of the policy has another, so that
	// a slot that is played again under another policy does not get the log-probabilities of the former tokens.
	session int64
}

func newReference(p *policy, r algorithm.Reference) *reference {
	from := weights{path: r.Checkpoint, base: r.Model}
	return &reference{policy: p, from: from, session: rl.SamplingSession(rl.Train, p.group.key.Lineage,
		"reference "+r.String())}
}

// Logprobs implements episode.Reference. It tries again as policy.Sample does, and fails as that does.
func (r *reference) Logprobs(ctx context.Context, request episode.Request) ([]float32, error) {
	var logprobs []float32
	from := func() weights { return r.from }
	err := r.policy.repeat(ctx, request, rl.UseReference, from, func(number int64) (key samplerKey, err error) {
		logprobs, key, err = r.once(ctx, request.Prompt, number)
		return key, err
	})
	return logprobs, err
}

// once computes them under one number. They come with a sample of one token, which is not used.
func (r *reference) once(ctx context.Context, tokens []int32, number int64) ([]float32, samplerKey, error) {
	key, session, err := r.policy.worker.sessions.sampler(ctx, r.session, r.from)
	if err != nil {
		return nil, samplerKey{}, err
	}
	params := tinker.DefaultSampling()
	params.MaxTokens = new(1)
	result, err := r.policy.worker.config.Endpoint.Sample(client.WithUse(ctx, client.UseReference), tinker.SampleRequest{
		NumSamples: 1, Prompt: tinker.Text(tokens), SamplingSession: session, SeqID: &number, SamplingParams: params,
		PromptLogprobs: true,
	})
	if err != nil {
		return nil, key, fmt.Errorf("computing log-probabilities of the reference: %w", err)
	}
	if len(result.PromptLogprobs) != len(tokens) {
		return nil, key, &client.Error{
			Category: tinker.CategoryProtocol, Op: opSample, MayHaveRun: true,
			Err: fmt.Errorf("computing log-probabilities of the reference: %d for %d tokens", len(result.PromptLogprobs),
				len(tokens)),
		}
	}
	for i, v := range result.PromptLogprobs[1:] {
		if v := float64(v); !finite.Is(v) {
			err := errors.New("the reference gives a token the log-probability " + fmt.Sprint(v))
			return nil, key, &episode.RefusedError{Err: fmt.Errorf("token %d: %w", i+1, err)}
		}
	}
	return result.PromptLogprobs, key, nil
}

var _ episode.Reference = (*reference)(nil)
