// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/json"
	"fmt"
)

// SampleRequest is the body of POST asample. (SamplingSession, SeqID) identifies the request: if it is posted again,
// the server returns the samples of the first time. Decoding sets the default of one sample.
type SampleRequest struct {
	NumSamples      int            `json:"num_samples"`
	Prompt          ModelInput     `json:"prompt"`
	SamplingParams  SamplingParams `json:"sampling_params"`
	SamplingSession string         `json:"sampling_session_id,omitempty"`
	// SeqID is any number of 63 bits that is unique within the session; nil if the body has none.
	SeqID     *int64 `json:"seq_id,omitempty"`
	BaseModel string `json:"base_model,omitempty"`
	ModelPath string `json:"model_path,omitempty"`
	// PromptLogprobs requests the log-probability of each token of the prompt.
	PromptLogprobs bool `json:"prompt_logprobs"`
	// PromptLogprobsLastN asks for the last N log-probabilities, from 1 to the tokens of the prompt less one: the others
	// are NaN. 0 asks for all. Servers that do not know it return all.
	PromptLogprobsLastN int `json:"prompt_logprobs_last_n,omitempty"`
	// TopkPromptLogprobs is the number of requested alternatives to each token of the prompt.
	TopkPromptLogprobs int `json:"topk_prompt_logprobs"`
	// TopkSampleLogprobs is the number of requested alternatives to each sampled token. Package client never asks for any.
	TopkSampleLogprobs int `json:"topk_sample_logprobs,omitempty"`
	// TargetPromptLogprobs are tokens whose log-probabilities are requested, of type int64 and with a row for each token
	// of the prompt but the first; -1 requests nothing. Package client never asks for any.
	TargetPromptLogprobs *Tensor `json:"target_prompt_logprobs,omitempty"`
	// Type is set by the client.
	Type string `json:"type"`
}

// UnmarshalJSON sets missing fields to the defaults.
func (r *SampleRequest) UnmarshalJSON(data []byte) error {
	type plain SampleRequest
	*r = SampleRequest{NumSamples: 1, SamplingParams: DefaultSampling()}
	return json.Unmarshal(data, (*plain)(r))
}

// SamplingParams says how tokens are drawn. Zero values are sent as they are, so callers start from DefaultSampling;
// decoding does too.
type SamplingParams struct {
	// MaxTokens is the maximum number of tokens; nil means up to the context window.
	MaxTokens *int   `json:"max_tokens,omitempty"`
	Seed      *int64 `json:"seed,omitempty"`
	// Stop ends a sample; the stop token or string is part of the sample.
	Stop        Stop    `json:"stop,omitzero"`
	Temperature float64 `json:"temperature"`
	// TopK is the number of likeliest tokens to choose from; -1 means all tokens.
	TopK int     `json:"top_k"`
	TopP float64 `json:"top_p"`
}

// DefaultSampling returns temperature 1 over all tokens.
func DefaultSampling() SamplingParams {
	return SamplingParams{Temperature: 1, TopK: -1, TopP: 1}
}

// UnmarshalJSON sets missing fields to the defaults.
func (p *SamplingParams) UnmarshalJSON(data []byte) error {
	type plain SamplingParams
	*p = DefaultSampling()
	return json.Unmarshal(data, (*plain)(p))
}

// Stop is a list of strings or of token ids, but not of both. In JSON it is a list; decoding accepts a single string
// as well.
type Stop struct {
	Strings []string
	Tokens  []int32
}

// IsZero reports whether only the length ends a sample.
func (s Stop) IsZero() bool { return len(s.Strings) == 0 && len(s.Tokens) == 0 }

// MarshalJSON encodes the list. It fails if there are both strings and token ids.
func (s Stop) MarshalJSON() ([]byte, error) {
	if len(s.Strings) > 0 && len(s.Tokens) > 0 {
		return nil, fmt.Errorf("stop has both strings and tokens")
	}
	if len(s.Tokens) > 0 {
		return json.Marshal(s.Tokens)
	}
	return json.Marshal(s.Strings)
}

// UnmarshalJSON accepts null, a string, or a list of strings or of token ids.
func (s *Stop) UnmarshalJSON(data []byte) error {
	var one *string
	if json.Unmarshal(data, &one) == nil {
		*s = Stop{}
		if one != nil {
			s.Strings = []string{*one}
		}
		return nil
	}
	var strings []string
	if json.Unmarshal(data, &strings) == nil {
		*s = Stop{Strings: strings}
		return nil
	}
	var tokens []int32
	if err := json.Unmarshal(data, &tokens); err != nil {
		return fmt.Errorf("stop is neither a string nor a list of strings or token ids: %w", err)
	}
	*s = Stop{Tokens: tokens}
	return nil
}

// StopReason says why a sample ended.
type StopReason string

// The reasons.
const (
	StopReasonStop   StopReason = "stop"
	StopReasonLength StopReason = "length"
)

// SampleResult is the result of asample.
type SampleResult struct {
	Sequences []SampledSequence
	// PromptLogprobs has an entry for each token of the prompt, which is NaN for the first token; nil unless
	// requested.
	PromptLogprobs []float32
	// TopkPromptLogprobs has a row for each token of the prompt, likeliest first, which may be nil; nil unless
	// requested.
	TopkPromptLogprobs [][]TokenLogprob
	// TargetPromptLogprobs has the shape and layout of the tensor of the request, and 0 at elements with -1; nil unless
	// requested.
	TargetPromptLogprobs *Tensor
	// PromptCacheHitTokens is the number of tokens of the prompt that the server had in its cache.
	PromptCacheHitTokens int
}

// SampledSequence is one sample.
type SampledSequence struct {
	StopReason StopReason
	Tokens     []int32
	// Logprobs has an entry for each token; nil if the server returned none.
	Logprobs []float32
	// TopkLogprobs has a row for each token, likeliest first; nil unless requested.
	TopkLogprobs [][]TokenLogprob
}

// TokenLogprob is a token and its log-probability.
type TokenLogprob struct {
	Token   int32
	Logprob float32
}
