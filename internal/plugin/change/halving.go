// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/historymap"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/status"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const (
	// annotationRungs has the results of a run of a search at its rungs: the metric by step, null if it has none.
	annotationRungs = "rl.tinker-operator.dev/sweep-rungs"
	// annotationStopped marks a run that does not continue, with the rung that stopped it. A person may set it to leave
	// out a run.
	annotationStopped = "rl.tinker-operator.dev/sweep-stopped"
)

// searcher takes the runs of a search through their rungs. Its decisions follow from the annotations of the runs, so
// that another searcher continues wherever one ends.
type searcher struct {
	search           search
	env              cli.IO
	kube             client.Client
	namespace, sweep string
	// names are the runs of the search, and most limits the runs that run at a time; 0 means no limit.
	names []string
	most  int
	// period is the time between two looks at the runs.
	period time.Duration
	// told has the messages that were printed about runs that wait for a person.
	told map[string]bool
}

// run looks at the runs until no run of the search continues, and prints their results.
func (s searcher) run(ctx context.Context) error {
	for {
		done, err := s.look(ctx)
		if err == nil && done {
			return s.report(ctx)
		}
		if err == nil {
			err = wait.Sleep(ctx, s.period)
		}
		if ctx.Err() != nil { // a request that was interrupted has an error of its own
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%w: the same command continues the search %q", err, s.sweep)
		}
	}
}

// look does the work that is possible now, and reports whether the search is at its end.
func (s searcher) look(ctx context.Context) (done bool, err error) {
	all, err := runsOf(ctx, s.kube, s.namespace, s.sweep)
	if err != nil {
		return false, err
	}
	for _, name := range s.names {
		if !slices.ContainsFunc(all, func(run v1alpha1.TrainingRun) bool { return run.Name == name }) {
			return false, fmt.Errorf("run %q was deleted, which the search needs to rank the others", name)
		}
	}
	running := 0
	var cohort []*v1alpha1.TrainingRun
	for i := range all {
		cohort = append(cohort, &all[i])
		if !status.RunFinished(&all[i]) && !ptr.Deref(all[i].Spec.Suspend, false) {
			running++
		}
	}
	from := int64(-1)
	for _, rung := range s.search.Rungs {
		var open []*v1alpha1.TrainingRun
		for _, run := range cohort {
			paused, known, err := s.measure(ctx, run, from, rung)
			if err != nil {
				return false, err
			}
			if paused {
				running--
			}
			if !known {
				open = append(open, run)
			}
		}
		if len(open) > 0 {
			return false, s.proceed(ctx, open, running)
		}
		if cohort, err = s.halve(ctx, cohort, rung); err != nil {
			return false, err
		}
		from = rung
	}
	cohort = slices.DeleteFunc(cohort, func(run *v1alpha1.TrainingRun) bool {
		return status.RunFinished(run) || run.Annotations[annotationStopped] != ""
	})
	return len(cohort) == 0, s.proceed(ctx, cohort, running)
}

// measure stores the result of a run at a rung, and holds the run back there. It reports whether the result is known,
// and whether the run was running until now.
func (s searcher) measure(ctx context.Context, run *v1alpha1.TrainingRun, from, rung int64) (paused, known bool,
	err error) {
	results, err := resultsOf(run)
	if err != nil {
		return false, false, err
	}
	if _, ok := results[rung]; ok {
		return false, true, nil
	}
	value, known, err := s.valueAt(ctx, run, from, rung)
	if err != nil || !known {
		return false, false, err
	}
	results[rung] = value
	data, err := json.Marshal(results)
	if err != nil {
		return false, false, fmt.Errorf("encoding the results of run %q: %w", run.Name, err)
	}
	runs := !status.RunFinished(run) && !ptr.Deref(run.Spec.Suspend, false)
	changed, err := s.patch(ctx, run, func() {
		metav1.SetMetaDataAnnotation(&run.ObjectMeta, annotationRungs, string(data))
		if runs {
			metav1.SetMetaDataAnnotation(&run.ObjectMeta, annotationHeld, "true")
			run.Spec.Suspend = new(true)
		}
	})
	if changed {
		fmt.Fprintf(s.env.Stdout, "trainingrun %s has %s %s at step %d\n", run.Name, s.search.Metric, numberOr(value, "none"),
			rung)
	}
	return changed && runs, changed, err
}

// resultsOf returns the results of a run at its rungs.
func resultsOf(run *v1alpha1.TrainingRun) (map[int64]*float64, error) {
	results := map[int64]*float64{}
	text := run.Annotations[annotationRungs]
	if text == "" {
		return results, nil
	}
	if err := json.Unmarshal([]byte(text), &results); err != nil {
		return nil, fmt.Errorf("run %q has the annotation %s=%q, which cannot be read: %w; remove it, so that the run is "+
			"measured again", run.Name, annotationRungs, text, err)
	}
	return results, nil
}

// valueAt returns the value of the metric that a run has at a rung, and whether the value is final. The value is nil
// if the run has none. Values at or before the step from belong to an earlier rung.
func (s searcher) valueAt(ctx context.Context, run *v1alpha1.TrainingRun, from, rung int64) (*float64, bool, error) {
	if run.Annotations[annotationStopped] != "" || status.IsTrue(run.Status.Conditions, v1alpha1.ConditionFailed) {
		return nil, true, nil // It would not continue, whatever its result.
	}
	over := status.RunFinished(run)
	if !over && ptr.Deref(run.Status.Step, 0) < rung {
		return nil, false, nil
	}
	_, h, err := historymap.Read(ctx, s.kube, run)
	if err != nil {
		return nil, false, fmt.Errorf("reading what run %q has reached: %w", run.Name, err)
	}
	value, known := reached(h, s.search.Metric, from, rung)
	measured := func(row history.Row) bool { return row.Step >= rung && (row.Evaluated() || !s.search.heldOut()) }
	if !known && slices.ContainsFunc(h.Rows, measured) {
		return nil, false, observe.CheckMetric(h, s.search.Metric)
	}
	return value, known || over, nil
}

// reached returns the newest value of a metric after the step from, at most at the step rung, and whether no later row
// can change it.
func reached(h *history.History, metric string, from, rung int64) (value *float64, known bool) {
	for _, row := range h.Rows {
		at, ok := row.Metrics[metric]
		if ok && row.Step > from && row.Step <= rung {
			value = &at
		}
		known = known || ok && row.Step >= rung
	}
	return value, known
}

// halve returns the runs that continue after a rung, and stops the others.
func (s searcher) halve(ctx context.Context, cohort []*v1alpha1.TrainingRun, rung int64) ([]*v1alpha1.TrainingRun,
	error) {
	values := map[string]*float64{}
	for _, run := range cohort {
		results, err := resultsOf(run)
		if err != nil {
			return nil, err
		}
		values[run.Name] = results[rung]
	}
	ranked := slices.Clone(cohort)
	slices.SortStableFunc(ranked, func(a, b *v1alpha1.TrainingRun) int {
		return observe.Better(values[a.Name], values[b.Name], s.search.Metric)
	})
	keep := max(1, len(ranked)/s.search.Reduction)
	var kept []*v1alpha1.TrainingRun
	for i, run := range ranked {
		if i < keep && values[run.Name] != nil {
			kept = append(kept, run)
			continue
		}
		if run.Annotations[annotationStopped] != "" {
			continue
		}
		changed, err := s.patch(ctx, run, func() {
			metav1.SetMetaDataAnnotation(&run.ObjectMeta, annotationStopped, strconv.FormatInt(rung, 10))
			delete(run.Annotations, annotationHeld)
		})
		if err != nil {
			return nil, err
		}
		if changed {
			fmt.Fprintf(s.env.Stdout, "trainingrun %s stops at step %d\n", run.Name, rung)
		}
	}
	return kept, nil
}

// proceed resumes runs that are held back, as many as may run beside the running runs, and reports the runs that wait
// for a person.
func (s searcher) proceed(ctx context.Context, open []*v1alpha1.TrainingRun, running int) error {
	var errs []error
	for _, run := range open {
		suspended := ptr.Deref(run.Spec.Suspend, false)
		c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSuspended)
		switch held := run.Annotations[annotationHeld] != ""; {
		case suspended && held && (s.most == 0 || running < s.most):
			changed, err := s.patch(ctx, run, func() {
				run.Spec.Suspend = new(false)
				delete(run.Annotations, annotationHeld)
			})
			errs = append(errs, err)
			if changed {
				running++
				fmt.Fprintf(s.env.Stdout, "trainingrun %s runs\n", run.Name)
			}
		case suspended && !held:
			s.tell(run.Name, "is suspended", "kubectl tinker resume "+run.Name)
		case !suspended && c != nil && c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonBudgetReached:
			s.tell(run.Name, "has reached its budget", "a greater spec.budget")
		}
	}
	return errors.Join(errs...)
}

// tell prints once why a run waits for a person, and how to continue it.
func (s searcher) tell(name, why, repair string) {
	if !s.told[name+why] {
		s.told[name+why] = true
		fmt.Fprintf(s.env.Stderr, "trainingrun %s %s, and the search waits for it: %s continues it, and kubectl annotate "+
			"trainingrun %s %s=true leaves it out\n", name, why, repair, name, annotationStopped)
	}
}

// patch changes a run, and reports whether it did. It does nothing if the run was changed or deleted meanwhile: the
// next look sees that.
func (s searcher) patch(ctx context.Context, run *v1alpha1.TrainingRun, change func()) (bool, error) {
	before := run.DeepCopy()
	change()
	err := s.kube.Patch(ctx, run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		*run = *before
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("changing run %q: %w", run.Name, err)
	}
	return true, nil
}

func numberOr(value *float64, other string) string {
	if value == nil {
		return other
	}
	return output.Number(value)
}
