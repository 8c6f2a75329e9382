// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// unloadEarlier unloads the models of earlier attempts where the endpoint can, so that nothing of theirs that
// is still queued comes to be, and tells which run each model belongs to.
func (l *learner) unloadEarlier(ctx context.Context) (map[string]string, error) {
	runs := map[string]string{}
	var earlier []string
	for run, err := range l.client.TrainingRuns(ctx) {
		if isMissing(err) {
			break // the endpoint lists no runs
		}
		if err != nil {
			return nil, fmt.Errorf("listing models: %w", err)
		}
		uid := run.UserMetadata[trainee.MetadataRun]
		runs[run.TrainingRunID] = uid
		attempt, err := strconv.ParseInt(run.UserMetadata[trainee.MetadataAttempt], 10, 32)
		if uid == l.file.Run.UID && err == nil && int32(attempt) < l.file.Attempt {
			earlier = append(earlier, run.TrainingRunID)
		}
	}
	for _, id := range earlier {
		err := l.client.UnloadModel(ctx, id)
		if errors.Is(err, client.ErrUnsupported) || err == nil {
			continue
		}
		if ctx.Err() != nil {
			return nil, err
		}
		l.config.Logger.Info("model of an earlier attempt is not unloaded", "model", id, "err", err)
	}
	return runs, nil
}

func isMissing(err error) bool {
	category := client.CategoryFrom(err)
	return category == tinker.CategoryNotFound || category == tinker.CategoryUnsupported
}

// readStates reads all states and samplers of the run: those that the server lists, those that the run file
// knows, and those that rows name.
func (l *learner) readStates(ctx context.Context, runs map[string]string) error {
	found := checkpoints.Ledger{}
	l.hear(found, l.file.KnownCheckpoints)
	if l.store != nil {
		const recent = 16
		paths, err := l.store.RecentStates(recent)
		if err != nil {
			l.config.Logger.Warn("rows are not read", "err", err)
		}
		l.hear(found, paths)
	}
	for c, err := range l.client.Checkpoints(ctx) {
		if isMissing(err) {
			break
		}
		if err != nil {
			return fmt.Errorf("listing checkpoints: %w", err)
		}
		entry, ok := l.read(c.TinkerPath)
		if !ok {
			continue
		}
		path, _ := tinker.ParsePath(c.TinkerPath)
		if uid := runs[path.Run]; uid != "" && uid != l.file.Run.UID {
			continue // another run whose uid begins alike
		}
		entry.Listed, entry.SaveTime = true, c.Time.UTC().Format(time.RFC3339)
		if c.ExpiresAt != nil {
			entry.Expires, entry.ExpirationTime = true, c.ExpiresAt.UTC().Format(time.RFC3339)
		}
		found.Add(entry)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ledger = found
	return nil
}

func (l *learner) hear(found checkpoints.Ledger, paths []string) {
	for _, path := range paths {
		if entry, ok := l.read(path); ok {
			found.Add(entry)
		}
	}
}

// read makes an entry of a path whose name is of this run's loop.
func (l *learner) read(text string) (checkpoints.Entry, bool) {
	path, err := tinker.ParsePath(text)
	if err != nil {
		return checkpoints.Entry{}, false
	}
	name, err := rl.ParseCheckpointName(path.Name)
	if err != nil || name.Run != rl.RunTag(l.file.Run.UID) {
		return checkpoints.Entry{}, false
	}
	return checkpoints.Entry{Path: text, Name: name, Sampler: path.Kind == tinker.KindSampler}, true
}

// enter notes what was saved just now.
func (l *learner) enter(path string, name rl.CheckpointName, sampler bool) {
	l.mu.Lock()
	l.ledger.Add(checkpoints.Entry{
		Path: path, Name: name, Sampler: sampler, Listed: true, SaveTime: l.config.Now().UTC().Format(time.RFC3339),
	})
	l.mu.Unlock()
	l.status.touch()
}
