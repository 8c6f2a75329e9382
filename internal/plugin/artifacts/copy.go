// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

const (
	// copyDeadline bounds a pod that sends files.
	copyDeadline = time.Hour
	// mostRanges bounds the ranges of names that a pod is asked for. If there are more, ranges are merged, and the files
	// between them are sent without need.
	mostRanges = 64
)

func newCopy(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var image string
	command := &cobra.Command{
		Use: "cp RUN[:PATH] DEST", Short: "Copy files of a run to this machine",
		Long: `kubectl tinker artifacts cp copies the files of a run, or those at a path, to this machine. The files of a folder
are written into the folder DEST, which is made; one file is written into DEST if that is a folder, or gets that name.

A file appears whole or not at all, with the time that it has in the artifacts. A file that DEST has with the same size
and time is not copied again: the same command continues a copy that was interrupted, and brings what is new of a run
that trains. Nothing is written outside of DEST, whatever the names of files are, and no file is deleted.
` + help,
		Example: copyExample,
		Args:    cli.Args(2, 2, "RUN[:PATH] and DEST"), ValidArgsFunction: cluster.CompleteRuns(1),
		RunE: func(command *cobra.Command, args []string) error {
			run, at, _ := strings.Cut(args[0], ":")
			if run == "" || args[1] == "" {
				return cli.Misused("%q and %q are no source and destination: write RUN[:PATH] and DEST", args[0], args[1])
			}
			return withFiles(command.Context(), env, cluster, run, image, func(ctx context.Context, reader Reader,
				run *v1alpha1.TrainingRun, files []delivery.File) error {
				reader.deadline = copyDeadline
				return copyFiles(ctx, env, reader, run, files, at, args[1])
			})
		},
	}
	imageFlag(command, &image)
	return command
}

// copyFiles copies the files at a path to a destination.
func copyFiles(ctx context.Context, env cli.IO, reader Reader, run *v1alpha1.TrainingRun, files []delivery.File,
	at, to string) error {
	files, err := below(run.Name, files, at)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("run %q has no files yet: its learner writes them once it trains; kubectl tinker why %s says what "+
			"the run waits for", run.Name, run.Name)
	}
	d, err := openDestination(files, clean(at), to)
	if err != nil {
		return err
	}
	defer d.close()
	shown := progressOf(env, d)
	// A pod that ends early has sent some files, and the next one continues after them.
	for missing := d.missing(); len(missing) > 0; {
		err := reader.read(ctx, run, []string{"--copy=" + delivery.FormatRanges(rangesOf(files, missing))},
			func(found delivery.Delivery) error {
				defer shown.show(false)
				return d.take(found.Part)
			})
		left := d.missing()
		if err != nil && (!errors.Is(err, errCut) || len(left) >= len(missing)) {
			shown.show(true)
			return fmt.Errorf("%w: %d of %d files are copied; the same command continues", err, d.whole(), len(d.files))
		}
		if err == nil {
			break // Files that are still missing have errors, or are gone from the artifacts.
		}
		missing = left
	}
	shown.show(true)
	fmt.Fprintf(env.Stdout, "%s copied to %s, %s; %d were there already\n", cli.Count(d.copied, "file"), to,
		bytesText(d.bytes), d.kept)
	if gone := len(d.missing()); gone > 0 {
		fmt.Fprintf(env.Stderr, "%s left the artifacts meanwhile\n", cli.Count(gone, "file"))
	}
	return d.problems()
}

// rangesOf returns the ranges of names that have the missing files among the sorted files.
func rangesOf(files []delivery.File, missing map[string]bool) []delivery.Range {
	type gap struct{ at, width int }
	var ranges []delivery.Range
	var gaps []gap // gaps[i] is between ranges i and i+1.
	last := -1
	for i, file := range files {
		if !missing[file.Name] {
			continue
		}
		if last >= 0 && last == i-1 {
			ranges[len(ranges)-1][1] = file.Name
		} else {
			if last >= 0 {
				gaps = append(gaps, gap{len(ranges) - 1, i - last})
			}
			ranges = append(ranges, delivery.Range{file.Name, file.Name})
		}
		last = i
	}
	if len(ranges) <= mostRanges {
		return ranges
	}
	// The widest gaps remain.
	slices.SortFunc(gaps, func(a, b gap) int { return cmp.Compare(b.width, a.width) })
	kept := map[int]bool{}
	for _, g := range gaps[:mostRanges-1] {
		kept[g.at] = true
	}
	merged := ranges[:1:1]
	for i, r := range ranges[1:] {
		if kept[i] {
			merged = append(merged, r)
		} else {
			merged[len(merged)-1][1] = r[1]
		}
	}
	return merged
}

// progress shows how much is copied: in a line that changes in a terminal, or else in a new line every 10 seconds.
type progress struct {
	env      cli.IO
	to       *destination
	terminal bool
	shown    time.Time
}

func progressOf(env cli.IO, to *destination) *progress {
	file, ok := env.Stderr.(*os.File)
	return &progress{env: env, to: to, terminal: ok && term.IsTerminal(int(file.Fd())), shown: env.Now()}
}

func (p *progress) show(over bool) {
	period := 10 * time.Second
	if p.terminal {
		period = 200 * time.Millisecond
	}
	now := p.env.Now()
	if !over && now.Sub(p.shown) < period || over && !p.terminal {
		return
	}
	p.shown = now
	line := fmt.Sprintf("%d of %s, %s of %s", p.to.whole(), cli.Count(len(p.to.files), "file"), bytesText(p.to.done()),
		bytesText(p.to.total))
	switch {
	case over:
		_, _ = io.WriteString(p.env.Stderr, "\r\x1b[K")
	case p.terminal:
		_, _ = io.WriteString(p.env.Stderr, "\r\x1b[K"+line)
	default:
		fmt.Fprintln(p.env.Stderr, line)
	}
}

// bytesText returns a size, as in 12.3 MB.
func bytesText(n int64) string {
	text := output.Count(n)
	if unit := strings.TrimLeft(text, "0123456789.-"); unit != "" {
		return strings.TrimSuffix(text, unit) + " " + unit + "B"
	}
	return text + " bytes"
}

// isFolder reports whether a name is the name of a folder, or is written like one.
func isFolder(name string) bool {
	if info, err := os.Stat(name); err == nil {
		return info.IsDir()
	}
	return strings.HasSuffix(name, "/") || strings.HasSuffix(name, string(filepath.Separator))
}
