// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
	"github.com/tinker-operator/tinker-operator/internal/status"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const (
	// mostOfSweep bounds how many runs a grid has.
	mostOfSweep = 64
	// annotationHeld marks a run of a sweep that is suspended until others have ended. A run that a person suspends lacks
	// it, and stays suspended.
	annotationHeld = "rl.tinker-operator.dev/sweep-held"
)

// expand returns the runs of a grid: the run itself if no grid is given.
func expand(run *unstructured.Unstructured, sweep string, grid []string) ([]*unstructured.Unstructured, error) {
	runs := []*unstructured.Unstructured{run}
	names, err := axisNames(grid)
	if err != nil {
		return nil, err
	}
	for i, axis := range grid {
		path, values, _ := strings.Cut(axis, "=")
		if isRange(values) {
			return nil, cli.Misused("--grid: %q is a range, of which a search draws values: add --search random, or write "+
				"PATH=A,B,C", axis)
		}
		var next []*unstructured.Unstructured
		for _, base := range runs {
			for value := range strings.SplitSeq(values, ",") {
				value = strings.TrimSpace(value)
				changed := base.DeepCopy()
				if err := manifest.Set(changed.Object, path+"="+value); err != nil {
					return nil, cli.Misused("--grid: %w", err)
				}
				label(changed, observe.LabelSweepValue+names[i], labelValue(value))
				next = append(next, changed)
			}
		}
		if runs = next; len(runs) > mostOfSweep {
			return nil, cli.Misused("--grid makes %d runs or more: give at most %d combinations", len(runs), mostOfSweep)
		}
	}
	if len(grid) == 0 {
		return runs, nil
	}
	for i, r := range runs {
		r.SetName(fmt.Sprintf("%s-%d", run.GetName(), i+1))
		label(r, observe.LabelSweep, cmp.Or(sweep, run.GetName()))
	}
	return runs, nil
}

// axisNames returns a name for each axis of a grid: the last field of its path, with fields before it if that is not
// enough to tell the axes apart.
func axisNames(grid []string) ([]string, error) {
	paths := make([][]string, len(grid))
	for i, axis := range grid {
		path, values, ok := strings.Cut(axis, "=")
		if !ok || values == "" {
			return nil, cli.Misused("--grid: %q lacks values: write PATH=A,B,C", axis)
		}
		paths[i] = strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]/", r) })
		if len(paths[i]) == 0 {
			return nil, cli.Misused("--grid: %q lacks a path: write PATH=A,B,C", axis)
		}
	}
	names := make([]string, len(grid))
	for fields := 1; ; fields++ {
		count := map[string]int{}
		longer := false
		for i, path := range paths {
			names[i] = labelValue(strings.Join(path[max(0, len(path)-fields):], "."))
			count[names[i]]++
			longer = longer || len(path) > fields
		}
		if len(count) == len(grid) {
			return names, nil
		}
		if !longer {
			return nil, cli.Misused("--grid: a path is given twice: write all of its values at once, PATH=A,B,C")
		}
	}
}

var notInLabels = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// labelValue turns a text into a valid value of a label.
func labelValue(text string) string {
	const most = 63
	clean := strings.Trim(notInLabels.ReplaceAllString(text, "-"), "._-")
	return strings.TrimRight(clean[:min(most, len(clean))], "._-")
}

func label(object *unstructured.Unstructured, key, value string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	object.SetLabels(labels)
}

func annotate(object *unstructured.Unstructured, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}

// holdBack marks runs to be created suspended, until other runs of their sweep have ended.
func holdBack(runs []*unstructured.Unstructured) error {
	for _, run := range runs {
		if err := unstructured.SetNestedField(run.Object, true, "spec", "suspend"); err != nil {
			return fmt.Errorf("setting spec.suspend: %w", err)
		}
		annotate(run, annotationHeld, "true")
	}
	return nil
}

// feeder resumes the runs of a sweep that are held back.
type feeder struct {
	env              cli.IO
	kube             client.Client
	namespace, sweep string
	// period is the time between two looks at the sweep.
	period time.Duration
}

func newFeeder(env cli.IO, kube client.Client, namespace, sweep string) feeder {
	return feeder{env: env, kube: kube, namespace: namespace, sweep: sweep, period: 5 * time.Second}
}

// feed resumes runs that are held back, so that no more than most runs of the sweep are in progress, until none is held
// back.
func (f feeder) feed(ctx context.Context, most int) error {
	for {
		left, err := f.resume(ctx, most)
		if err != nil || left == 0 {
			return err
		}
		if err := wait.Sleep(ctx, f.period); err != nil {
			return f.broke(ctx, err, "holds "+cli.Count(left, "run")+" back", most)
		}
	}
}

// broke returns the error of a command that ends while the sweep holds runs back, or may do so. It says how they are
// resumed.
func (f feeder) broke(ctx context.Context, err error, holds string, most int) error {
	if ctx.Err() != nil { // a request that was interrupted has an error of its own
		err = ctx.Err()
	}
	return fmt.Errorf("%w: sweep %q %s: kubectl tinker resume --sweep %s --max-running %d continues", err, f.sweep, holds,
		f.sweep, most)
}

// resume looks at the sweep once, and returns the number of runs that remain held back.
func (f feeder) resume(ctx context.Context, most int) (left int, err error) {
	runs, err := runsOf(ctx, f.kube, f.namespace, f.sweep)
	if err != nil {
		return 0, f.broke(ctx, err, "may hold runs back", most)
	}
	if len(runs) == 0 {
		return 0, fmt.Errorf("sweep %q has no runs in namespace %q: list sweeps with: kubectl get trainingruns -L %s",
			f.sweep, f.namespace, observe.LabelSweep)
	}
	running := 0
	var held []*v1alpha1.TrainingRun
	for i := range runs {
		switch run := &runs[i]; {
		case run.Annotations[annotationSearch] != "":
			return 0, fmt.Errorf("sweep %q is a search, which the kubectl tinker create --search that began it continues: "+
				"repeat that command", f.sweep)
		case run.Annotations[annotationHeld] != "" && ptr.Deref(run.Spec.Suspend, false):
			held = append(held, run)
		case !status.RunFinished(run) && !ptr.Deref(run.Spec.Suspend, false):
			running++
		}
	}
	var errs []error
	for _, run := range held[:max(0, min(len(held), most-running))] {
		before := run.DeepCopy()
		run.Spec.Suspend = new(false)
		delete(run.Annotations, annotationHeld)
		if err := f.kube.Patch(ctx, run, client.MergeFromWithOptions(before,
			client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("resuming run %q: %w", run.Name, err))
			continue
		}
		held = held[1:]
		fmt.Fprintf(f.env.Stdout, "trainingrun %s runs; %d of sweep %s wait\n", run.Name, len(held), f.sweep)
	}
	if len(errs) > 0 {
		return len(held), f.broke(ctx, errors.Join(errs...), "holds "+cli.Count(len(held), "run")+" back", most)
	}
	return len(held), nil
}
