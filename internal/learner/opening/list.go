// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package opening

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// ownModels is the number of this attempt's newest models that are listed again. A checkpoint that the last model but
// one saves late is not the newest, but may still be retired.
const ownModels = 2

// Made notes that this attempt has made a model and loaded a state into it. From then on, only claims show a
// superseded learner that it is superseded, because the next List looks at the models of this attempt alone: a
// checkpoint that an earlier attempt saves late is not the newest.
func (o *Opener) Made(model string) {
	o.own, o.loaded = append(o.own, model), true
	o.own = o.own[max(0, len(o.own)-ownModels):]
	o.models[model] = tinker.Metadata{trainee.MetadataRun: o.File.Run.UID, trainee.MetadataSpec: o.File.SpecDigest}
}

// List unloads the models of earlier attempts, and reads all states and sampler weights of the run, and of the run that
// it continues, into the book: checkpoints that the server lists, that the run file has, and that rows name. If a model
// was made since the last call, it only lists the checkpoints of the newest own models, and otherwise the checkpoints
// of the recorded models. If no model is recorded, or the endpoint cannot list the checkpoints of one model, it lists
// the whole account.
func (o *Opener) List(ctx context.Context) error {
	complete, err := false, error(nil)
	if o.loaded {
		o.loaded = false
		complete, err = true, o.listOwn(ctx)
	} else {
		complete, err = o.listRecorded(ctx)
	}
	if !complete && err == nil || failure.CodeOf(err) == failure.Missing {
		err = o.listAll(ctx)
	}
	if err != nil {
		return err
	}
	return o.settle(ctx)
}

// listOwn reads the checkpoints of the newest models of this attempt into the book.
func (o *Opener) listOwn(ctx context.Context) error {
	isOwn := func(e checkpoints.Entry) bool {
		path, err := tinker.ParsePath(e.Path)
		return err == nil && slices.Contains(o.own, path.Run)
	}
	found := checkpoints.Index{}
	for _, path := range o.Rows.RecentStates() {
		if entry, ok := o.read(path); ok && isOwn(entry) {
			found.Add(entry)
		}
	}
	for _, model := range o.own {
		if err := o.listModel(ctx, model, found); err != nil {
			return err
		}
	}
	o.Book.ReplaceSome(isOwn, found)
	return nil
}

func (o *Opener) listAll(ctx context.Context) error {
	if err := o.unloadEarlier(ctx); err != nil {
		return err
	}
	found := o.known()
	o.unload(ctx, o.unnamed(found))
	namesakes := namesakes{}
	err := o.list(ctx, found, namesakes)
	if failure.CodeOf(err) == failure.Missing {
		// One answer like that may come from a proxy.
		if _, err := o.API.Capabilities(ctx); err != nil {
			return failure.New(failure.Outage, err, "listing checkpoints")
		}
		err = o.list(ctx, found, namesakes)
	}
	switch {
	case failure.CodeOf(err) == failure.Missing:
		o.Book.Add(found) // the endpoint lists no checkpoints: known checkpoints stay known
	case err != nil:
		return fmt.Errorf("listing checkpoints: %w", err)
	default:
		o.Book.Replace(found)
	}
	o.Namesake = namesakes.newest(o)
	return nil
}

// list adds the checkpoints of the run that the endpoint lists, and notes earlier runs of the same name.
func (o *Opener) list(ctx context.Context, found checkpoints.Index, earlier namesakes) error {
	for c, err := range o.API.Checkpoints(ctx) {
		if err != nil {
			return err
		}
		if entry, ok := o.readListed(c); ok {
			found.Add(entry)
		}
		earlier.add(o, c)
	}
	return nil
}

// unloadEarlier unloads the models of earlier attempts and of the run that this run continues, if the endpoint can
// unload models, so that none of their operations is executed later. It notes the endpoint's metadata of each model.
func (o *Opener) unloadEarlier(ctx context.Context) error {
	o.models = map[string]tinker.Metadata{}
	var earlier []string
	for run, err := range o.API.TrainingRuns(ctx) {
		if failure.CodeOf(err) == failure.Missing {
			break // the endpoint lists no models
		}
		if err != nil {
			return fmt.Errorf("listing models: %w", err)
		}
		o.models[run.TrainingRunID] = run.UserMetadata
		uid := run.UserMetadata[trainee.MetadataRun]
		attempt, err := strconv.ParseInt(run.UserMetadata[trainee.MetadataAttempt], 10, 32)
		ofFormer := uid != "" && uid == o.File.ResumeFrom
		if ofFormer || uid == o.File.Run.UID && err == nil && int32(attempt) < o.File.Attempt {
			earlier = append(earlier, run.TrainingRunID)
		}
	}
	o.unload(ctx, earlier)
	return ctx.Err()
}

// unnamed returns the models of earlier attempts that the endpoint lists without their metadata: the models whose
// checkpoints are known.
func (o *Opener) unnamed(found checkpoints.Index) []string {
	var models []string
	for _, entry := range found {
		path, err := tinker.ParsePath(entry.Path)
		earlier := entry.Former || entry.Name.Attempt < o.File.Attempt
		if err != nil || !earlier || slices.Contains(models, path.Run) {
			continue
		}
		if metadata, listed := o.models[path.Run]; listed && metadata[trainee.MetadataRun] == "" {
			models = append(models, path.Run)
		}
	}
	slices.Sort(models)
	return models
}

// unloadsAtOnce is the number of models that are unloaded at the same time.
const unloadsAtOnce = 8

// unload unloads the models that no attempt has unloaded before, and records them.
func (o *Opener) unload(ctx context.Context, models []string) {
	if o.unloaded == nil {
		o.unloaded = map[string]bool{}
		for _, id := range o.Unloads.Unloaded() {
			o.unloaded[id] = true
		}
	}
	models = slices.DeleteFunc(models, func(id string) bool { return o.unloaded[id] })
	if len(models) == 0 {
		return
	}
	results := make([]error, len(models))
	var calls sync.WaitGroup
	slots := make(chan struct{}, unloadsAtOnce)
	for i, id := range models {
		slots <- struct{}{}
		calls.Go(func() {
			results[i] = o.API.UnloadModel(ctx, id)
			<-slots
		})
	}
	calls.Wait()
	for i, id := range models {
		switch err := results[i]; {
		case err == nil || errors.Is(err, client.ErrUnsupported):
			o.unloaded[id] = true
		case ctx.Err() == nil:
			o.Logger.Info("model of an earlier attempt is not unloaded", "model", id, "err", err)
		}
	}
	if err := o.Unloads.SetUnloaded(ctx, slices.Sorted(maps.Keys(o.unloaded))); err != nil && ctx.Err() == nil {
		o.Logger.Warn("which models are unloaded is not recorded", "err", err)
	}
}

// readListed makes an entry of a checkpoint that the server lists, unless it is another run's.
func (o *Opener) readListed(c tinker.Checkpoint) (checkpoints.Entry, bool) {
	entry, ok := o.read(c.TinkerPath)
	if !ok {
		return entry, false
	}
	path, _ := tinker.ParsePath(c.TinkerPath)
	want := o.File.Run.UID
	if entry.Former {
		want = o.File.ResumeFrom
	}
	if uid := o.models[path.Run][trainee.MetadataRun]; uid != "" && uid != want {
		return entry, false // the other run has the same tag in names
	}
	entry.Listed, entry.SaveTime = true, c.Time.UTC().Format(time.RFC3339)
	if c.ExpiresAt != nil {
		entry.Expires, entry.ExpirationTime = true, c.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return entry, true
}

// read makes an entry of a path whose name a learner of this run gave, or one of the run that it continues.
func (o *Opener) read(text string) (checkpoints.Entry, bool) {
	path, err := tinker.ParsePath(text)
	if err != nil {
		return checkpoints.Entry{}, false
	}
	name, err := rl.ParseCheckpointName(path.Name)
	if err != nil {
		return checkpoints.Entry{}, false
	}
	own := name.Run == rl.RunTag(o.File.Run.UID)
	former := !own && o.File.ResumeFrom != "" && name.Run == rl.RunTag(o.File.ResumeFrom)
	return checkpoints.Entry{Path: text, Name: name, Sampler: path.Kind == tinker.KindSampler, Former: former},
		own || former
}
