// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/export"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// adapterFile is the file of an archive with the adapter in tinkersim's own format.
const adapterFile = "adapter_model.bin"

// Get returns a listed checkpoint.
func (c *Checkpoints) Get(path tinker.Path) (checkpoint.Checkpoint, error) {
	if path.Kind != tinker.KindState && path.Kind != tinker.KindSampler {
		return checkpoint.Checkpoint{}, notFound("checkpoint", path.String())
	}
	return c.store.Checkpoint(path)
}

// peftFolder is the folder of a training state's archive with the adapter's files in the format of PEFT.
const peftFolder = "peft/"

// adapterConfig describes the adapter in an archive.
type adapterConfig struct {
	BaseModel    string      `json:"base_model"`
	Kind         tinker.Kind `json:"kind"`
	LoraRank     int         `json:"lora_rank"`
	TrainUnembed bool        `json:"train_unembed"`
	TrainMLP     bool        `json:"train_mlp"`
	TrainAttn    bool        `json:"train_attn"`
}

// Archive returns the archive of a checkpoint: the adapter without its optimizer state, and its configuration. Equal
// weights give equal files, whichever run saved them and when. The archive of a training state also has the adapter in
// the format of PEFT. Sampler weights are merged with the base model, so their archive has no adapter.
func (c *Checkpoints) Archive(path tinker.Path) ([]byte, error) {
	data, err := c.store.Read(path)
	if err != nil {
		return nil, err
	}
	run, err := c.store.Run(path.Run)
	if err != nil {
		return nil, err
	}
	var peft []export.File
	if path.Kind == tinker.KindState {
		adapter, err := model.UnmarshalAdapter(data)
		if err != nil {
			return nil, fmt.Errorf("decoding %s: %w", path, err)
		}
		data = adapter.MarshalState(false)
		if peft, err = export.PEFTFiles(run.BaseModel, adapter); err != nil {
			return nil, fmt.Errorf("exporting the adapter of %s: %w", path, err)
		}
	}
	config, err := json.Marshal(adapterConfig{
		BaseModel: run.BaseModel, Kind: path.Kind, LoraRank: run.Rank,
		TrainUnembed: run.TrainUnembed, TrainMLP: run.TrainMLP, TrainAttn: run.TrainAttention,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the adapter's configuration: %w", err)
	}
	files := []export.File{{Name: export.ConfigFile, Data: config}, {Name: adapterFile, Data: data}}
	for _, file := range peft {
		files = append(files, export.File{Name: peftFolder + file.Name, Data: file.Data})
	}
	return export.Tar(files...)
}
