// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"math"
	"strings"
)

// hiddenSizes are the widths of the models to which the rule of LearningRate applies, from their config.json.
var hiddenSizes = map[string]float64{
	"meta-llama/Llama-3.1-8B":            4096,
	"meta-llama/Llama-3.1-8B-Instruct":   4096,
	"meta-llama/Llama-3.1-70B":           8192,
	"meta-llama/Llama-3.2-1B":            2048,
	"meta-llama/Llama-3.2-3B":            3072,
	"meta-llama/Llama-3.3-70B-Instruct":  8192,
	"Qwen/Qwen3-8B-Base":                 4096,
	"Qwen/Qwen3-8B":                      4096,
	"Qwen/Qwen3-32B":                     5120,
	"Qwen/Qwen3-30B-A3B-Base":            2048,
	"Qwen/Qwen3-30B-A3B":                 2048,
	"Qwen/Qwen3-30B-A3B-Instruct-2507":   2048,
	"Qwen/Qwen3-4B-Instruct-2507":        2560,
	"Qwen/Qwen3-235B-A22B-Instruct-2507": 4096,
	"Qwen/Qwen3.5-4B":                    2560,
	"Qwen/Qwen3.5-9B-Base":               4096,
	"Qwen/Qwen3.5-9B":                    4096,
	"Qwen/Qwen3.5-27B":                   5120,
	"Qwen/Qwen3.5-35B-A3B-Base":          2048,
	"Qwen/Qwen3.5-35B-A3B":               2048,
	"Qwen/Qwen3.5-397B-A17B":             4096,
	"Qwen/Qwen3.6-27B":                   5120,
	"Qwen/Qwen3.6-35B-A3B":               2048,
	"Qwen/Qwen3.8-27B":                   5120,
}

// LearningRate returns the learning rate that tinker-cookbook gives for supervised training of a LoRA adapter of a
// model: get_lr of its hyperparam_utils.py, which was fitted to models of the Llama and Qwen families. The rate does
// not depend on the rank, and was not fitted to reinforcement learning. LearningRate returns false for all other
// models.
func LearningRate(model string) (rate float64, ok bool) {
	size, ok := hiddenSizes[model]
	if !ok {
		return 0, false
	}
	// The rate of all weights, a LoRA adapter's multiple of it, and a model's size.
	const full, lora, width = 5e-5, 10, 2000
	exponent := 0.0775
	if strings.HasPrefix(model, "meta-llama/") {
		exponent = 0.781
	}
	return full * lora * math.Pow(width/size, exponent), true
}
