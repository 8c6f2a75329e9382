// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"math"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// sampleJSON is the JSON form of a sampling result for clients before 0.25.
type sampleJSON struct {
	Type           string         `json:"type"`
	Sequences      []sequenceJSON `json:"sequences"`
	PromptLogprobs []*float32     `json:"prompt_logprobs"`
	Topk           [][][2]any     `json:"topk_prompt_logprobs"`
}

type sequenceJSON struct {
	StopReason tinker.StopReason `json:"stop_reason"`
	Tokens     []int32           `json:"tokens"`
	Logprobs   []float32         `json:"logprobs"`
}

func legacySample(result tinker.SampleResult) sampleJSON {
	legacy := sampleJSON{Type: tinker.TypeSample}
	for _, s := range result.Sequences {
		legacy.Sequences = append(legacy.Sequences, sequenceJSON{StopReason: s.StopReason, Tokens: s.Tokens,
			Logprobs: s.Logprobs})
	}
	if result.PromptLogprobs != nil {
		legacy.PromptLogprobs = nullable(result.PromptLogprobs)
	}
	for _, row := range result.TopkPromptLogprobs {
		var cells [][2]any
		for _, cell := range row {
			cells = append(cells, [2]any{cell.Token, cell.Logprob})
		}
		legacy.Topk = append(legacy.Topk, cells)
	}
	return legacy
}

// outputJSON is the JSON form of a forward_backward result for clients before 0.25. Numbers that are not finite
// are null in it.
type outputJSON struct {
	LossFnOutputType string                  `json:"loss_fn_output_type"`
	LossFnOutputs    []map[string]tensorJSON `json:"loss_fn_outputs"`
	Metrics          map[string]*float64     `json:"metrics"`
}

type tensorJSON struct {
	Data  []*float32   `json:"data"`
	DType tinker.DType `json:"dtype"`
	Shape []int64      `json:"shape,omitempty"`
}

// legacyOutput converts a result of the simulator. All its tensors are dense and contain floats.
func legacyOutput(result tinker.ForwardBackwardResult) outputJSON {
	legacy := outputJSON{
		LossFnOutputType: result.LossFnOutputType,
		LossFnOutputs:    []map[string]tensorJSON{},
		Metrics:          tinker.NullableMetrics(result.Metrics),
	}
	for _, named := range result.LossFnOutputs {
		outputs := map[string]tensorJSON{}
		for name, tensor := range named {
			outputs[name] = tensorJSON{Data: nullable(tensor.Float), DType: tensor.DType, Shape: tensor.Shape}
		}
		legacy.LossFnOutputs = append(legacy.LossFnOutputs, outputs)
	}
	return legacy
}

// nullable returns numbers in the form that JSON can represent: numbers that are not finite are nil.
func nullable(values []float32) []*float32 {
	out := make([]*float32, len(values))
	for i, value := range values {
		if wide := float64(value); !math.IsNaN(wide) && !math.IsInf(wide, 0) {
			out[i] = &value
		}
	}
	return out
}
