// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/export"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// SaveExternal submits a save of the adapter as safetensors with the configuration of a PEFT adapter.
func (m *Models) SaveExternal(req tinker.SaveExternalRequest) (tinker.FutureResponse, error) {
	switch {
	case req.Path == "":
		return tinker.FutureResponse{}, badRequest("path must be given")
	case len(req.Recipients) > 0:
		return tinker.FutureResponse{}, badRequest("age_encryption_recipients is not supported: leave it out, so that the " +
			"files are not encrypted")
	}
	return m.submit(req.ModelID, submission{
		op:     tinker.TypeSaveExternal,
		seq:    req.SeqID,
		name:   req.Path,
		digest: digestOf(req),
		kind:   stats.Saving,
		do:     func(t *trainer, _ *operation) (future.Result, error) { return t.saveExternal(req) },
	})
}

func (t *trainer) saveExternal(req tinker.SaveExternalRequest) (future.Result, error) {
	data, err := export.PEFT(t.run.BaseModel, t.adapter)
	if err != nil {
		return future.Result{}, err
	}
	path := tinker.Path{Run: t.run.ID, Kind: tinker.KindExternal, Name: req.Path}
	if _, err := t.save(checkpoint.Save{Path: path, Data: data}, req.TTLSeconds); err != nil {
		return future.Result{}, err
	}
	return jsonResult(tinker.SaveResult{Path: path.String(), Type: tinker.TypeSaveExternal}), nil
}

// ExternalFiles returns the names of the files of external weights.
func (c *Checkpoints) ExternalFiles(path tinker.Path) ([]string, error) {
	if path.Kind != tinker.KindExternal {
		return nil, badRequest("%s has no files: save_weights_external makes weights that can be downloaded", path)
	}
	if _, err := c.store.Checkpoint(path); err != nil {
		return nil, err
	}
	return []string{export.ConfigFile, export.MatricesFile}, nil
}

// ExternalFile returns a file of external weights.
func (c *Checkpoints) ExternalFile(path tinker.Path, name string) ([]byte, error) {
	data, err := c.store.Read(path)
	if err != nil {
		return nil, err
	}
	file, err := export.Untar(data, name)
	if errors.Is(err, export.ErrNoFile) {
		return nil, notFound("file", name)
	}
	return file, err
}
