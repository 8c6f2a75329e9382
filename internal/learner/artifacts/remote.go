// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
)

// Objects stores the files of a store at a URL; package bucket implements it. Create fails with fs.ErrExist if the
// object exists, and Get with fs.ErrNotExist if it does not. List returns the names that begin with a prefix.
type Objects interface {
	Create(ctx context.Context, name string, data []byte) error
	Put(ctx context.Context, name string, data []byte) error
	Get(ctx context.Context, name string) ([]byte, error)
	List(ctx context.Context, prefix string) ([]string, error)
	Check(ctx context.Context, name string) error
}

// remote is the original of a store at a URL. The local folder of the store is a copy.
type remote struct {
	objects Objects
	prefix  string
	dir     string
	checked bool
	attempt int32
	// known has the rows and evaluations with a line in the files at the last refresh.
	known atomic.Pointer[map[string]bool]

	// upload serializes uploads of lines. uploaded is the start time of the last upload. emptied says that no later object
	// has lines of an earlier attempt.
	upload   sync.Mutex
	uploaded time.Time
	emptied  bool
}

const (
	// downloads is the number of objects that are copied at once.
	downloads = 32
	// uploadPeriod is the shortest time between two uploads of lines while steps are made.
	uploadPeriod = time.Minute
)

func (r *remote) name(name string) string { return path.Join(r.prefix, name) }

func (r *remote) put(name string, data []byte) error {
	return r.objects.Put(context.Background(), r.name(name), data)
}

func (r *remote) get(name string) ([]byte, error) {
	return r.objects.Get(context.Background(), r.name(name))
}

// list returns the names in a folder, without the folder's name.
func (r *remote) list(folder string) ([]string, error) {
	prefix := r.name(folder) + "/"
	names, err := r.objects.List(context.Background(), prefix)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], prefix)
	}
	return names, err
}

// claim creates the object of an attempt's claim, and returns the claimant if the object exists. Before the first claim
// it checks that the server never creates an object twice.
func (r *remote) claim(attempt int32, by string) (claimant string, err error) {
	ctx := context.Background()
	if !r.checked {
		if err := r.objects.Check(ctx, r.name("check-"+strconv.Itoa(int(attempt)))); err != nil {
			return "", err
		}
		r.checked = true
	}
	name := r.name(claimName(attempt))
	switch err := r.objects.Create(ctx, name, []byte(by)); {
	case errors.Is(err, fs.ErrExist):
		data, err := r.objects.Get(ctx, name)
		if err != nil || string(data) != by {
			return string(data), err
		}
	case err != nil:
		return "", err
	}
	r.attempt = attempt
	return by, nil
}

// refresh copies the rows and evaluations that the folder lacks and that have no line in the files, and the records
// of the previous attempt. It copies the newest rows in any case, since a learner completes rows after it has created
// them.
func (r *remote) refresh() error {
	for _, name := range []string{rowsName, metricsName, evaluationsName} {
		if err := r.download(name); err != nil {
			return err
		}
	}
	known, err := r.withLines()
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(downloads)
	for _, folder := range []string{rowsDir, evaluationsDir} {
		names, err := r.list(folder)
		if err != nil {
			return fmt.Errorf("listing %s: %w", folder, err)
		}
		for i, name := range names {
			file := path.Join(folder, name)
			_, err := os.Stat(filepath.Join(r.dir, file))
			if err != nil && !known[file] || i >= len(names)-changing {
				group.Go(func() error { return r.copy(file) })
			}
		}
	}
	spent, err := r.newestSpending()
	if err != nil {
		return err
	}
	for _, file := range []string{sessionFile, workersFile, unloadedFile, spent} {
		group.Go(func() error { return r.copy(file) })
	}
	r.known.Store(&known)
	return group.Wait()
}

// withLines returns the names of the rows and evaluations that have a line.
func (r *remote) withLines() (map[string]bool, error) {
	known := map[string]bool{}
	rows, err := os.ReadFile(filepath.Join(r.dir, rowsName))
	if err != nil {
		return nil, err
	}
	for v := range decodeSummaries(rows) {
		known[rowName(v)] = true
	}
	evaluations, err := os.ReadFile(filepath.Join(r.dir, evaluationsName))
	if err != nil {
		return nil, err
	}
	for text := range bytes.Lines(evaluations) {
		if e, ok := decodeEvaluation(text); ok {
			known[evaluationName(e.Version, e.Digest)] = true
		}
	}
	return known, nil
}

// newestSpending names the newest record of spending of an earlier attempt. The name is empty if there is none.
func (r *remote) newestSpending() (string, error) {
	names, err := r.list(spendingDir)
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", spendingDir, err)
	}
	newest := int32(0)
	for _, name := range names {
		n, err := strconv.ParseInt(strings.TrimSuffix(name, ".json"), 10, 32)
		if attempt := int32(n); err == nil && attempt < r.attempt {
			newest = max(newest, attempt)
		}
	}
	return spendingName(newest), nil
}

// isKnown reports whether the original has a file. The folder may lack it.
func (r *remote) isKnown(file string) bool {
	known := r.known.Load()
	return known != nil && (*known)[file]
}

// copy downloads an object to the file with the same name in the folder. It does nothing if the object does not exist.
func (r *remote) copy(file string) error {
	data, err := r.get(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return atomicfile.WriteDurable(filepath.Join(r.dir, file), fileMode, data)
}
