// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// The files of an archive.
const (
	adapterFile       = "adapter_model.bin"
	adapterConfigFile = "adapter_config.json"
)

// Get returns a listed checkpoint.
func (c *Checkpoints) Get(path tinker.Path) (checkpoint.Checkpoint, error) {
	if path.Kind == checkpoint.Ephemeral {
		return checkpoint.Checkpoint{}, notFound("checkpoint", path.String())
	}
	return c.store.Checkpoint(path)
}

// adapterConfig describes the adapter in an archive.
type adapterConfig struct {
	BaseModel    string      `json:"base_model"`
	Kind         tinker.Kind `json:"kind"`
	LoraRank     int         `json:"lora_rank"`
	TrainUnembed bool        `json:"train_unembed"`
	TrainMLP     bool        `json:"train_mlp"`
	TrainAttn    bool        `json:"train_attn"`
}

// Archive returns the archive of a checkpoint: the adapter without its optimizer state, and its
// configuration. Equal weights give equal files, whichever run saved them and when.
func (c *Checkpoints) Archive(path tinker.Path) ([]byte, error) {
	data, err := c.store.Read(path)
	if err != nil {
		return nil, err
	}
	run, err := c.store.Run(path.Run)
	if err != nil {
		return nil, err
	}
	if path.Kind == tinker.KindState {
		adapter, err := model.UnmarshalState(model.Base(), data, false)
		if err != nil {
			return nil, fmt.Errorf("decoding %s: %w", path, err)
		}
		if data, err = adapter.MarshalState(false); err != nil {
			return nil, fmt.Errorf("encoding the adapter of %s: %w", path, err)
		}
	}
	config, err := json.Marshal(adapterConfig{
		BaseModel: run.BaseModel, Kind: path.Kind, LoraRank: run.Rank,
		TrainUnembed: run.TrainUnembed, TrainMLP: run.TrainMLP, TrainAttn: run.TrainAttention,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the adapter's configuration: %w", err)
	}
	return tarOf(tarFile{adapterConfigFile, config}, tarFile{adapterFile, data})
}

type tarFile struct {
	name string
	data []byte
}

// tarOf returns a tar archive of files without times and owners.
func tarOf(files ...tarFile) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, file := range files {
		header := &tar.Header{Name: file.name, Mode: 0o644, Size: int64(len(file.data)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", file.name, err)
		}
		if _, err := w.Write(file.data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", file.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return buffer.Bytes(), nil
}
