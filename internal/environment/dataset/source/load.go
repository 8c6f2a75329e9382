// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package source reads the data sets that definitions describe: files of a ConfigMap, a volume or a URL, and
// repositories of a Hugging Face hub. It copies all rows to the pod's disk once, with an index, and checks them and
// their digests on the way; from then on rows are read in place.
package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/download"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/rowfile"
)

// Config is the configuration of a Loader.
type Config struct {
	// Root is the folder with the files that definitions refer to: contract.DataDir in a pod.
	Root string
	// Dir is the folder for rows and downloads, and Space bounds the bytes that they may take there in all.
	Dir    string
	Space  int64
	Client *download.Client
	// AnyRows permits rows of any columns. Otherwise each row has to make a prompt.
	AnyRows bool
	// Permit waits until this pod may download, and returns a function that ends the permission. It is nil if every pod
	// may download at any time.
	Permit func(ctx context.Context) (done func(), err error)
	Logger *slog.Logger
}

// Loader loads data sets, one at a time. It is safe for concurrent use.
type Loader struct {
	config Config
	// busy holds a token while data is read.
	busy chan struct{}
	// used is how much of the space is taken; only the holder of the token touches it.
	used int64

	mu sync.Mutex
	// loaded are the data sets by the digest of their definition, and files their rows on the disk.
	loaded map[string]*Dataset
	files  map[*dataset.Table][]*rowfile.File
}

// New returns a Loader that has loaded nothing.
func New(config Config) *Loader {
	config.Client = cmp.Or(config.Client, &download.Client{Logger: config.Logger})
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	return &Loader{config: config, busy: make(chan struct{}, 1), loaded: map[string]*Dataset{},
		files: map[*dataset.Table][]*rowfile.File{}}
}

// Error reports that data cannot be used as its definition describes it, until the data or the definition is
// repaired. Its text names the field, the row if there is one, and the repair.
type Error struct{ Err error }

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// errorf returns an Error.
func errorf(format string, args ...any) error { return &Error{Err: fmt.Errorf(format, args...)} }

// Open returns the data set of a definition. It reads nothing yet: the first call of a method of the data set reads
// the data. If that fails, the next call tries again.
func (l *Loader) Open(_ context.Context, definition contract.Dataset) (dataset.Dataset, error) {
	d, err := l.OpenRows(definition)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// OpenRows is Open for callers that also read rows as JSON objects.
func (l *Loader) OpenRows(definition contract.Dataset) (*Dataset, error) {
	key, err := keyOf(definition)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.loaded[key]
	if !ok {
		d = &Dataset{loader: l, definition: definition}
		l.loaded[key] = d
	}
	return d, nil
}

// Forget forgets the data set of a definition, so that the next Open reads it again. The data set must not be in use.
func (l *Loader) Forget(definition contract.Dataset) {
	key, err := keyOf(definition)
	if err != nil {
		return
	}
	l.busy <- struct{}{}
	defer func() { <-l.busy }()
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.loaded[key]
	delete(l.loaded, key)
	if d == nil {
		return
	}
	table := d.opened()
	for _, file := range l.files[table] {
		l.used -= file.Size()
		_ = file.Close()
	}
	delete(l.files, table)
}

// Contents returns revision and digests of the data that was read for a definition; nil if it was not read.
func (l *Loader) Contents(definition contract.Dataset) *contract.DataContents {
	key, err := keyOf(definition)
	if err != nil {
		return nil
	}
	l.mu.Lock()
	d := l.loaded[key]
	l.mu.Unlock()
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.contents
}

func keyOf(definition contract.Dataset) (string, error) {
	data, err := json.Marshal(definition)
	if err != nil {
		return "", fmt.Errorf("digesting data set: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// Dataset is a data set that is read when it is first used.
type Dataset struct {
	loader     *Loader
	definition contract.Dataset

	mu       sync.Mutex
	table    *dataset.Table
	contents *contract.DataContents
}

var _ dataset.Dataset = (*Dataset)(nil)

// Splits implements dataset.Dataset.
func (d *Dataset) Splits(ctx context.Context) ([]environment.Split, error) {
	table, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	return table.Splits(ctx)
}

// Row implements dataset.Dataset.
func (d *Dataset) Row(ctx context.Context, split string, index int64) (dataset.Row, error) {
	table, err := d.open(ctx)
	if err != nil {
		return dataset.Row{}, err
	}
	return table.Row(ctx, split, index)
}

// Object returns the JSON object of a row, without making a prompt of it.
func (d *Dataset) Object(ctx context.Context, split string, index int64) ([]byte, error) {
	table, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	return table.Object(ctx, split, index)
}

// open reads the data unless it was read before. An error is a *environment.Fault, or the context's.
func (d *Dataset) open(ctx context.Context) (*dataset.Table, error) {
	if table := d.opened(); table != nil {
		return table, nil
	}
	select {
	case d.loader.busy <- struct{}{}:
		defer func() { <-d.loader.busy }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if table := d.opened(); table != nil {
		return table, nil
	}
	table, contents, err := d.loader.load(ctx, d.definition)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		var wrong *Error
		return nil, &environment.Fault{Permanent: errors.As(err, &wrong), Err: err}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.table, d.contents = table, contents
	return table, nil
}

func (d *Dataset) opened() *dataset.Table {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.table
}

// load reads the data of a definition.
func (l *Loader) load(ctx context.Context, definition contract.Dataset) (*dataset.Table, *contract.DataContents,
	error) {
	if definition.Generated() {
		table, err := l.generated(ctx, definition)
		return table, nil, err
	}
	if definition.Hub != nil {
		return l.loadHub(ctx, definition)
	}
	return l.loadFiles(ctx, definition)
}

// tableOf cuts the splits of a definition out of its sources.
func tableOf(definition contract.Dataset, sources map[string]dataset.Rows) (*dataset.Table, error) {
	table, err := dataset.NewTable(dataset.NewFormat(definition.Dataset), sources, definition.Splits)
	if err != nil {
		return nil, &Error{Err: err}
	}
	return table, nil
}

// generated cuts and formats tasks that are generated.
func (l *Loader) generated(ctx context.Context, definition contract.Dataset) (*dataset.Table, error) {
	tasks, err := Generator(definition)
	if err != nil {
		return nil, &Error{Err: err}
	}
	splits, err := tasks.Splits(ctx)
	if err != nil {
		return nil, err
	}
	sources := map[string]dataset.Rows{}
	for _, split := range splits {
		sources[split.Name] = dataset.Generated{Dataset: tasks, Split: split}
	}
	table, err := tableOf(definition, sources)
	if err != nil {
		return nil, err
	}
	cut, err := table.Splits(ctx)
	if err != nil {
		return nil, err
	}
	for _, split := range cut {
		if l.config.AnyRows {
			break
		}
		if _, err := table.Row(ctx, split.Name, 0); err != nil {
			return nil, &Error{Err: err}
		}
	}
	return table, nil
}

// Generator returns the tasks that a definition generates, without its fields, prompts and splits.
func Generator(definition contract.Dataset) (dataset.Dataset, error) {
	switch {
	case definition.Arithmetic != nil:
		return dataset.NewArithmetic(int(definition.Arithmetic.MaxOperand))
	case definition.Countdown != nil:
		return dataset.NewCountdown(*definition.Countdown)
	default:
		return nil, errors.New("dataset is not generated")
	}
}

// IsPlain reports whether a definition describes generated tasks as they are, without fields, prompts, examples or
// splits of its own.
func IsPlain(definition contract.Dataset) bool {
	return definition.Generated() && len(definition.Fields) == 0 && cmp.Or(definition.Prompt,
		definition.SystemPrompt) == "" &&
		len(definition.Examples) == 0 && len(definition.Splits) == 0
}
