// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/download"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/archive"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinker/peft"
)

const downloadHelp = `kubectl tinker checkpoints download fetches the adapter of a checkpoint in the format of
PEFT, adapter_model.safetensors and
adapter_config.json, from the endpoint of the run. Without --step and --best it is the newest checkpoint. An endpoint
that exports adapters loads the state into a new model first; others serve archives.

The API key comes from the variable TINKER_API_KEY, or from the run's Secret if you may read it. An endpoint that only
pods reach needs a forwarded port, which --base-url names. For a run with tinker.endpointRef a pod in its namespace asks
with the run's token, and no key is needed. A download that was interrupted is continued by the same
command where
the server permits it; the files have their names only when they are complete.`

const downloadExample = `  kubectl tinker checkpoints download arithmetic
  kubectl tinker checkpoints download arithmetic --best -o adapter
  kubectl tinker checkpoints download arithmetic --step 40 --base-url http://localhost:8080`

type downloadFlags struct {
	step            int64
	best, force     bool
	folder, baseURL string
}

func newDownload(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f downloadFlags
	command := cluster.ForOneRun(&cobra.Command{
		Use: "download RUN", Short: "Download the adapter of a checkpoint", Long: downloadHelp, Example: downloadExample,
		PreRunE: func(*cobra.Command, []string) error {
			if f.best && f.step >= 0 {
				return cli.Misused("--step and --best exclude each other: give one of them")
			}
			return nil
		},
	}, func(ctx context.Context, connection *cli.Connection, run *v1alpha1.TrainingRun) (err error) {
		chosen, err := Choose(run, f.step, f.best)
		if err != nil {
			return err
		}
		from, err := Open(ctx, env, connection, run, f.baseURL)
		defer func() { err = errors.Join(err, from.Close(ctx)) }()
		if err != nil {
			return err
		}
		return f.download(ctx, env, from, run, chosen)
	})
	flags := command.Flags()
	flags.Int64Var(&f.step, "step", -1, "`STEP` of the checkpoint; without it, the newest")
	flags.BoolVar(&f.best, "best", false, "download the best checkpoint by spec.checkpoints.keepBest")
	flags.StringVarP(&f.folder, "output", "o", "", "`FOLDER` of the files; without it, RUN-sSTEP")
	flags.BoolVar(&f.force, "force", false, "replace files that exist")
	flags.StringVar(&f.baseURL, "base-url", "", "`URL` at which this machine reaches the endpoint; without it, "+
		"TINKER_BASE_URL or the run's own")
	return command
}

// download fetches the adapter of a checkpoint into the folder.
func (f downloadFlags) download(ctx context.Context, env cli.IO, from Endpoint, run *v1alpha1.TrainingRun,
	chosen v1alpha1.Checkpoint) error {
	folder := cmp.Or(f.folder, fmt.Sprintf("%s-s%d", run.Name, chosen.Step))
	for _, name := range []string{archive.ConfigFile, archive.TensorsFile} {
		if _, err := os.Lstat(filepath.Join(folder, name)); err == nil && !f.force {
			return fmt.Errorf("%s exists: choose another folder with --output, or replace it with --force",
				filepath.Join(folder, name))
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("checking the folder of the adapter: %w", err)
		}
	}
	made := os.Mkdir(folder, 0o755) == nil
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making the folder of the adapter: %w", err)
	}
	d := &adapterDownload{env: env, from: from, folder: folder, model: run.Spec.Model.Name}
	var errs []error
	for _, way := range d.ways(ctx, chosen) {
		files, err := way.fetch(ctx, way.path)
		if err == nil {
			for _, file := range files {
				fmt.Fprintf(env.Stdout, "%s  %s\n", file.SHA256, file.Path)
			}
			return nil
		}
		errs = append(errs, fmt.Errorf("downloading %s: %w", way.path, err))
		if !otherMayHave(err) {
			break
		}
	}
	if made {
		_ = os.Remove(folder) // It stays if a download in it can be continued.
	}
	if len(errs) == 0 {
		return fmt.Errorf("the checkpoint of step %d has no path: choose another one with --step", chosen.Step)
	}
	return errors.Join(errs...)
}

// otherMayHave reports whether another way to download a checkpoint may succeed where this one has failed.
func otherMayHave(err error) bool {
	if errors.Is(err, archive.ErrNoAdapter) {
		return true
	}
	switch client.CategoryFrom(err) {
	case tinker.CategoryNotFound, tinker.CategoryUser, tinker.CategoryUnsupported:
		return true
	}
	return false
}

// adapterDownload downloads the adapter of one checkpoint of a model into a folder.
type adapterDownload struct {
	env           cli.IO
	from          Endpoint
	folder, model string
}

// way is a way to get the adapter of a checkpoint.
type way struct {
	path  string
	fetch func(ctx context.Context, path string) ([]archive.File, error)
}

// ways lists the ways to try. Servers of newer versions export a state as external weights. Of the others, some have
// the adapter in the archive of the sampler weights, and some in the archive of the state.
func (d *adapterDownload) ways(ctx context.Context, chosen v1alpha1.Checkpoint) []way {
	var archives []way
	for _, path := range []string{chosen.Sampler, chosen.State} {
		if path != "" {
			archives = append(archives, way{path, d.fetchArchive})
		}
	}
	if chosen.State == "" {
		return archives
	}
	export := way{chosen.State, d.fetchExternal}
	if d.from.exports(ctx, chosen.State) {
		return append([]way{export}, archives...)
	}
	return append(archives, export)
}

// report returns a function that prints messages about the download of a path.
func (d *adapterDownload) report(path string) func(message string) {
	return func(message string) { fmt.Fprintf(d.env.Stderr, "%s: %s\n", path, message) }
}

// partial returns the name of a file that is being downloaded, by the path of its checkpoint.
func (d *adapterDownload) partial(kind, path string) string {
	return filepath.Join(d.folder, fmt.Sprintf(".%s-%x%s", kind, sha256.Sum256([]byte(path)), atomicfile.Extension))
}

// lock keeps other processes from the download of a path into the folder.
func (d *adapterDownload) lock(name string) (unlock func(), err error) {
	lock := flock.New(name)
	unlock = func() { _ = lock.Close() }
	if locked, err := lock.TryLock(); err != nil || !locked {
		unlock()
		return nil, errors.Join(fmt.Errorf("another process downloads into %s: wait for it, or choose another folder "+
			"with --output", d.folder), err)
	}
	return unlock, nil
}

// fetchArchive downloads an archive and installs its adapter.
func (d *adapterDownload) fetchArchive(ctx context.Context, path string) ([]archive.File, error) {
	report := d.report(path)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	api, err := d.from.Client(report, cancel)
	if err != nil {
		return nil, err
	}
	partial := d.partial("archive", path)
	unlock, err := d.lock(partial)
	if err != nil {
		return nil, err
	}
	defer unlock()
	locate := func(ctx context.Context) (string, error) { return d.from.locate(ctx, api, path) }
	downloads := &download.Client{HTTP: d.from.http, Tries: 5, Report: report}
	digest, err := downloads.File(ctx, download.Source{Locate: locate}, partial)
	if err != nil {
		return nil, err
	}
	report("the archive has SHA-256 " + digest)
	files, err := d.install(path, func(folder string) ([]archive.File, error) { return archive.Unpack(partial, folder) })
	return files, errors.Join(err, download.Discard(partial))
}

// install moves an adapter, which unpack writes to a temporary folder, to the folder of the download, in the format
// that PEFT expects.
func (d *adapterDownload) install(path string, unpack func(folder string) ([]archive.File, error)) ([]archive.File,
	error) {
	unpacked := filepath.Join(d.folder, ".adapter")
	if err := os.RemoveAll(unpacked); err != nil {
		return nil, fmt.Errorf("removing the rest of an earlier download: %w", err)
	}
	defer func() { _ = os.RemoveAll(unpacked) }()
	files, err := unpack(unpacked)
	if err != nil {
		return nil, err
	}
	converted, notice, err := peft.Convert(unpacked, d.model)
	if err != nil {
		return nil, err
	}
	if notice != nil {
		d.report(path)(notice.Error())
	}
	if converted != nil {
		files = converted
	}
	for i, file := range files {
		files[i].Path = filepath.Join(d.folder, filepath.Base(file.Path))
		if err := os.Rename(file.Path, files[i].Path); err != nil {
			return nil, fmt.Errorf("writing the adapter: %w", err)
		}
	}
	return files, atomicfile.SyncDir(d.folder)
}
