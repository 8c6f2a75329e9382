// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/json"
	"fmt"
	"math"
)

// DecodeOutputJSON decodes the result of forward_backward as servers without protobuf encode it. Numbers that are not
// finite are null in it.
func DecodeOutputJSON(body []byte) (ForwardBackwardResult, error) {
	var wire struct {
		Type    string                  `json:"loss_fn_output_type"`
		Outputs []map[string]tensorJSON `json:"loss_fn_outputs"`
		Metrics map[string]*float64     `json:"metrics"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return ForwardBackwardResult{}, fmt.Errorf("decoding result: %w", err)
	}
	if wire.Outputs == nil {
		return ForwardBackwardResult{}, fmt.Errorf("decoding result: it has no loss_fn_outputs")
	}
	result := ForwardBackwardResult{LossFnOutputType: wire.Type}
	for i, named := range wire.Outputs {
		outputs := make(map[string]Tensor, len(named))
		for name, tensor := range named {
			decoded, err := tensor.decode()
			if err != nil {
				return ForwardBackwardResult{}, fmt.Errorf("decoding output %s of datum %d: %w", name, i, err)
			}
			outputs[name] = decoded
		}
		result.LossFnOutputs = append(result.LossFnOutputs, outputs)
	}
	result.Metrics = finiteOrNaN(wire.Metrics)
	return result, nil
}

// decode decodes a tensor of a result, in which null is NaN. Servers may leave out its type, which then is float32.
func (t tensorJSON) decode() (Tensor, error) {
	out := Tensor{DType: t.DType, Shape: t.Shape}
	if out.DType == "" {
		out.DType = Float32
	}
	if t.Rows != nil {
		out.Sparse = &Sparse{Rows: t.Rows, Cols: t.Cols}
	}
	if out.DType.isInteger() {
		if err := json.Unmarshal(t.Data, &out.Int); err != nil {
			return Tensor{}, fmt.Errorf("decoding tensor data: %w", err)
		}
		return out, out.Validate()
	}
	var values []*float32
	if err := json.Unmarshal(t.Data, &values); err != nil {
		return Tensor{}, fmt.Errorf("decoding tensor data: %w", err)
	}
	out.Float = numbers(values)
	return out, out.Validate()
}

// DecodeSampleJSON decodes the result of asample as servers without protobuf encode it.
func DecodeSampleJSON(body []byte) (SampleResult, error) {
	var wire struct {
		Sequences []struct {
			StopReason StopReason `json:"stop_reason"`
			Tokens     []int32    `json:"tokens"`
			Logprobs   []*float32 `json:"logprobs"`
		} `json:"sequences"`
		PromptLogprobs []*float32      `json:"prompt_logprobs"`
		Topk           [][][2]*float64 `json:"topk_prompt_logprobs"`
		CacheHits      int             `json:"prompt_cache_hit_tokens"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return SampleResult{}, fmt.Errorf("decoding samples: %w", err)
	}
	if wire.Sequences == nil {
		return SampleResult{}, fmt.Errorf("decoding samples: there are no sequences")
	}
	result := SampleResult{PromptLogprobs: numbers(wire.PromptLogprobs), PromptCacheHitTokens: wire.CacheHits}
	for i, s := range wire.Sequences {
		sequence := SampledSequence{StopReason: s.StopReason, Tokens: s.Tokens, Logprobs: numbers(s.Logprobs)}
		if s.StopReason != StopReasonStop && s.StopReason != StopReasonLength {
			return SampleResult{}, fmt.Errorf("decoding samples: stop reason %q of sequence %d is unknown", s.StopReason, i)
		}
		if sequence.Logprobs != nil && len(sequence.Logprobs) != len(s.Tokens) {
			return SampleResult{}, fmt.Errorf("decoding samples: sequence %d has %d log-probabilities of %d tokens", i,
				len(sequence.Logprobs), len(s.Tokens))
		}
		result.Sequences = append(result.Sequences, sequence)
	}
	for _, row := range wire.Topk {
		var cells []TokenLogprob
		for _, cell := range row {
			if cell[0] == nil {
				return SampleResult{}, fmt.Errorf("decoding samples: a token of topk_prompt_logprobs is null")
			}
			cells = append(cells, TokenLogprob{Token: int32(*cell[0]), Logprob: float32(numberOrNaN(cell[1]))})
		}
		result.TopkPromptLogprobs = append(result.TopkPromptLogprobs, cells)
	}
	return result, nil
}

// numbers returns NaN for null; nil for nil.
func numbers(values []*float32) []float32 {
	if values == nil {
		return nil
	}
	out := make([]float32, len(values))
	for i, value := range values {
		out[i] = float32(math.NaN())
		if value != nil {
			out[i] = *value
		}
	}
	return out
}

func numberOrNaN(value *float64) float64 {
	if value == nil {
		return math.NaN()
	}
	return *value
}
