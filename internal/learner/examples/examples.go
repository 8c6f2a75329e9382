// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package examples makes the batches of a supervised run: it reads the rows of the run's data set, renders them, and
// returns each batch as groups of one example, so that manifests, lineages and rejections are the same as in every run.
// It replaces the batches that workers sample, and needs no worker.
//
// The outcome of a slot is a function of the run's settings and data. Two attempts that begin at one cursor therefore
// have the same batch, and nothing has to be stored for the next attempt.
package examples

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// Config configures a Reader.
type Config struct {
	File contract.RunFile
	// Data reads data sets whose rows need no prompt.
	Data *source.Loader
	Hub  *fetch.Fetcher
	// Blocked receives why the rows cannot be used, and nil once they can.
	Blocked func(err error)
	// Pause waits before the next try, the longer the more tries have failed.
	Pause  func(ctx context.Context, failures int) error
	Logger *slog.Logger
}

// Reader reads the rows of a run, and makes examples of them.
type Reader struct {
	config  Config
	data    *source.Dataset
	builder supervised.Builder
	batches supervised.Batches
	splits  map[string]int64
}

// Open waits until the rows can be read and one of them can be trained on. A user may repair the data while it waits.
// tokenizer is the digest of the tokenizer's file, and context the number of tokens that the model can be trained on
// at once; both may be unknown.
func Open(ctx context.Context, config Config, tokenizer string, context int) (*Reader, error) {
	defer config.Blocked(nil)
	for failures := 1; ; failures++ {
		r, err := open(ctx, config, tokenizer, context)
		if err == nil || ctx.Err() != nil {
			return r, err
		}
		if final, ok := errors.AsType[*load.Error](err); ok {
			return nil, final
		}
		config.Data.Forget(config.File.Fixed.Supervised.Pinned(config.File.Contents))
		config.Logger.Warn("rows cannot be used", "err", err)
		config.Blocked(err)
		if err := config.Pause(ctx, failures); err != nil {
			return nil, err
		}
	}
}

func open(ctx context.Context, config Config, tokenizer string, context int) (*Reader, error) {
	spec := *config.File.Fixed.Supervised
	model := config.File.Fixed.Model
	if model.Tokenizer != nil {
		pinned := *model.Tokenizer
		pinned.SHA256 = tokenizer
		model.Tokenizer = &pinned
	}
	format, err := load.ForModel(ctx, config.Hub, model)
	if err != nil {
		return nil, err
	}
	r := &Reader{config: config, splits: map[string]int64{}, builder: supervised.Builder{
		Renderer: format, Tokenizer: format.Tokens, Begin: format.Begin, End: format.End,
		TrainOn: supervised.TrainOn(spec.TrainOn), Normalization: supervised.Normalization(spec.Normalization),
		MaxTokens: spec.MaxTokens, Context: context,
		Episodes: supervised.Episodes{MinReward: spec.MinReward, BestOfTask: spec.BestOfTask},
	}}
	if r.data, err = config.Data.OpenRows(spec.Pinned(config.File.Contents)); err != nil {
		return nil, err
	}
	splits, err := r.data.Splits(ctx)
	if err != nil {
		return nil, err
	}
	for _, split := range splits {
		r.splits[split.Name] = split.Tasks
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	r.batches.Size = spec.BatchSize
	r.batches.Stream, err = rl.NewStream(uint64(config.File.Fixed.Algorithm.Seed), []rl.Source{{
		Environment: stream, Split: contract.TrainSplit, Tasks: r.splits[contract.TrainSplit], Shuffle: true,
	}})
	if err != nil {
		return nil, err
	}
	return r, r.findUsable(ctx)
}

// stream is the name of the data set in the stream of slots.
const stream = "supervised"

// check checks that the data has the splits that the run uses.
func (r *Reader) check() error {
	if r.splits[contract.TrainSplit] == 0 {
		return fmt.Errorf("dataset.splits: the data has no split %q, which a supervised run trains on: name one so, with "+
			"its source", contract.TrainSplit)
	}
	if r.config.File.Evaluation == nil {
		return nil
	}
	for _, held := range r.config.File.Evaluation.HeldOut {
		if r.splits[held.Name] == 0 {
			return fmt.Errorf("evaluation.supervised.splits: the data has no split %q: correct the name, or add the split to "+
				"supervised.dataset.splits", held.Name)
		}
	}
	return nil
}

// findUsable fails unless a row can be trained on. Its error has the row, the field and the repair.
func (r *Reader) findUsable(ctx context.Context) error {
	first := r.batches
	first.Size = 1
	_, err := first.Next(ctx, 0, r.load)
	return err
}

// Batch returns the batch that begins at a cursor, which is 0 for the first.
func (r *Reader) Batch(ctx context.Context, cursor int64) (supervised.Batch, error) {
	return r.batches.Next(ctx, cursor, r.load)
}

// load reads and renders a row.
func (r *Reader) load(ctx context.Context, task rl.Task) (supervised.Datum, error) {
	object, err := r.data.Object(ctx, task.Split, task.Index)
	if err != nil {
		return supervised.Datum{}, err
	}
	return r.builder.Datum(object)
}

// Contents identifies the data that were read; nil for tasks that are generated.
func (r *Reader) Contents() *contract.DataContents {
	return r.config.Data.Contents(r.config.File.Fixed.Supervised.Pinned(r.config.File.Contents))
}

// Steps returns the number of steps of a run with the given number of passes over all rows.
func (r *Reader) Steps(epochs int64) int64 {
	return max(1, epochs*r.splits[contract.TrainSplit]/int64(r.batches.Size))
}
