// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Models lists the models that the learner of an attempt has made, and the known checkpoints of earlier models. It is
// written before a model saves anything, so that later attempts need to list no other models.
type Models struct {
	// Made are the models whose checkpoints have to be listed, in the order in which the attempt made them.
	Made []string `json:"made,omitempty"`
	// Known are the checkpoints of all other models of the run, except the models of the attempt before.
	Known []KnownCheckpoint `json:"known,omitempty"`
}

// KnownCheckpoint is a checkpoint as an endpoint has listed it. Times are RFC 3339, or empty.
type KnownCheckpoint struct {
	Path    string `json:"path"`
	Saved   string `json:"saved,omitempty"`
	Expires string `json:"expires,omitempty"`
}

const modelsDir = "models"

func modelsName(attempt int32) string { return path.Join(modelsDir, fmt.Sprintf("%d.json", attempt)) }

// Models reads the records of the newest two attempts before an attempt, the newest first.
func (s *Store) Models(before int32) ([]Models, error) {
	names, err := s.files.list(modelsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing records of models: %w", err)
	}
	var attempts []int
	for _, name := range names {
		attempt, err := strconv.Atoi(strings.TrimSuffix(name, ".json"))
		if err == nil && attempt < int(before) {
			attempts = append(attempts, attempt)
		}
	}
	slices.Sort(attempts)
	slices.Reverse(attempts)
	var all []Models
	for _, attempt := range attempts[:min(len(attempts), 2)] {
		data, err := s.files.original(modelsName(int32(attempt)))
		if err != nil {
			return nil, fmt.Errorf("reading the models of attempt %d: %w", attempt, err)
		}
		var models Models
		if err := json.Unmarshal(data, &models); err != nil {
			return nil, fmt.Errorf("reading the models of attempt %d: %w", attempt, err)
		}
		all = append(all, models)
	}
	return all, nil
}

// WriteModels makes the record of an attempt durable.
func (s *Store) WriteModels(attempt int32, models Models) error {
	data, err := json.Marshal(models)
	if err != nil {
		return fmt.Errorf("encoding the record of models: %w", err)
	}
	if err := s.files.publish(modelsName(attempt), append(data, '\n')); err != nil {
		return fmt.Errorf("writing the record of models: %w", err)
	}
	return nil
}

// Models returns the records of the newest two earlier attempts, the newest first. It waits until the store answers. It
// is called after Claim.
func (j *Journal) Models(ctx context.Context) (found []Models, err error) {
	if j.store == nil {
		return nil, nil
	}
	read := make(chan []Models, 1)
	err = j.insist(ctx, "reading which models were made", func() error {
		models, err := j.store.Models(j.config.Attempt)
		if err == nil {
			select {
			case read <- models:
			default:
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-read, nil
}

// WriteModels records the models of the attempt, and waits for the store.
func (j *Journal) WriteModels(ctx context.Context, models Models) error {
	if j.store == nil {
		return nil
	}
	return j.insist(ctx, "recording which models were made", func() error {
		return j.store.WriteModels(j.config.Attempt, models)
	})
}
