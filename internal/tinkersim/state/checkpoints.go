// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
)

// Owner is the owner of all models.
const Owner = "local"

// Checkpoints lists and edits runs and checkpoints. It is as safe for concurrent use as its store.
type Checkpoints struct {
	store *checkpoint.Store
}

// Runs describes all runs of a project, or of all projects if it is empty, the newest first.
func (c *Checkpoints) Runs(project string) []tinker.TrainingRun {
	newest := newestOf(c.store.Checkpoints(""))
	list := []tinker.TrainingRun{}
	for _, run := range c.store.Runs() {
		if project == "" || run.Project == project {
			list = append(list, describeRun(run, newest[run.ID]))
		}
	}
	return list
}

// Run describes a run.
func (c *Checkpoints) Run(id string) (tinker.TrainingRun, error) {
	run, err := c.store.Run(id)
	if err != nil {
		return tinker.TrainingRun{}, err
	}
	return describeRun(run, newestOf(c.store.Checkpoints(id))[id]), nil
}

// List describes the checkpoints of a run, or of all runs if it is empty, the newest first.
func (c *Checkpoints) List(run string) ([]tinker.Checkpoint, error) {
	if run != "" {
		if _, err := c.store.Run(run); err != nil {
			return nil, err
		}
	}
	list := []tinker.Checkpoint{}
	for _, listed := range c.store.Checkpoints(run) {
		list = append(list, describeCheckpoint(listed))
	}
	return list, nil
}

// newest holds the newest checkpoint of each kind of a run, or nil.
type newest struct{ state, sampler *tinker.Checkpoint }

// newestOf finds the newest checkpoints of each run in a list that is sorted from the newest to the oldest.
func newestOf(list []checkpoint.Checkpoint) map[string]newest {
	byRun := map[string]newest{}
	for _, c := range list {
		of := byRun[c.Run]
		if c.Kind == tinker.KindState && of.state == nil {
			of.state = new(describeCheckpoint(c))
		}
		if c.Kind == tinker.KindSampler && of.sampler == nil {
			of.sampler = new(describeCheckpoint(c))
		}
		byRun[c.Run] = of
	}
	return byRun
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
		UserMetadata:   c.UserMetadata,
	}
	if !c.Expires.IsZero() {
		described.ExpiresAt = &c.Expires
	}
	return described
}

// WeightsInfo describes the configuration that a model needs to load a checkpoint.
func (c *Checkpoints) WeightsInfo(req tinker.WeightsInfoRequest) (tinker.WeightsInfo, error) {
	parsed, err := tinker.ParsePath(req.TinkerPath)
	if err != nil {
		return tinker.WeightsInfo{}, badRequest("%s", err)
	}
	if _, err := c.store.Checkpoint(parsed); err != nil {
		return tinker.WeightsInfo{}, err
	}
	run, err := c.store.Run(parsed.Run)
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

// The edits without arguments. Damage is for tests.
var (
	Delete    Edit = (*checkpoint.Store).Delete
	Damage    Edit = (*checkpoint.Store).Damage
	Publish   Edit = func(s *checkpoint.Store, path tinker.Path) error { return s.SetPublic(path, true) }
	Unpublish Edit = func(s *checkpoint.Store, path tinker.Path) error { return s.SetPublic(path, false) }
)

// SetTTL returns an edit that makes a checkpoint expire after ttl, or never if ttl is 0.
func SetTTL(ttl time.Duration) Edit {
	return func(s *checkpoint.Store, path tinker.Path) error { return s.SetTTL(path, ttl) }
}

// Edit changes a checkpoint.
func (c *Checkpoints) Edit(path tinker.Path, edit Edit) error {
	if path.Kind == checkpoint.Ephemeral {
		return notFound("checkpoint", path.String())
	}
	return edit(c.store, path)
}

// EditMatching changes all listed checkpoints with a matching path, and returns their paths.
func (c *Checkpoints) EditMatching(match func(path string) bool, edit Edit) ([]string, error) {
	changed := []string{}
	for _, listed := range c.store.Checkpoints("") {
		if !match(listed.String()) {
			continue
		}
		if err := edit(c.store, listed.Path); err != nil {
			return changed, fmt.Errorf("changing %s: %w", listed.Path, err)
		}
		changed = append(changed, listed.String())
	}
	return changed, nil
}
