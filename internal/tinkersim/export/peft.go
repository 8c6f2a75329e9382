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
	var modules []string
	tensors := map[string]tensor{}
	for _, m := range adapter.Modules() {
		name := "base_model.model." + m.Name
		tensors[name+".lora_A.weight"] = tensor{shape: []int{rank, m.Inputs}, values: m.A}
		tensors[name+".lora_B.weight"] = tensor{shape: []int{m.Outputs, rank}, values: m.B}
		if last := m.Name[strings.LastIndex(m.Name, ".")+1:]; !slices.Contains(modules, last) {
			modules = append(modules, last)
		}
	}
	matrices, err := encodeTensors(tensors)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(map[string]any{
		"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base, "target_modules": modules,
		"r": rank, "lora_alpha": model.Alpha, "lora_dropout": 0, "bias": "none", "fan_in_fan_out": false,
		"inference_mode": true,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the adapter's configuration: %w", err)
	}
	return []File{{ConfigFile, text}, {MatricesFile, matrices}}, nil
}
