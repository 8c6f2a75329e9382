// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
)

const (
	// chunksDir has the lines of a lineFile at a URL, where nothing can be added to an object.
	chunksDir = "chunks"
	// chunkLines is the number of lines of an object, apart from the last object of a file.
	chunkLines = 128
)

// chunkName returns the name of the object with the lines of a file from line number first on.
func chunkName(file string, first int64) string {
	return fmt.Sprintf("%s-%09d.jsonl", chunkPrefix(file), first)
}

func chunkPrefix(file string) string { return path.Join(chunksDir, strings.TrimSuffix(file, ".jsonl")) }

// chunks records which lines of a file are uploaded. The lock of uploads guards them.
type chunks struct {
	// first is the number of the first line of the growing object, and start the place at which that line begins.
	first, start int64
	// sent is the end of the uploaded lines.
	sent int64
}

// keep notes that the file was rewritten after its first kept bytes. The object of the next line is uploaded again.
func (c *chunks) keep(l *lineFile, kept int64) error {
	if l.files.remote == nil {
		return nil
	}
	data := make([]byte, kept)
	if _, err := l.file.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading %s: %w", l.name, err)
	}
	*c, l.files.remote.emptied = chunks{}, false
	for {
		chunk, whole := firstLines(data)
		if !whole {
			return nil
		}
		c.first, c.start, data = c.first+chunkLines, c.start+int64(len(chunk)), data[len(chunk):]
		c.sent = c.start
	}
}

// firstLines returns the lines of one object, and whether it is whole.
func firstLines(data []byte) (chunk []byte, whole bool) {
	end := 0
	for range chunkLines {
		n := bytes.IndexByte(data[end:], '\n')
		if n < 0 {
			return data[:end], false
		}
		end += n + 1
	}
	return data[:end], true
}

// put uploads the lines of a file that are not uploaded yet, up to a size of the file, with the earlier lines of the
// same object.
func (c *chunks) put(to *remote, name string, size int64) error {
	if size <= c.sent {
		return nil
	}
	file, err := os.Open(filepath.Join(to.dir, name))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	data := make([]byte, size-c.start)
	if _, err := file.ReadAt(data, c.start); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	for len(data) > 0 {
		chunk, whole := firstLines(data)
		if err := to.put(chunkName(name, c.first), chunk); err != nil {
			return err
		}
		if c.sent = c.start + int64(len(chunk)); !whole {
			return nil
		}
		c.first, c.start, data = c.first+chunkLines, c.sent, data[len(chunk):]
	}
	return nil
}

// sizes returns the sizes of the files.
func (l *lineFiles) sizes() (sizes []int64) {
	for _, file := range l.all() {
		sizes = append(sizes, file.size)
	}
	return sizes
}

// uploadLines uploads the lines of the files up to the sizes, unless a higher attempt has begun. Objects after the last
// lines, which an earlier attempt has left, are emptied.
func (s *Store) uploadLines(sizes []int64) error {
	r := s.files.remote
	r.uploaded = time.Now()
	claims, err := r.list(claimsDir)
	if err != nil || highest(claims) > r.attempt {
		return err
	}
	for i, file := range s.lines.all() {
		if err := file.upload.put(r, file.name, sizes[i]); err != nil {
			return err
		}
	}
	if r.emptied {
		return nil
	}
	for i, file := range s.lines.all() {
		if err := file.upload.emptyBehind(r, file.name, sizes[i]); err != nil {
			return err
		}
	}
	r.emptied = true
	return nil
}

// emptyBehind empties the objects with lines after the last one.
func (c *chunks) emptyBehind(r *remote, name string, size int64) error {
	names, err := r.chunkNames(name)
	if err != nil {
		return err
	}
	for _, object := range names {
		if object > chunkName(name, c.first) || object == chunkName(name, c.first) && c.start == size {
			if err := r.put(object, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// chunkNames names the objects with the lines of a file, in order.
func (r *remote) chunkNames(file string) ([]string, error) {
	names, err := r.list(chunksDir)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", chunksDir, err)
	}
	var found []string
	for _, name := range names {
		if name = path.Join(chunksDir, name); strings.HasPrefix(name, chunkPrefix(file)+"-") {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// download makes a file of its objects, unless it exists. Lines after an object with missing lines are left out, since
// they belong to a superseded attempt.
func (r *remote) download(file string) error {
	target := filepath.Join(r.dir, file)
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	names, err := r.chunkNames(file)
	if err != nil {
		return err
	}
	chunks := make([][]byte, len(names))
	var group errgroup.Group
	group.SetLimit(downloads)
	for i, name := range names {
		group.Go(func() (err error) {
			if chunks[i], err = r.get(name); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return atomicfile.WriteDurable(target, fileMode, joinChunks(names, chunks)...)
}

// joinChunks returns the chunks of a file up to the first that is not followed by the next one.
func joinChunks(names []string, chunks [][]byte) [][]byte {
	for i, chunk := range chunks {
		_, number, _ := strings.Cut(path.Base(names[i]), "-")
		first, err := strconv.ParseInt(strings.TrimSuffix(number, ".jsonl"), 10, 64)
		if err != nil || first != int64(i)*chunkLines {
			return chunks[:i]
		}
		if _, whole := firstLines(chunk); !whole {
			return chunks[:i+1]
		}
	}
	return chunks
}

// uploadInTurn uploads the lines beside the steps, once in a while: rows are the record, and the lines are made from
// them again when a learner begins and ends. So an upload that fails here is repeated later.
func (s *Store) uploadInTurn() {
	r := s.files.remote
	if r == nil || !r.upload.TryLock() {
		return
	}
	if time.Since(r.uploaded) < uploadPeriod {
		r.upload.Unlock()
		return
	}
	sizes := s.lines.sizes()
	go func() {
		defer r.upload.Unlock()
		_ = s.uploadLines(sizes)
	}()
}

// Publish writes metrics.jsonl and evaluations.jsonl as whole objects beside their chunks, at a URL, unless a higher
// attempt has begun.
func (s *Store) Publish() error {
	r := s.files.remote
	if r == nil {
		return nil
	}
	claims, err := r.list(claimsDir)
	if err != nil || highest(claims) > r.attempt {
		return err
	}
	for _, name := range []string{metricsName, evaluationsName} {
		data, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil {
			return err
		}
		if err := r.put(name, data); err != nil {
			return err
		}
	}
	return nil
}
