// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// CreateSamplingSession creates the sampling session (session, seq), or finds it, and returns its id. It samples from
// modelPath, or from baseModel if modelPath is empty. If the number is in use, the server returns that session
// whatever it samples from, so callers must not use a number for two sets of weights.
func (c *Client) CreateSamplingSession(ctx context.Context, session string, seq int64, modelPath,
	baseModel string) (string, error) {
	created, err := post(ctx, c.caller, tinker.TypeCreateSamplingSession, tinker.TypeCreateSamplingSession,
		tinker.CreateSamplingSessionRequest{
			Session: session, Seq: seq, BaseModel: baseModel, ModelPath: modelPath, Type: tinker.TypeCreateSamplingSession,
		},
		func(created tinker.CreateSamplingSessionResponse) error {
			return required("sampling_session_id", created.SamplingSession)
		})
	return created.SamplingSession, err
}

const opSample = "asample"

// Sample draws samples and waits for them. If it is called again with the same session and number, after whatever
// error, it returns the same samples. CategoryFutureLost says that the samples are lost and must be requested under
// another number.
func (c *Client) Sample(ctx context.Context, r tinker.SampleRequest) (tinker.SampleResult, error) {
	r.Type = tinker.TypeSample
	req, err := postJSON(opSample, opSample, r)
	if err != nil {
		return tinker.SampleResult{}, err
	}
	req.header = map[string]string{"X-Tinker-Sampling-Backpressure": "1"}
	req.dispatches = &c.dispatches
	decode := decodeEither(opSample, padded(r.Prompt, tinker.DecodeSample), padded(r.Prompt, tinker.DecodeSampleJSON),
		func(result tinker.SampleResult) error {
			if len(result.Sequences) != r.NumSamples {
				return fmt.Errorf("result has %d samples, not %d", len(result.Sequences), r.NumSamples)
			}
			return nil
		})
	if _, err := c.connect(ctx); err != nil {
		return tinker.SampleResult{}, err
	}
	if err := c.samples.Reserve(ctx, 1); err != nil {
		return tinker.SampleResult{}, canceled(opSample, err)
	}
	defer c.samples.Add(1)
	cost := c.meter.chargeOfSample(ctx, r)
	p, err := c.submitCharged(ctx, req, cost)
	if err != nil {
		c.followSample(ctx, req, cost, err, decode)
		return tinker.SampleResult{}, err
	}
	return fetchCharged(ctx, c.caller, p, decode)
}

// padded returns a decoder of samples that adds a NaN for the first token of the prompt if it is missing. This token
// has no log-probability, and some servers, such as SkyRL, leave out its place.
func padded(prompt tinker.ModelInput,
	decode func([]byte) (tinker.SampleResult, error)) func([]byte) (tinker.SampleResult, error) {
	return func(body []byte) (tinker.SampleResult, error) {
		result, err := decode(body)
		if tokens, ok := prompt.TextTokens(); err == nil && ok && result.PromptLogprobs != nil &&
			len(result.PromptLogprobs) == len(tokens)-1 {
			result.PromptLogprobs = slices.Insert(result.PromptLogprobs, 0, float32(math.NaN()))
		}
		return result, err
	}
}

// ComputeLogprobs returns the log-probability of each token given the tokens before it; the value of the first is NaN.
// seq is the number of the request within the sampling session, as for Sample.
func (c *Client) ComputeLogprobs(ctx context.Context, samplingSession string, seq int64,
	tokens []int32) ([]float32, error) {
	params := tinker.DefaultSampling()
	params.MaxTokens = new(1)
	result, err := c.Sample(ctx, tinker.SampleRequest{
		NumSamples: 1, Prompt: tinker.Text(tokens), SamplingParams: params,
		SamplingSession: samplingSession, SeqID: &seq, PromptLogprobs: true,
	})
	if err == nil && len(result.PromptLogprobs) != len(tokens) {
		err = protocolError(opSample, fmt.Errorf("result has %d log-probabilities of %d tokens", len(result.PromptLogprobs),
			len(tokens)))
	}
	if err != nil {
		return nil, err
	}
	return result.PromptLogprobs, nil
}
