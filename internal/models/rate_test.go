// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"math"
	"testing"
)

// TestLearningRate compares rates with the results of get_lr of tinker-cookbook 0.5.8.
func TestLearningRate(t *testing.T) {
	for model, want := range map[string]float64{
		"meta-llama/Llama-3.2-1B": 4.908e-4, "meta-llama/Llama-3.1-8B": 2.856e-4,
		"meta-llama/Llama-3.3-70B-Instruct": 1.662e-4, "Qwen/Qwen3-8B": 4.730e-4, "Qwen/Qwen3.5-9B": 4.730e-4,
		"Qwen/Qwen3-30B-A3B": 4.991e-4, "Qwen/Qwen3-32B": 4.649e-4,
	} {
		if got, ok := LearningRate(model); !ok || math.Abs(got-want) > 1e-7 {
			t.Errorf("%s: %v, %t, want %v", model, got, ok, want)
		}
	}
	if got, ok := LearningRate("openai/gpt-oss-20b"); ok {
		t.Errorf("a model of another family has %v", got)
	}
	for model := range hiddenSizes {
		if _, err := Lookup(model); err != nil {
			t.Errorf("%s is no model of the table: %v", model, err)
		}
	}
}
