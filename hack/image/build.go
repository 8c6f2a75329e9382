// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// epoch is the time of everything in an image, so that equal content has an equal digest.
var epoch = time.Unix(0, 0).UTC()

// content is what an image holds and how it starts.
type content struct {
	entries         []entry
	entrypoint      []string
	arguments       []string
	environment     []string
	labels          map[string]string
	user            string
	workingDir      string
	operatingSystem string
	architecture    string
}

// entry is one file of the image, or a directory when its mode says so.
type entry struct {
	source string // file on this machine; empty for a directory
	target string // absolute path in the image
	mode   fs.FileMode
}

// build makes an image of one layer. Every entry belongs to root.
func build(content content) (v1.Image, error) {
	archive, err := archiveOf(content.entries)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("compressing the layer: %w", err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS = content.operatingSystem
	file.Architecture = content.architecture
	file.Created = v1.Time{Time: epoch}
	file.Config = v1.Config{
		Entrypoint: content.entrypoint,
		Cmd:        content.arguments,
		Env:        content.environment,
		Labels:     content.labels,
		User:       content.user,
		WorkingDir: content.workingDir,
	}
	return mutate.ConfigFile(image, file)
}

// archiveOf returns the entries as an uncompressed tar, sorted, each parent directory first.
func archiveOf(entries []entry) ([]byte, error) {
	sorted := slices.Concat(entries, parentsOf(entries))
	slices.SortStableFunc(sorted, func(a, b entry) int { return cmp.Compare(a.target, b.target) })
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for i, next := range sorted {
		if i > 0 && sorted[i-1].target == next.target {
			return nil, fmt.Errorf("packing %s: given twice", next.target)
		}
		if err := writeEntry(writer, next); err != nil {
			return nil, fmt.Errorf("packing %s: %w", next.target, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("closing the archive: %w", err)
	}
	return archive.Bytes(), nil
}

// parentsOf returns the directories that the entries lie in and that none of them is itself.
func parentsOf(entries []entry) []entry {
	known := map[string]bool{"/": true}
	for _, next := range entries {
		known[next.target] = true
	}
	var parents []entry
	for _, next := range entries {
		for parent := path.Dir(next.target); !known[parent]; parent = path.Dir(parent) {
			known[parent] = true
			parents = append(parents, entry{target: parent, mode: fs.ModeDir | 0o755})
		}
	}
	return parents
}

func writeEntry(writer *tar.Writer, next entry) error {
	header := &tar.Header{
		Name:    strings.TrimPrefix(next.target, "/"),
		Mode:    int64(next.mode.Perm()),
		ModTime: epoch,
		Format:  tar.FormatPAX,
	}
	if next.mode.IsDir() {
		header.Name += "/"
		header.Typeflag = tar.TypeDir
		if next.mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		return writer.WriteHeader(header)
	}
	data, err := os.ReadFile(next.source)
	if err != nil {
		return err
	}
	header.Typeflag = tar.TypeReg
	header.Size = int64(len(data))
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err = writer.Write(data)
	return err
}

// writeTarball writes the image under a temporary name first: a reader never sees half of it.
func writeTarball(file string, tag name.Tag, image v1.Image) error {
	partial := file + ".partial"
	if err := tarball.WriteToFile(partial, tag, image); err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	return os.Rename(partial, file)
}

// push sends the image to the registry of its tag, with the credentials that docker login stored.
func push(ctx context.Context, tag name.Tag, image v1.Image) error {
	return remote.Write(tag, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}
