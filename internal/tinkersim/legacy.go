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
		legacy.Sequences = append(legacy.Sequences, sequenceJSON{StopReason: s.StopReason, Tokens: s.Tokens, Logprobs: s.Logprobs})
	}
	for _, logprob := range result.PromptLogprobs {
		entry := new(logprob)
		if math.IsNaN(float64(logprob)) {
			entry = nil
		}
		legacy.PromptLogprobs = append(legacy.PromptLogprobs, entry)
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
