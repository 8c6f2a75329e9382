// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

const (
	// lookEvery is the interval between two looks at the files.
	lookEvery = 200 * time.Millisecond
	// maxWatched bounds how many files of one folder are compared.
	maxWatched = 10_000
)

// checkWatch refuses flags that cannot be watched.
func (f flags) checkWatch() error {
	switch {
	case f.file == "-":
		return cli.Misused("--watch needs a file: the standard input is read once")
	case f.url != "":
		return cli.Misused("--watch and --url exclude each other: each change of a file would buy tokens")
	}
	return nil
}

// watch tries the file, and again whenever the file or a file that it uses has changed, until ctx ends. An error is
// printed and ends nothing: the next change may repair it.
func (f flags) watch(ctx context.Context, env cli.IO, format output.Format) error {
	for ctx.Err() == nil {
		seen := f.fingerprint(env)
		attempt, cancel := context.WithCancel(ctx)
		changed := make(chan struct{})
		go func() {
			defer close(changed)
			f.awaitChange(ctx, env, seen)
			cancel()
		}()
		err := f.once(attempt, env, format)
		if attempt.Err() == nil {
			if err != nil {
				fmt.Fprintln(env.Stderr, "error:", err)
			}
			fmt.Fprintf(env.Stderr, "waiting for a change of %s, or of a folder that it uses\n", f.file)
		}
		<-changed
		cancel()
	}
	return nil
}

// awaitChange returns when the files are no longer as they were seen, or when ctx ends.
func (f flags) awaitChange(ctx context.Context, env cli.IO, seen map[string]string) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !maps.Equal(seen, f.fingerprint(env)) {
			return
		}
	}
}

// fingerprint returns sizes and times of all files that a trial reads: the file, the folders of --data and --secret,
// the modules in the folders of PYTHONPATH, and the modules below this folder if --ors-command starts servers.
// Without times, a change that keeps the size would be missed.
func (f flags) fingerprint(env cli.IO) map[string]string {
	seen := map[string]string{}
	note := func(root string, wanted func(name string) bool) {
		count := 0
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil { // A file that is missing is no part of the fingerprint.
				return nil
			}
			if entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir // .git, .venv
			}
			if count++; count > maxWatched {
				return fs.SkipAll
			}
			info, err := entry.Info()
			if err == nil && !entry.IsDir() && wanted(entry.Name()) {
				seen[path] = fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
			}
			return nil
		})
	}
	everything := func(string) bool { return true }
	note(f.file, everything)
	for _, given := range slices.Concat(f.data, f.secrets) {
		if _, folder, ok := strings.Cut(given, "="); ok {
			note(folder, everything)
		}
	}
	modules := filepath.SplitList(env.Getenv("PYTHONPATH"))
	if len(f.orsCommands) > 0 {
		modules = append(modules, ".")
	}
	for _, folder := range modules {
		note(folder, func(name string) bool { return filepath.Ext(name) == ".py" })
	}
	return seen
}
