// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package reader reads the recorded episodes of a run from its artifacts, for people. It writes nothing there.
package reader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// Newest asks for the newest step that has a transcript. List asks for no transcript, but only for the list of steps.
const (
	Newest = -1
	List   = -2
)

// downloads is the number of objects that are read at once.
const downloads = 32

// Request says where artifacts are, and which step is asked for.
type Request struct {
	// Dir is the folder of a claim. URL is read instead if it is not empty.
	Dir, URL string
	// Variable returns a variable of the environment, which has the keys of the store at URL.
	Variable func(name string) string
	RunUID   string
	Step     int64
	// Evaluation asks for the evaluation of a step instead of the step.
	Evaluation bool
	// Lines is the number of newest lines of metrics.jsonl to read instead of a transcript, with the evaluations of their
	// versions; 0 reads none.
	Lines int
}

// files are the files of a folder or of a bucket.
type files interface {
	// List returns the names that begin with a prefix.
	List(ctx context.Context, prefix string) ([]string, error)
	// Get returns a file, or fs.ErrNotExist.
	Get(ctx context.Context, name string) ([]byte, error)
}

// Read reads a transcript. A failure that a person can repair is the problem of the delivery.
func Read(ctx context.Context, r Request) delivery.Delivery {
	from, closeFiles, err := r.open(ctx)
	if err != nil {
		return delivery.Delivery{Problem: err.Error()}
	}
	defer closeFiles()
	read := r.read
	if r.Lines > 0 {
		read = r.readLines
	}
	d, err := read(ctx, from)
	if err != nil {
		d.Problem = err.Error()
	}
	return d
}

func (r Request) open(ctx context.Context) (from files, closeFiles func(), err error) {
	if r.URL == "" {
		return folder(r.Dir), func() {}, nil
	}
	address, err := url.Parse(r.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("parsing artifacts.url: %w", err)
	}
	if address.Scheme == "file" {
		return folder(address.Path), func() {}, nil
	}
	objects, err := bucket.Open(ctx, r.URL, r.Variable)
	if err != nil {
		return nil, nil, err
	}
	return objects, func() { _ = objects.Close() }, nil
}

func (r Request) read(ctx context.Context, from files) (delivery.Delivery, error) {
	dir, rows, chunks := artifacts.RunFiles(r.RunUID)
	names, err := from.List(ctx, dir+"/")
	if err != nil {
		return delivery.Delivery{}, fmt.Errorf("listing episodes: %w", err)
	}
	data, err := wholeFile(ctx, from, rows, chunks)
	if err != nil {
		return delivery.Delivery{}, fmt.Errorf("reading committed rows: %w", err)
	}
	keys := choose(names, artifacts.CommittedVersions(data), r.Evaluation)
	d := delivery.Delivery{Steps: []int64{}}
	wanted := ""
	for _, key := range keys {
		step, _ := artifacts.EpisodesStep(versionOf(key))
		d.Steps = append(d.Steps, step)
		if step == r.Step || r.Step == Newest {
			wanted = key
		}
	}
	if r.Step == List || wanted == "" {
		return d, nil
	}
	encoded, err := from.Get(ctx, dir+"/"+artifacts.EpisodesFile(wanted))
	if err != nil {
		return d, fmt.Errorf("reading episodes: %w", err)
	}
	lines, err := transcript.DecodeLines(encoded)
	if err != nil {
		return d, fmt.Errorf("the episodes of %s are damaged (%w): choose another step", wanted, err)
	}
	if d.Transcript, err = json.Marshal(transcript.StepOf(lines)); err != nil {
		return d, fmt.Errorf("encoding the transcript: %w", err)
	}
	return d, nil
}

// wholeFile reads a file of lines, or the objects that have its lines.
func wholeFile(ctx context.Context, from files, name, chunks string) ([]byte, error) {
	data, err := from.Get(ctx, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	names, err := from.List(ctx, chunks)
	if err != nil {
		return nil, err
	}
	parts := make([][]byte, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(downloads)
	for i, name := range names {
		group.Go(func() (err error) {
			parts[i], err = from.Get(ctx, name)
			return err
		})
	}
	err = group.Wait()
	return bytes.Join(parts, nil), err
}

// choose returns the keys of the episodes of one version for each step, or of its evaluation, in order. A step that was
// made again has several versions, and its committed version is chosen. If a committed version has episodes, steps
// without a committed version are left out. No step leads to version 0.
func choose(names []string, committed map[string]bool, evaluations bool) []string {
	var found []string
	any := false
	for _, name := range slices.Sorted(slices.Values(names)) {
		key, ok := artifacts.KeyOf(name)
		if _, evaluated := artifacts.EvaluatedVersion(key); ok && evaluated == evaluations {
			found = append(found, key)
			any = any || committed[versionOf(key)]
		}
	}
	byStep := map[int64]string{}
	for _, key := range found {
		step, ok := artifacts.EpisodesStep(versionOf(key))
		if ok && (committed[versionOf(key)] || !any || step == 0) {
			byStep[step] = key
		}
	}
	keys := make([]string, 0, len(byStep))
	for _, key := range byStep {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// versionOf returns the version of a key, which may be the key of an evaluation.
func versionOf(key string) string {
	if version, ok := artifacts.EvaluatedVersion(key); ok {
		return version
	}
	return key
}

// folder is a folder of this machine.
type folder string

// List implements files, for prefixes that are folders.
func (f folder) List(_ context.Context, prefix string) ([]string, error) {
	if _, err := os.Stat(string(f)); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(string(f), filepath.FromSlash(prefix)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, prefix+entry.Name())
	}
	return names, err
}

// Get implements files.
func (f folder) Get(_ context.Context, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(f), filepath.FromSlash(name)))
}
