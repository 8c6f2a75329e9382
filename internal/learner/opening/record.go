// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package opening

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// records keeps the attempts' records of their models.
type records interface {
	// HasStore reports whether records last.
	HasStore() bool
	// Models returns the records of the newest two earlier attempts, the newest first.
	Models(ctx context.Context) ([]artifacts.Models, error)
	WriteModels(ctx context.Context, models artifacts.Models) error
}

// record is this attempt's record of its models. A model is recorded before it saves, and the records are read after
// the attempt is claimed. A state of a model without a record therefore belongs to a learner that will find the claim.
// Each opening lists only the checkpoints of the few models that the newest two attempts have recorded: the attempt
// before the last may still have saved checkpoints late, after the last attempt listed them.
type record struct {
	// writing orders writes. mu guards the fields below.
	writing sync.Mutex
	mu      sync.Mutex
	// made are models of this attempt. closed are the models among them that are no longer used.
	made   []string
	closed map[string]bool
	// before are models of the attempt before.
	before []string
	// isRead is set once the book has the checkpoints that earlier attempts knew.
	isRead bool
}

// MakeModel records a model of this attempt before anything is done with it.
func (o *Opener) MakeModel(ctx context.Context, model string) error {
	o.record.mu.Lock()
	o.record.made = append(o.record.made, model)
	o.record.mu.Unlock()
	return o.writeRecord(ctx)
}

// EndModel notes that a model is no longer used. A model that has saved nothing is forgotten.
func (o *Opener) EndModel(model string, saved bool) {
	r := &o.record
	r.mu.Lock()
	defer r.mu.Unlock()
	if !saved {
		r.made = slices.DeleteFunc(r.made, func(id string) bool { return id == model })
		return
	}
	if r.closed == nil {
		r.closed = map[string]bool{}
	}
	r.closed[model] = true
}

// Retired records that checkpoints were retired, since a later attempt would retire them again.
func (o *Opener) Retired(ctx context.Context, paths []string) {
	o.record.mu.Lock()
	known := slices.ContainsFunc(paths, func(path string) bool { return !o.record.isListed(path) })
	o.record.mu.Unlock()
	if !known {
		return
	}
	if err := o.writeRecord(ctx); err != nil && ctx.Err() == nil {
		o.Logger.Warn("which checkpoints are retired is not recorded", "err", err)
	}
}

// isListed reports whether the next attempt lists the model of a checkpoint. The lock is held.
func (r *record) isListed(text string) bool {
	path, err := tinker.ParsePath(text)
	return err == nil && (slices.Contains(r.made, path.Run) || slices.Contains(r.before, path.Run))
}

// writeRecord records the models that have to be listed, and the known checkpoints of all others.
func (o *Opener) writeRecord(ctx context.Context) error {
	o.record.writing.Lock()
	defer o.record.writing.Unlock()
	return o.Record.WriteModels(ctx, o.recorded())
}

func (o *Opener) recorded() artifacts.Models {
	o.record.mu.Lock()
	defer o.record.mu.Unlock()
	models := artifacts.Models{Made: slices.Clone(o.record.made)}
	now := o.Now()
	for _, e := range o.Book.Entries() {
		if e.Listed && !e.IsExpired(now) && !o.record.isListed(e.Path) {
			models.Known = append(models.Known, artifacts.KnownCheckpoint{Path: e.Path, Saved: e.SaveTime,
				Expires: e.ExpirationTime})
		}
	}
	return models
}

// settle records the listed checkpoints. Models of this attempt that are no longer used, except the newest ones, need
// not be listed again.
func (o *Opener) settle(ctx context.Context) error {
	r := &o.record
	r.mu.Lock()
	r.isRead = true
	r.made = slices.DeleteFunc(r.made, func(id string) bool { return r.closed[id] && !slices.Contains(o.own, id) })
	r.mu.Unlock()
	return o.writeRecord(ctx)
}

// listRecorded reads the checkpoints of the recorded models into the book, and unloads the models of earlier attempts.
// It reports whether these are all checkpoints of the run: an attempt without a record may have saved others.
func (o *Opener) listRecorded(ctx context.Context) (complete bool, err error) {
	if !o.Record.HasStore() {
		return false, nil
	}
	before, err := o.Record.Models(ctx)
	if err != nil {
		return false, err
	}
	found := o.known()
	o.record.mu.Lock()
	isRead, made := o.record.isRead, slices.Clone(o.record.made)
	if len(before) > 0 {
		o.record.before = before[0].Made
	}
	o.record.mu.Unlock()
	if len(before) == 0 && !isRead {
		return o.listNew(ctx, found)
	}
	o.models = map[string]tinker.Metadata{}
	var models []string
	for _, attempt := range before {
		models = append(models, attempt.Made...)
	}
	o.unload(ctx, slices.Clone(models))
	models = append(models, made...)
	if isRead {
		o.keep(found, models)
	} else {
		o.addKnown(found, before[0].Known)
	}
	for _, model := range models {
		if err := o.listModel(ctx, model, found); err != nil {
			return false, err
		}
	}
	if own, _ := o.split(found.States()); o.File.ResumeFrom != "" && len(own) == 0 {
		return false, nil // the metadata of models say with which settings the former run was made
	}
	o.Book.Replace(found)
	return true, ctx.Err()
}

// addKnown adds the checkpoints that an earlier attempt knew.
func (o *Opener) addKnown(found checkpoints.Index, known []artifacts.KnownCheckpoint) {
	for _, c := range known {
		if entry, ok := o.read(c.Path); ok {
			entry.Listed, entry.SaveTime, entry.ExpirationTime = true, c.Saved, c.Expires
			entry.Expires = c.Expires != ""
			found.Add(entry)
		}
	}
}

// keep adds the book's checkpoints of models that are not listed.
func (o *Opener) keep(found checkpoints.Index, listed []string) {
	for _, e := range o.Book.Entries() {
		if path, err := tinker.ParsePath(e.Path); err == nil && !slices.Contains(listed, path.Run) {
			found.Add(e)
		}
	}
}

// known returns the checkpoints that the run file and rows name.
func (o *Opener) known() checkpoints.Index {
	found := checkpoints.Index{}
	for _, path := range slices.Concat(o.File.KnownCheckpoints, o.Rows.RecentStates()) {
		if entry, ok := o.read(path); ok {
			found.Add(entry)
		}
	}
	return found
}

// listModel adds the checkpoints of a model.
func (o *Opener) listModel(ctx context.Context, model string, found checkpoints.Index) error {
	saved, err := o.API.RunCheckpoints(ctx, model)
	if err != nil {
		return fmt.Errorf("listing checkpoints: %w", err)
	}
	for _, c := range saved {
		if entry, ok := o.readListed(c); ok {
			found.Add(entry)
		}
	}
	return nil
}

// mostModels limits the search of the account for models of earlier runs with the same name.
const mostModels = 1000

// listNew is listRecorded for the first attempt of a run without records. The run has no checkpoints, unless the
// metadata of a model of the account names the run. Earlier runs of the same name are found by their models.
func (o *Opener) listNew(ctx context.Context, found checkpoints.Index) (complete bool, err error) {
	if o.File.Attempt > 1 || o.File.ResumeFrom != "" || len(found) > 0 {
		return false, nil
	}
	o.models = map[string]tinker.Metadata{}
	namesakes, looked := namesakes{}, 0
	for run, err := range o.API.TrainingRuns(ctx) {
		if failure.CodeOf(err) == failure.Missing {
			break // the endpoint lists no models
		}
		if err != nil {
			return false, fmt.Errorf("listing models: %w", err)
		}
		if run.UserMetadata[trainee.MetadataRun] == o.File.Run.UID {
			return false, nil
		}
		if run.LastCheckpoint != nil {
			o.models[run.TrainingRunID] = run.UserMetadata
			namesakes.add(o, *run.LastCheckpoint)
		}
		if looked++; looked >= mostModels {
			o.Logger.Info("earlier runs of the same name are looked for among some models alone", "models", looked)
			break
		}
	}
	o.Book.Replace(found)
	o.Namesake = namesakes.newest(o)
	return true, nil
}
