// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package export packs checkpoints in the formats in which they are downloaded.
package export

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// The files of an adapter: its configuration, and its matrices in the format safetensors.
const (
	ConfigFile   = "adapter_config.json"
	MatricesFile = "adapter_model.safetensors"
)

// peftConfig is the configuration of an adapter as the Python package PEFT reads it.
type peftConfig struct {
	Type          string   `json:"peft_type"`
	Task          string   `json:"task_type"`
	BaseModel     string   `json:"base_model_name_or_path"`
	Rank          int      `json:"r"`
	Alpha         int      `json:"lora_alpha"`
	Dropout       float64  `json:"lora_dropout"`
	Bias          string   `json:"bias"`
	FanInFanOut   bool     `json:"fan_in_fan_out"`
	InferenceMode bool     `json:"inference_mode"`
	Modules       []string `json:"target_modules"`
}

// PEFT returns a tar archive of an adapter's files in the format of PEFT. Equal adapters give equal bytes.
func PEFT(base string, adapter *model.Adapter) ([]byte, error) {
	files, err := PEFTFiles(base, adapter)
	if err != nil {
		return nil, err
	}
	return Tar(files...)
}

// PEFTFiles returns an adapter's files in the format of PEFT.
func PEFTFiles(base string, adapter *model.Adapter) ([]File, error) {
	rank := adapter.Config().Rank
	config := peftConfig{
		Type: "LORA", Task: "CAUSAL_LM", BaseModel: base, Rank: rank, Alpha: model.Alpha, Bias: "none", InferenceMode: true,
	}
	tensors := map[string]tensor{}
	for _, m := range adapter.Modules() {
		name := "base_model.model." + m.Name
		tensors[name+".lora_A.weight"] = tensor{shape: []int{rank, m.Inputs}, values: m.A}
		tensors[name+".lora_B.weight"] = tensor{shape: []int{m.Outputs, rank}, values: m.B}
		if last := m.Name[strings.LastIndex(m.Name, ".")+1:]; !slices.Contains(config.Modules, last) {
			config.Modules = append(config.Modules, last)
		}
	}
	matrices, err := encodeTensors(tensors)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the adapter's configuration: %w", err)
	}
	return []File{{ConfigFile, text}, {MatricesFile, matrices}}, nil
}
