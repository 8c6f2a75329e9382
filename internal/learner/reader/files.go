// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// partBytes is the size of the part of a file in a delivery.
const partBytes = 1 << 20

// source has the files of one run, by their names below its folder.
type source interface {
	// list returns the files in the order of their names.
	list(ctx context.Context) ([]delivery.File, error)
	// open returns a file with its size, or fs.ErrNotExist.
	open(ctx context.Context, file delivery.File) (io.ReadCloser, int64, error)
}

// ListFiles lists the files of a run. A failure that a person can repair is the problem of the delivery.
func ListFiles(ctx context.Context, r Request) delivery.Delivery {
	from, closeSource, err := r.source(ctx)
	if err != nil {
		return delivery.Delivery{Problem: err.Error()}
	}
	defer closeSource()
	files, err := from.list(ctx)
	if err != nil {
		return delivery.Delivery{Problem: fmt.Sprintf("listing files: %v", err)}
	}
	return delivery.Delivery{Files: files}
}

// CopyFiles sends the files of ranges in parts, and then an empty delivery or a delivery with a problem. It returns
// an error only if send fails.
func CopyFiles(ctx context.Context, r Request, ranges []delivery.Range, send func(delivery.Delivery) error) error {
	from, closeSource, err := r.source(ctx)
	if err != nil {
		return send(delivery.Delivery{Problem: err.Error()})
	}
	defer closeSource()
	files, err := from.list(ctx)
	if err != nil {
		return send(delivery.Delivery{Problem: fmt.Sprintf("listing files: %v", err)})
	}
	for _, file := range files {
		if !slices.ContainsFunc(ranges, func(r delivery.Range) bool { return r[0] <= file.Name && file.Name <= r[1] }) {
			continue
		}
		problem, err := copyFile(ctx, from, file, send)
		if err != nil {
			return err
		}
		if problem != nil {
			return send(delivery.Delivery{Problem: fmt.Sprintf("reading %s: %v", file.Name, problem)})
		}
	}
	return send(delivery.Delivery{})
}

// copyFile sends a file as it is when it is opened: a file that grows during the copy is sent up to its size at that
// time. A file that is gone is left out.
func copyFile(ctx context.Context, from source, file delivery.File, send func(delivery.Delivery) error) (problem,
	err error) {
	content, size, problem := from.open(ctx, file)
	if errors.Is(problem, fs.ErrNotExist) {
		return nil, nil
	}
	if problem != nil {
		return problem, nil
	}
	defer func() { _ = content.Close() }()
	file.Size = size
	data := make([]byte, min(partBytes, size))
	for offset := int64(0); ; {
		n, problem := io.ReadFull(content, data[:min(partBytes, size-offset)])
		if problem != nil {
			return fmt.Errorf("%w: it has become shorter: try again", problem), nil
		}
		part := delivery.Part{File: file, Offset: offset, Data: data[:n]}
		if err := send(delivery.Delivery{Part: &part, More: true}); err != nil {
			return nil, err
		}
		if offset += int64(n); offset == size {
			return nil, nil
		}
	}
}

// source opens the folder or the bucket of the run.
func (r Request) source(ctx context.Context) (source, func(), error) {
	dir := r.Dir
	if r.URL != "" {
		address, err := url.Parse(r.URL)
		if err != nil {
			return nil, nil, fmt.Errorf("parsing artifacts.url: %w", err)
		}
		if address.Scheme != "file" {
			objects, err := bucket.Open(ctx, r.URL, r.Variable)
			if err != nil {
				return nil, nil, err
			}
			return objectSource{objects, r.RunUID + "/"}, func() { _ = objects.Close() }, nil
		}
		dir = address.Path
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }()
	run, err := root.OpenRoot(r.RunUID)
	if errors.Is(err, fs.ErrNotExist) {
		return noFiles{}, func() {}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return folderSource{run}, func() { _ = run.Close() }, nil
}

// noFiles is the source of a run that has written nothing.
type noFiles struct{}

func (noFiles) list(context.Context) ([]delivery.File, error) { return []delivery.File{}, nil }

func (noFiles) open(context.Context, delivery.File) (io.ReadCloser, int64, error) {
	return nil, 0, fs.ErrNotExist
}

// folderSource is a folder. Other pods may write to the claim, so no link is followed out of the folder, and only
// regular files are listed.
type folderSource struct{ root *os.Root }

func (f folderSource) list(context.Context) ([]delivery.File, error) {
	files := []delivery.File{}
	err := fs.WalkDir(f.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name != "." {
			return nil
		}
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() || !finished(name) {
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		files = append(files, delivery.File{Name: name, Size: info.Size(), Modified: info.ModTime().UTC()})
		return nil
	})
	return sorted(files), err
}

func (f folderSource) open(_ context.Context, file delivery.File) (io.ReadCloser, int64, error) {
	name := filepath.FromSlash(file.Name)
	opened, err := f.root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := opened.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, opened.Close())
	}
	return opened, info.Size(), nil
}

// objectSource has the objects of a bucket whose names begin with a prefix.
type objectSource struct {
	objects *bucket.Bucket
	prefix  string
}

func (o objectSource) list(ctx context.Context) ([]delivery.File, error) {
	objects, err := o.objects.Objects(ctx, o.prefix)
	files := []delivery.File{}
	for _, object := range objects {
		if name := strings.TrimPrefix(object.Name, o.prefix); name != "" && finished(name) {
			files = append(files, delivery.File{Name: name, Size: object.Size, Modified: object.Modified.UTC()})
		}
	}
	return sorted(files), err
}

func (o objectSource) open(ctx context.Context, file delivery.File) (io.ReadCloser, int64, error) {
	data, err := o.objects.Get(ctx, o.prefix+file.Name)
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), err
}

// finished reports whether a name belongs to a complete file and can be delivered.
func finished(name string) bool {
	return utf8.ValidString(name) && !strings.HasSuffix(name, atomicfile.Extension)
}

func sorted(files []delivery.File) []delivery.File {
	slices.SortFunc(files, func(a, b delivery.File) int { return cmp.Compare(a.Name, b.Name) })
	return files
}
