// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/nearest"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

const listExample = `  kubectl tinker artifacts ls arithmetic
  kubectl tinker artifacts ls arithmetic episodes
  kubectl tinker artifacts ls arithmetic --recursive -o plain | sort -k2 -n | tail`

const copyExample = `  kubectl tinker artifacts cp arithmetic ./arithmetic
  kubectl tinker artifacts cp arithmetic:tensorboard ./tensorboard
  kubectl tinker artifacts cp arithmetic:metrics.jsonl .`

const help = `
They are read on the run's claim or at its URL, by a pod that this command starts with the operator's image and deletes
again; that requires Kubernetes' role edit. It works while a run trains, while it is suspended and after its end.
docs/artifacts.md says what each file has.`

// New returns the command artifacts.
func New(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	command := &cobra.Command{
		Use: "artifacts", Short: "List and copy the files of a run",
		Long:    "kubectl tinker artifacts lists and copies the files that a run with spec.artifacts has written.\n" + help,
		Example: listExample + "\n" + copyExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Misused("there is no command %q: choose ls or cp", args[0])
			}
			return cli.Misused("a command is missing: choose ls or cp")
		},
	}
	command.AddCommand(newList(env, cluster), newCopy(env, cluster))
	return command
}

type listFlags struct {
	recursive bool
	image     string
	format    *output.Format
}

func newList(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f listFlags
	command := &cobra.Command{
		Use: "ls RUN [PATH]", Short: "List the files of a run",
		Long: "kubectl tinker artifacts ls lists the files of a run, or those in a folder of it, with their sizes and " +
			"times.\nA folder has the size of all its files, and the time of the newest.\n" + help,
		Example: listExample,
		Args:    cli.Args(1, 2, "RUN and perhaps a PATH"), ValidArgsFunction: cluster.CompleteRuns(1),
		RunE: func(command *cobra.Command, args []string) error {
			at := ""
			if len(args) > 1 {
				at = args[1]
			}
			return withFiles(command.Context(), env, cluster, args[0], f.image,
				func(_ context.Context, _ Reader, run *v1alpha1.TrainingRun, files []delivery.File) error {
					found, err := below(run.Name, files, at)
					if err != nil {
						return err
					}
					return f.print(env, found, at)
				})
		},
	}
	f.format = output.Flag(command.Flags())
	command.Flags().BoolVarP(&f.recursive, "recursive", "R", false, "list the files of all folders")
	imageFlag(command, &f.image)
	return command
}

func imageFlag(command *cobra.Command, image *string) {
	command.Flags().StringVar(image, "image", "", "`IMAGE` of the pod that reads the artifacts; without it, that of the "+
		"run's newest attempt")
}

// withFiles calls act with the files of a run.
func withFiles(ctx context.Context, env cli.IO, cluster *cli.Cluster, name, image string,
	act func(context.Context, Reader, *v1alpha1.TrainingRun, []delivery.File) error) error {
	connection, err := cluster.Connect()
	if err != nil {
		return err
	}
	run, err := connection.Run(ctx, name)
	if err != nil {
		return err
	}
	if run.Spec.Artifacts == nil {
		return fmt.Errorf("run %q writes no files: set spec.artifacts; kubectl tinker metrics %s shows the figures that the "+
			"operator keeps without", run.Name, run.Name)
	}
	reader, err := NewReader(env, connection, image)
	if err != nil {
		return err
	}
	found, err := reader.Ask(ctx, run, []string{"--files"})
	if err != nil {
		return err
	}
	return act(ctx, reader, run, found.Files)
}

// clean returns a path in the form of the names of a run's files, without a slash at its ends.
func clean(at string) string { return strings.TrimPrefix(path.Clean("/"+at), "/") }

// below returns the files at a path: a file, or all files of a folder.
func below(run string, files []delivery.File, at string) ([]delivery.File, error) {
	wanted := clean(at)
	if wanted == "" {
		return files, nil
	}
	var found []delivery.File
	known := map[string]bool{}
	for _, file := range files {
		if file.Name == wanted || strings.HasPrefix(file.Name, wanted+"/") {
			found = append(found, file)
		}
		for name := file.Name; name != "."; name = path.Dir(name) {
			known[name] = true
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	if near := nearest.Name(wanted, slices.Sorted(maps.Keys(known))); near != "" {
		return nil, fmt.Errorf("run %q has no file %s: did you mean %s?", run, output.Safe(at), output.Safe(near))
	}
	return nil, fmt.Errorf("run %q has no file %s: list its files with: kubectl tinker artifacts ls %s", run,
		output.Safe(at), run)
}

// entry is a file, or a folder with the number of its files.
type entry struct {
	delivery.File

	Files int `json:"files,omitempty"`
}

// entriesOf returns the files of a folder, and its folders as one entry each.
func entriesOf(files []delivery.File, at string) []entry {
	folders := map[string]entry{}
	for _, file := range files {
		prefix := ""
		if wanted := clean(at); wanted != "" && file.Name != wanted {
			prefix = wanted + "/"
		}
		name, one := file.Name, 0
		if inner, _, deeper := strings.Cut(strings.TrimPrefix(file.Name, prefix), "/"); deeper && file.Name != clean(at) {
			name, one = prefix+inner+"/", 1
		}
		e := folders[name]
		e.Name, e.Files, e.Size = name, e.Files+one, e.Size+file.Size
		if file.Modified.After(e.Modified) {
			e.Modified = file.Modified
		}
		folders[name] = e
	}
	return slices.SortedFunc(maps.Values(folders), func(a, b entry) int { return cmp.Compare(a.Name, b.Name) })
}

func (f listFlags) print(env cli.IO, files []delivery.File, at string) error {
	var entries []entry
	if f.recursive {
		for _, file := range files {
			entries = append(entries, entry{File: file})
		}
	} else {
		entries = entriesOf(files, at)
	}
	result := output.Result{Header: []string{"NAME", "SIZE", "FILES", "MODIFIED"}, Value: entries}
	for _, e := range entries {
		size, count := strconv.FormatInt(e.Size, 10), ""
		if *f.format == output.Table {
			size = output.Count(e.Size)
		}
		if e.Files > 0 {
			count = strconv.Itoa(e.Files)
		}
		result.Rows = append(result.Rows, []string{output.Safe(e.Name), size, count,
			e.Modified.UTC().Format(time.RFC3339)})
	}
	return output.Print(env, *f.format, result)
}
