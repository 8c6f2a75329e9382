// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
)

// Owner is who all models belong to.
const Owner = "local"

// Runs describes all runs of a project, or of all projects if it is empty, the newest first.
func (l *State) Runs(project string) []tinker.TrainingRun {
	last := lastOf(l.store.Checkpoints(""))
	list := []tinker.TrainingRun{}
	for _, run := range l.store.Runs() {
		if project == "" || run.Project == project {
			list = append(list, describeRun(run, last[run.ID]))
		}
	}
	return list
}

// Run describes a run.
func (l *State) Run(id string) (tinker.TrainingRun, error) {
	run, err := l.store.Run(id)
	if err != nil {
		return tinker.TrainingRun{}, err
	}
	return describeRun(run, lastOf(l.store.Checkpoints(id))[id]), nil
}

// Checkpoints describes the checkpoints of a run, or of all runs if it is empty, the newest first.
func (l *State) Checkpoints(run string) ([]tinker.Checkpoint, error) {
	if run != "" {
		if _, err := l.store.Run(run); err != nil {
			return nil, err
		}
	}
	list := []tinker.Checkpoint{}
	for _, c := range l.store.Checkpoints(run) {
		list = append(list, describeCheckpoint(c))
	}
	return list, nil
}

// newest holds the newest checkpoints of a run by kind, nil where there is none.
type newest struct{ state, sampler *tinker.Checkpoint }

// lastOf finds the newest checkpoints of each run in a list that begins with the newest.
func lastOf(list []checkpoint.Checkpoint) map[string]newest {
	last := map[string]newest{}
	for _, c := range list {
		of := last[c.Run]
		if c.Kind == tinker.KindState && of.state == nil {
			of.state = new(describeCheckpoint(c))
		}
		if c.Kind == tinker.KindSampler && of.sampler == nil {
			of.sampler = new(describeCheckpoint(c))
		}
		last[c.Run] = of
	}
	return last
}

func describeRun(run checkpoint.Run, last newest) tinker.TrainingRun {
	return tinker.TrainingRun{
		TrainingRunID:         run.ID,
		BaseModel:             run.BaseModel,
		ModelOwner:            Owner,
		IsLora:                true,
		LoraRank:              &run.Rank,
		LastRequestTime:       run.LastRequest.UTC(),
		LastCheckpoint:        last.state,
		LastSamplerCheckpoint: last.sampler,
		UserMetadata:          run.UserMetadata,
	}
}

func describeCheckpoint(c checkpoint.Checkpoint) tinker.Checkpoint {
	described := tinker.Checkpoint{
		CheckpointID:   c.CheckpointID(),
		CheckpointType: c.Kind.CheckpointType(),
		Time:           c.Time,
		TinkerPath:     c.String(),
		SizeBytes:      &c.Size,
		Public:         c.Public,
	}
	if !c.Expires.IsZero() {
		described.ExpiresAt = &c.Expires
	}
	return described
}

// WeightsInfo says what a model must be to load a checkpoint.
func (l *State) WeightsInfo(path string) (tinker.WeightsInfo, error) {
	parsed, err := tinker.ParsePath(path)
	if err != nil {
		return tinker.WeightsInfo{}, badRequest("%s", err)
	}
	if _, err := l.store.Checkpoint(parsed); err != nil {
		return tinker.WeightsInfo{}, err
	}
	run, err := l.store.Run(parsed.Run)
	return tinker.WeightsInfo{
		BaseModel:    run.BaseModel,
		IsLora:       true,
		LoraRank:     &run.Rank,
		TrainUnembed: &run.TrainUnembed,
		TrainMLP:     &run.TrainMLP,
		TrainAttn:    &run.TrainAttention,
	}, err
}

// Edit is a change to a checkpoint.
type Edit func(*checkpoint.Store, tinker.Path) error

// The edits that need no arguments. Damage is for tests.
var (
	Delete    Edit = (*checkpoint.Store).Delete
	Damage    Edit = (*checkpoint.Store).Damage
	Publish   Edit = func(s *checkpoint.Store, path tinker.Path) error { return s.SetPublic(path, true) }
	Unpublish Edit = func(s *checkpoint.Store, path tinker.Path) error { return s.SetPublic(path, false) }
)

// SetTTL makes a checkpoint expire that long from now; 0 makes it stay for ever.
func SetTTL(ttl time.Duration) Edit {
	return func(s *checkpoint.Store, path tinker.Path) error { return s.SetTTL(path, ttl) }
}

// Edit changes a checkpoint.
func (l *State) Edit(path tinker.Path, edit Edit) error {
	if path.Kind == checkpoint.Ephemeral {
		return notFound("checkpoint", path.String())
	}
	return edit(l.store, path)
}

// EditMatching changes all listed checkpoints whose path matches, and returns their paths.
func (l *State) EditMatching(match func(path string) bool, edit Edit) ([]string, error) {
	changed := []string{}
	for _, c := range l.store.Checkpoints("") {
		if !match(c.String()) {
			continue
		}
		if err := edit(l.store, c.Path); err != nil {
			return changed, fmt.Errorf("changing %s: %w", c.Path, err)
		}
		changed = append(changed, c.String())
	}
	return changed, nil
}
