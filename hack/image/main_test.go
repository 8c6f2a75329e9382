// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// packed is one entry as it is found in a finished layer.
type packed struct {
	Name     string
	Mode     int64
	Content  string
	Modified time.Time
}

func TestRunWritesALoadableTarball(t *testing.T) {
	program := writeFile(t, "program", "machine code")
	notice := writeFile(t, "NOTICE", "terms")
	out := filepath.Join(t.TempDir(), "image.tar")

	var stdout bytes.Buffer
	err := run(t.Context(), []string{
		"--binary", program + "=/opt/bin/program", "--file", notice + "=/NOTICE", "--dir", "/tmp",
		"--entrypoint", "/opt/bin/program", "--entrypoint", "serve", "--cmd", "--help",
		"--env", "A=b", "--label", "org.opencontainers.image.version=v1", "--user", "7:8",
		"--platform", "linux/arm64", "--tag", "example.com/program:v1", "--out", out,
	}, &stdout)
	if err != nil {
		t.Fatal(err)
	}

	image, err := tarball.ImageFromPath(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	wantConfig := v1.Config{
		Entrypoint: []string{"/opt/bin/program", "serve"},
		Cmd:        []string{"--help"},
		Env:        []string{"A=b"},
		Labels:     map[string]string{"org.opencontainers.image.version": "v1"},
		User:       "7:8",
		WorkingDir: "/",
	}
	file := configOf(t, image)
	if diff := cmp.Diff(wantConfig, file.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("linux/arm64", file.OS+"/"+file.Architecture); diff != "" {
		t.Errorf("platform (-want +got):\n%s", diff)
	}
	want := []packed{
		{Name: "NOTICE", Mode: 0o644, Content: "terms", Modified: epoch},
		{Name: "opt/", Mode: 0o755, Modified: epoch},
		{Name: "opt/bin/", Mode: 0o755, Modified: epoch},
		{Name: "opt/bin/program", Mode: 0o755, Content: "machine code", Modified: epoch},
		{Name: "tmp/", Mode: 0o1777, Modified: epoch},
	}
	if diff := cmp.Diff(want, entriesOf(t, image)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(stdout.String(), "example.com/program:v1@sha256:") {
		t.Errorf("printed %q, want the name and the digest", stdout.String())
	}
}

func TestRunGivesEqualBytesForEqualInput(t *testing.T) {
	first, second := writeFile(t, "program", "machine code"), writeFile(t, "program", "machine code")
	other := writeFile(t, "other", "other code")
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(second, later, later); err != nil {
		t.Fatal(err)
	}
	one := runToBytes(t, "--binary", first+"=/program", "--binary", other+"=/other")
	two := runToBytes(t, "--binary", other+"=/other", "--binary", second+"=/program")
	if !bytes.Equal(one, two) {
		t.Error("the tarballs differ, though only times and the order of arguments did")
	}
	three := runToBytes(t, "--binary", other+"=/program", "--binary", other+"=/other")
	if bytes.Equal(one, three) {
		t.Error("the tarballs are equal, though a program differs")
	}
}

func TestRunPushes(t *testing.T) {
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	tag := strings.TrimPrefix(server.URL, "http://") + "/team/program:v1"
	program := writeFile(t, "program", "machine code")

	var stdout bytes.Buffer
	if err := run(t.Context(), []string{"--binary", program + "=/program", "--tag", tag, "--push"}, &stdout); err != nil {
		t.Fatal(err)
	}
	digest, err := crane.Digest(tag)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tag+"@"+digest+"\n", stdout.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

func TestRunRefuses(t *testing.T) {
	program := writeFile(t, "program", "machine code")
	out := filepath.Join(t.TempDir(), "image.tar")
	tests := map[string][]string{
		"an image of nothing":             {"--tag", "a:b", "--out", out},
		"an image that goes nowhere":      {"--tag", "a:b", "--binary", program + "=/program"},
		"a name that is none":             {"--tag", "A B", "--binary", program + "=/program", "--out", out},
		"no name":                         {"--binary", program + "=/program", "--out", out},
		"a path that is not absolute":     {"--tag", "a:b", "--binary", program + "=program", "--out", out},
		"a directory that is relative":    {"--tag", "a:b", "--dir", "tmp", "--out", out},
		"a label without a value":         {"--tag", "a:b", "--binary", program + "=/program", "--label", "x", "--out", out},
		"a platform without architecture": {"--tag", "a:b", "--binary", program + "=/program", "--platform", "linux", "--out", out},
		"one path given twice":            {"--tag", "a:b", "--binary", program + "=/p", "--file", program + "=/p", "--out", out},
		"a program that is not there":     {"--tag", "a:b", "--binary", program + ".missing=/p", "--out", out},
		"a stray argument":                {"--tag", "a:b", "--binary", program + "=/p", "--out", out, "stray"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), args, io.Discard); err == nil {
				t.Error("accepted, want an error")
			}
			if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a file was left behind: %v", err)
			}
		})
	}
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func runToBytes(t *testing.T, args ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := run(t.Context(), append(args, "--tag", "a:b", "--out", out), io.Discard); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func configOf(t *testing.T, image v1.Image) *v1.ConfigFile {
	t.Helper()
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func entriesOf(t *testing.T, image v1.Image) []packed {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers: %d, %v; want one", len(layers), err)
	}
	stream, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	var entries []packed
	reader := tar.NewReader(stream)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, packed{header.Name, header.Mode, string(data), header.ModTime.UTC()})
	}
}
