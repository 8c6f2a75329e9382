// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"context"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// SamplingAPI is the part of the Tinker API that samples.
type SamplingAPI interface {
	CreateSamplingSession(ctx context.Context, session string, seq int64, modelPath, baseModel string) (string, error)
	Sample(ctx context.Context, request tinker.SampleRequest) (tinker.SampleResult, error)
}

// Finding is the result of questions about a version.
type Finding int

const (
	// FindingUnknown means that the endpoint does not sample at all, or that it does not find the version.
	FindingUnknown Finding = iota
	// FindingSound means that the endpoint samples valid tokens of the version.
	FindingSound
	// FindingDiverged means that the endpoint samples the base model, and no valid tokens of the version.
	FindingDiverged
)

// Question asks for one token of a known prompt.
type Question struct {
	API SamplingAPI
	// Session is the session of the sampling sessions. Number returns another number for each question, which no sampling
	// session of the run has.
	Session string
	Number  func(what string) int64
	// Base is the model that the run trains.
	Base string
	// Pause waits before the next question.
	Pause func(ctx context.Context, failures int) error
}

// strikes is the number of times in a row that a version has to fail beside a sound base model.
const strikes = 5

// Ask finds out whether the version at a path of sampler weights has diverged. The error has the endpoint's answer for
// the version.
func (q Question) Ask(ctx context.Context, path string) (Finding, error) {
	var refusal error
	for i := range strikes {
		if i > 0 {
			if err := q.Pause(ctx, i); err != nil {
				return FindingUnknown, err
			}
		}
		if refusal = q.sample(ctx, path, ""); refusal == nil {
			return FindingSound, nil
		}
		if failure.CodeOf(refusal) == failure.Missing || ctx.Err() != nil {
			return FindingUnknown, refusal
		}
		if err := q.sample(ctx, "", q.Base); err != nil {
			return FindingUnknown, err
		}
	}
	return FindingDiverged, refusal
}

// sample draws one token from sampler weights, or from a base model, and checks it.
func (q Question) sample(ctx context.Context, path, base string) error {
	sampling, err := q.API.CreateSamplingSession(ctx, q.Session, q.Number(path+base), path, base)
	if err != nil {
		return fmt.Errorf("opening the sampler: %w", err)
	}
	params := tinker.DefaultSampling()
	params.MaxTokens, params.Seed = new(1), new(int64(1))
	result, err := q.API.Sample(ctx, tinker.SampleRequest{
		NumSamples: 1, Prompt: tinker.Text([]int32{1, 1}), SamplingSession: sampling, SeqID: new(int64(1)),
		SamplingParams: params,
	})
	if err != nil {
		return fmt.Errorf("sampling one token: %w", err)
	}
	return check(result)
}

// check returns an error unless the result is one valid token.
func check(result tinker.SampleResult) error {
	if len(result.Sequences) != 1 {
		return &client.Error{Category: tinker.CategoryProtocol, Err: fmt.Errorf("sampling one token: there are %d samples",
			len(result.Sequences))}
	}
	for i, token := range result.Sequences[0].Tokens {
		if token < 0 {
			return fmt.Errorf("sampling one token: the token is %d", token)
		}
		if i < len(result.Sequences[0].Logprobs) && !finite.Is(float64(result.Sequences[0].Logprobs[i])) {
			return errors.New("sampling one token: its log-probability is not finite")
		}
	}
	return nil
}
