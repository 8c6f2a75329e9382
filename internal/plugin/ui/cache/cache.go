// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps transcripts in a folder of this machine, so that kubectl tinker ui shows them again without a
// pod.
package cache

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// Bounds of the kept transcripts.
const (
	// MostBytes limits the size of all files together.
	MostBytes = 256 << 20
	// Lifetime is the time after which an unused file is removed.
	Lifetime = 14 * 24 * time.Hour
	// mostDecoded bounds a transcript that is read from a file.
	mostDecoded = 1 << 30
)

// newest is the step that asks for the newest transcript.
const newest = -1

// ReadFunc returns the transcript of a step of a run, or of the evaluation after it, and the steps that have one.
// Step -1 is the newest step.
type ReadFunc = func(ctx context.Context, run *v1alpha1.TrainingRun, step int64,
	evaluation bool) (transcript.Step, []int64, error)

// Cache keeps transcripts in a folder, whose files only the user can read.
type Cache struct {
	folder string
	most   int64
	now    func() time.Time

	mu sync.Mutex
}

// Open returns the cache of a folder. It makes the folder, and removes old files from it.
func Open(folder string, now func() time.Time) (*Cache, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of transcripts: %w", err)
	}
	// Others may have made the folder with another mode.
	if err := os.Chmod(folder, 0o700); err != nil {
		return nil, fmt.Errorf("closing the folder of transcripts: %w", err)
	}
	c := &Cache{folder: folder, most: MostBytes, now: now}
	c.clean()
	return c, nil
}

// entry is a transcript as a file keeps it.
type entry struct {
	Steps      []int64         `json:"steps"`
	Transcript transcript.Step `json:"transcript"`
}

// Wrap returns a function that reads from the cache, or else calls read and caches the result.
func (c *Cache) Wrap(read ReadFunc) ReadFunc {
	return func(ctx context.Context, run *v1alpha1.TrainingRun, step int64, evaluation bool) (transcript.Step, []int64,
		error) {
		name := nameOf(run, step, evaluation)
		if found, ok := c.get(name); ok {
			return found.Transcript, found.Steps, nil
		}
		got, steps, err := read(ctx, run, step, evaluation)
		if err == nil {
			c.put(name, entry{Steps: steps, Transcript: got})
		}
		return got, steps, err
	}
}

// nameOf names the file of a transcript by the digest of the values that decide the transcript: the run, the step, and
// the newest attempt that may have made the step again. For the newest step, the number of committed steps is used.
func nameOf(run *v1alpha1.TrainingRun, step int64, evaluation bool) string {
	at := int64(0)
	if step == newest && run.Status.Step != nil {
		at = *run.Status.Step
	}
	attempt := int32(0)
	for _, a := range run.Status.Attempts {
		if a.FromStep == nil || *a.FromStep <= max(step, at) {
			attempt = max(attempt, a.Number)
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "1 %s %d %t %d %d", run.UID, step, evaluation, at, attempt))
	return hex.EncodeToString(sum[:]) + extension
}

// extension is the extension of the files, whose first line is the digest of the rest.
const extension = ".transcript"

// get returns the entry in a file. It removes a damaged file.
func (c *Cache) get(name string) (entry, bool) {
	path := filepath.Join(c.folder, name)
	data, err := os.ReadFile(path)
	if err != nil {
		return entry{}, false
	}
	found, err := decode(data)
	if err != nil {
		_ = os.Remove(path)
		return entry{}, false
	}
	_ = os.Chtimes(path, time.Time{}, c.now())
	return found, true
}

func decode(data []byte) (entry, error) {
	digest, packed, _ := bytes.Cut(data, []byte("\n"))
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != string(digest) {
		return entry{}, errors.New("the file is damaged")
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return entry{}, fmt.Errorf("reading the file: %w", err)
	}
	var found entry
	err = json.NewDecoder(io.LimitReader(unpacked, mostDecoded)).Decode(&found)
	return found, err
}

func encode(e entry) ([]byte, error) {
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(json.NewEncoder(writer).Encode(e), writer.Close()); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(packed.Bytes())
	return append([]byte(hex.EncodeToString(sum[:])+"\n"), packed.Bytes()...), nil
}

// put keeps a transcript. It ignores errors, such as a full disk.
func (c *Cache) put(name string, e entry) {
	data, err := encode(e)
	if err != nil || int64(len(data)) > c.most {
		return
	}
	if err := atomicfile.Write(filepath.Join(c.folder, name), 0o600, data); err != nil {
		return
	}
	c.clean()
}

// clean removes files that were not used for long, and the least recently used files beyond the bound.
func (c *Cache) clean() {
	c.mu.Lock()
	defer c.mu.Unlock()
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), extension) {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	total := int64(0)
	for _, file := range files {
		if total += file.Size(); total > c.most || c.now().Sub(file.ModTime()) > Lifetime {
			_ = os.Remove(filepath.Join(c.folder, file.Name()))
		}
	}
}
