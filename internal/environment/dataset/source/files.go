// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/download"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/rowfile"
	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
)

// loadFiles reads files of a ConfigMap, a claim or a URL.
func (l *Loader) loadFiles(ctx context.Context,
	definition contract.Dataset) (*dataset.Table, *contract.DataContents, error) {
	if definition.JSONL.URL != "" {
		done, err := l.permit(ctx)
		if err != nil {
			return nil, nil, err
		}
		defer done()
	}
	b := l.build(definition)
	for i, split := range definition.Splits {
		if split.From != "" || b.has(split.Source) {
			continue
		}
		err := b.read(split.Source, func(s *source) (string, error) {
			file, size, err := l.openFile(ctx, *definition.JSONL, i, split.Source)
			if err != nil {
				return "", err
			}
			defer file.Close()
			digest, err := s.add(split.Source, l.logged(ctx, split.Source, size, file))
			if err != nil {
				return "", err
			}
			return digest, checkDigest(definition, i, split.Source, digest)
		})
		if err != nil {
			return nil, nil, b.discard(err)
		}
	}
	return b.table("")
}

// permit waits until this pod may download.
func (l *Loader) permit(ctx context.Context) (func(), error) {
	if l.config.Permit == nil {
		return func() {}, nil
	}
	return l.config.Permit(ctx)
}

// checkDigest compares the digest of a source with the digest that the definition requires.
func checkDigest(definition contract.Dataset, index int, name, got string) error {
	want := definition.SHA256(name)
	switch {
	case want == "" || want == got:
		return nil
	case definition.Contents != nil:
		return errorf("dataset.splits[%d].source: %s has sha256 %s, but had %s when the environment was probed: the data "+
			"has changed; "+
			"restore it, or, if the change is intended, have the environment probed again and start a new run", index, name, got,
			want)
	default:
		return errorf("dataset.splits[%d].sha256: %s has sha256 %s, not %s: restore the file, or correct sha256", index, name,
			got, want)
	}
}

// openFile opens a file, and returns it with its size, which is -1 if it is not known.
func (l *Loader) openFile(ctx context.Context, j settings.JSONL, index int, name string) (io.ReadCloser, int64, error) {
	if j.URL != "" {
		return l.openURL(ctx, j.URL, index, name)
	}
	dir := filepath.Join(l.config.Root, contract.FilesMount(j))
	opened, err := os.OpenInRoot(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, missingFile(dir, j, index, name)
	}
	if err != nil {
		return nil, 0, errorf("dataset.splits[%d].source: %s cannot be read: %w: make it readable for group 65532", index,
			name, err)
	}
	info, err := opened.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errorf("dataset.splits[%d].source: %s is not a file: give the path of a file", index, name)
	}
	if err != nil {
		return nil, 0, errors.Join(err, opened.Close())
	}
	return opened, info.Size(), nil
}

// missingFile returns an error for a ConfigMap or a claim that lacks a file. It lists the files that are there.
func missingFile(dir string, j settings.JSONL, index int, name string) error {
	entries, err := os.ReadDir(dir)
	var has []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "..") && len(has) < 16 {
			has = append(has, e.Name())
		}
	}
	switch {
	case j.ClaimName != "":
		return errorf("dataset.splits[%d].source: the volume of claim %q has no file %q; its top folder has %s: add the "+
			"file, or correct source",
			index, j.ClaimName, name, listed(has))
	case err != nil || len(has) == 0:
		return errorf("dataset.jsonl.configMapRef: ConfigMap %q does not exist, or is empty: create it in this namespace "+
			"with key %q, or correct the name",
			j.ConfigMapRef.Name, name)
	default:
		return errorf("dataset.splits[%d].source: ConfigMap %q has no key %q; it has %s: add the key, or correct source",
			index, j.ConfigMapRef.Name, name, listed(has))
	}
}

func listed(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// openURL opens a file of a folder at a URL.
func (l *Loader) openURL(ctx context.Context, folder string, index int, name string) (io.ReadCloser, int64, error) {
	base, err := url.Parse(folder)
	if err != nil {
		return nil, 0, errorf("dataset.jsonl.url: %w: correct it", err)
	}
	body, err := l.config.Client.Open(ctx, download.Source{URL: base.JoinPath(name).String()})
	if status, ok := errors.AsType[*httpstatus.Error](err); ok && status.Status/100 == 4 &&
		status.Status != http.StatusTooManyRequests {
		return nil, 0, errorf("dataset.splits[%d].source: %w: correct jsonl.url or source, or let the pods read the file",
			index, status)
	}
	if err != nil {
		return nil, 0, err
	}
	return body, body.Size, nil
}

// builder collects the sources of a data set.
type builder struct {
	loader     *Loader
	definition contract.Dataset
	format     *dataset.Format
	files      map[string]*rowfile.File
	sources    []contract.DataSource
}

func (l *Loader) build(definition contract.Dataset) *builder {
	b := &builder{loader: l, definition: definition, files: map[string]*rowfile.File{}}
	if !l.config.AnyRows {
		b.format = dataset.NewFormat(definition.Dataset)
	}
	return b
}

func (b *builder) has(name string) bool { return b.files[name] != nil }

// read writes the rows of a source; fill adds them and returns the source's digest.
func (b *builder) read(name string, fill func(*source) (digest string, err error)) error {
	config := b.loader.config
	rows, err := rowfile.Create(config.Dir, config.Space-b.loader.used)
	if err != nil {
		return err
	}
	digest, err := fill(&source{format: b.format, rows: rows, dir: config.Dir, space: config.Space})
	if err == nil && rows.Rows() == 0 {
		err = errorf("dataset: %s has no rows: add some, or remove the split", name)
	}
	if err != nil {
		return errors.Join(err, rows.Discard())
	}
	file, err := rows.Finish()
	if err != nil {
		return err
	}
	b.loader.used += file.Size()
	b.files[name] = file
	b.sources = append(b.sources, contract.DataSource{Name: name, SHA256: digest, Rows: file.Rows()})
	return nil
}

// table returns the splits of the files that were read. The revision is the commit of a repository; it is empty for
// other data.
func (b *builder) table(revision string) (*dataset.Table, *contract.DataContents, error) {
	rows := map[string]dataset.Rows{}
	for name, file := range b.files {
		rows[name] = fileRows{file: file}
	}
	table, err := tableOf(b.definition, rows)
	if err != nil {
		return nil, nil, b.discard(err)
	}
	b.loader.files[table] = slices.Collect(maps.Values(b.files))
	return table, &contract.DataContents{Revision: revision, Sources: b.sources}, nil
}

// discard frees the disk after an error, which it returns.
func (b *builder) discard(err error) error {
	for _, file := range b.files {
		b.loader.used -= file.Size()
		if closing := file.Close(); closing != nil {
			err = fmt.Errorf("%w (%w)", err, closing)
		}
	}
	return err
}
