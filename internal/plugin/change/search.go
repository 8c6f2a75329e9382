// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
)

// Kinds of a search.
const (
	searchRandom  = "random"
	searchHalving = "halving"
)

// annotationSearch is on each run of a search, and has the digest of the search's settings.
const annotationSearch = "rl.tinker-operator.dev/sweep-search"

// search has the settings of --search: fields that are drawn at random, and rungs at which the worse runs are stopped.
type search struct {
	Kind      string   `json:"kind"`
	Grid      []string `json:"grid"`
	Seed      uint64   `json:"seed"`
	Rungs     []int64  `json:"rungs,omitempty"`
	Reduction int      `json:"reduction,omitempty"`
	// Metric is the full name of the metric that ranks the runs.
	Metric string `json:"metric,omitempty"`
	// Samples is the number of runs. More of them may be added to a random search.
	Samples int `json:"samples,omitempty"`
}

func (s *search) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.Kind, "search", "", "draw the values of --grid: `KIND` is random, or halving, which stops the worse "+
		"runs early")
	flags.IntVar(&s.Samples, "samples", 0, "with --search, the `NUMBER` of runs (required)")
	flags.Uint64Var(&s.Seed, "search-seed", 0, "with --search, the `SEED` of the draws")
	flags.StringVar(&s.Metric, "metric", "", "with --search, the `METRIC` that ranks runs. Defaults to that of the held-out "+
		"tasks: pass@1, or test/nll of a supervised run")
	flags.Int64SliceVar(&s.Rungs, "rungs", nil, "with --search halving, the `STEPS` at which the worse runs are stopped. "+
		"Defaults to fractions of the run's steps")
	flags.IntVar(&s.Reduction, "reduction", 3, "with --search halving, one in `NUMBER` runs goes on at a rung")
}

// unused returns an error if flags of a search are given without one.
func (s *search) unused(changed func(string) bool) error {
	for _, name := range []string{"samples", "search-seed", "metric", "rungs", "reduction"} {
		if changed(name) {
			return cli.Misused("--%s is for a search: add --search random or --search halving", name)
		}
	}
	return nil
}

// checkFlags refuses flags that are invalid for every run.
func (s *search) checkFlags() error {
	switch {
	case s.Kind != searchRandom && s.Kind != searchHalving:
		return cli.Misused("--search: %q is no kind of search: give random or halving", s.Kind)
	case len(s.Grid) == 0:
		return cli.Misused("--search draws the values of --grid: give --grid PATH='loguniform(LOW,HIGH)', " +
			"PATH='uniform(LOW,HIGH)' or PATH=A,B,C")
	case s.Samples < 1 || s.Samples > mostOfSweep:
		return cli.Misused("--samples is how many runs a search has: give 1 to %d", mostOfSweep)
	case s.Kind == searchRandom && len(s.Rungs) > 0:
		return cli.Misused("--rungs is for --search halving: a random search stops no run")
	case s.Reduction < 2:
		return cli.Misused("--reduction is how many runs there are for one that goes on: give 2 or more")
	}
	return nil
}

// prepare checks the search of a run, and fills in defaults.
func (s *search) prepare(run *unstructured.Unstructured, grid []string) error {
	s.Grid = grid
	if err := s.checkFlags(); err != nil {
		return err
	}
	typed, err := typedOf(run)
	if err != nil {
		return err
	}
	if typed.Spec.TTLSecondsAfterFinished != nil {
		return fmt.Errorf("spec.ttlSecondsAfterFinished deletes runs that have ended, and a search keeps its state in its " +
			"runs: remove the field, with --set spec.ttlSecondsAfterFinished=null")
	}
	if s.Metric == "" {
		s.Metric = contract.MetricPassAt1
		if typed.Spec.Mode == v1alpha1.ModeSupervise {
			s.Metric = contract.MetricHeldOutNLL
		}
	}
	s.Metric = observe.FullName(s.Metric)
	if s.heldOut() && typed.Spec.Evaluation == nil {
		return fmt.Errorf("the search ranks runs by %s, and the run evaluates nothing: give spec.evaluation, or another "+
			"--metric, such as reward", s.Metric)
	}
	if s.Kind == searchRandom {
		s.Reduction = 0
		return nil
	}
	return s.prepareRungs(typed)
}

// heldOut reports whether only evaluations have the metric.
func (s *search) heldOut() bool { return strings.HasPrefix(s.Metric, "test/") }

// prepareRungs checks the rungs of a search by halving, or chooses them.
func (s *search) prepareRungs(run *v1alpha1.TrainingRun) error {
	var steps int64
	if run.Spec.Algorithm != nil {
		steps = run.Spec.Algorithm.Steps
	}
	every := int64(1)
	if s.heldOut() {
		if every = ptr.Deref(run.Spec.Evaluation.EverySteps, 0); every == 0 {
			return fmt.Errorf("the search stops runs by %s, and the run does not evaluate while it trains: set "+
				"spec.evaluation.everySteps, or give another --metric, such as reward", s.Metric)
		}
	}
	if len(s.Rungs) == 0 {
		s.Rungs = s.defaultRungs(steps, every)
	}
	if len(s.Rungs) == 0 {
		return cli.Misused("--search halving needs the steps at which to stop runs, and none follow from algorithm.steps, " +
			"evaluation.everySteps, --samples and --reduction: give --rungs STEP,STEP")
	}
	for i, rung := range s.Rungs {
		switch {
		case rung < 1 || i > 0 && rung <= s.Rungs[i-1]:
			return cli.Misused("--rungs: %d is not above the step before it: give steps in their order", rung)
		case steps > 0 && rung >= steps:
			return cli.Misused("--rungs: the run has %d steps, and ends at the rung %d: give less", steps, rung)
		case rung%every != 0:
			return cli.Misused("--rungs: the run evaluates every %d steps, and not at step %d: give multiples of it, or set "+
				"spec.evaluation.everySteps", every, rung)
		}
	}
	return nil
}

// defaultRungs returns as many rungs as the samples permit: the steps of a run divided by powers of the reduction, so
// that each rung costs the same, and rounded up to steps that have the metric.
func (s *search) defaultRungs(steps, every int64) (rungs []int64) {
	at := steps
	for left := s.Samples / s.Reduction; left > 0; left /= s.Reduction {
		at /= int64(s.Reduction)
		if rung := (at + every - 1) / every * every; rung > 0 && rung < steps && !slices.Contains(rungs, rung) {
			rungs = append(rungs, rung)
		}
	}
	slices.Reverse(rungs)
	return rungs
}

// typedOf returns a run with the defaults of its schema.
func typedOf(run *unstructured.Unstructured) (*v1alpha1.TrainingRun, error) {
	content := run.DeepCopy().Object
	if err := manifest.SetDefaults(manifest.KindRun, content); err != nil {
		return nil, fmt.Errorf("reading the run: %w", err)
	}
	typed := &v1alpha1.TrainingRun{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, typed); err != nil {
		return nil, fmt.Errorf("reading the run: %w", err)
	}
	return typed, nil
}

// digest returns a digest of the settings that decide the runs of the search and which of them continue.
func (s search) digest(run *unstructured.Unstructured) (string, error) {
	if s.Kind == searchRandom {
		s.Samples, s.Metric = 0, "" // They decide neither.
	}
	data, err := json.Marshal(struct {
		Search search         `json:"search"`
		Run    map[string]any `json:"run"`
	}{s, run.Object})
	if err != nil {
		return "", fmt.Errorf("encoding the search: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// trials returns the runs of the search: the run with values that are drawn.
func (s search) trials(run *unstructured.Unstructured, sweep string) ([]*unstructured.Unstructured, error) {
	names, err := axisNames(s.Grid)
	if err != nil {
		return nil, err
	}
	axes := make([]distribution, len(s.Grid))
	for i, axis := range s.Grid {
		if axes[i], err = distributionOf(axis); err != nil {
			return nil, err
		}
	}
	drawn, err := draw(axes, s.Samples, s.Seed)
	if err != nil {
		return nil, err
	}
	digest, err := s.digest(run)
	if err != nil {
		return nil, err
	}
	var runs []*unstructured.Unstructured
	for i, values := range drawn {
		trial := run.DeepCopy()
		for axis, value := range values {
			if err := manifest.Set(trial.Object, axes[axis].path+"="+value); err != nil {
				return nil, cli.Misused("--grid: %w", err)
			}
			label(trial, observe.LabelSweepValue+names[axis], labelValue(value))
		}
		trial.SetName(fmt.Sprintf("%s-%d", run.GetName(), i+1))
		label(trial, observe.LabelSweep, cmp.Or(sweep, run.GetName()))
		annotate(trial, annotationSearch, digest)
		runs = append(runs, trial)
	}
	return runs, holdBack(runs)
}

// missing returns the trials that do not exist as runs yet. A run of the sweep that another command made is an error.
func missing(ctx context.Context, kube client.Client, namespace string,
	trials []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	sweep := trials[0].GetLabels()[observe.LabelSweep]
	existing, err := runsOf(ctx, kube, namespace, sweep)
	if err != nil {
		return nil, err
	}
	made := map[string]bool{}
	for _, run := range existing {
		if run.Annotations[annotationSearch] != trials[0].GetAnnotations()[annotationSearch] {
			return nil, fmt.Errorf("sweep %q has the run %q, which was created from other settings than those of this "+
				"search: repeat the command that began it, or choose another --sweep and --name", sweep, run.Name)
		}
		made[run.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(trials), func(trial *unstructured.Unstructured) bool {
		return made[trial.GetName()]
	}), nil
}

// runsOf returns the runs of a sweep, in the order of their numbers.
func runsOf(ctx context.Context, kube client.Client, namespace, sweep string) ([]v1alpha1.TrainingRun, error) {
	var list v1alpha1.TrainingRunList
	if err := kube.List(ctx, &list, client.InNamespace(namespace),
		client.MatchingLabels{observe.LabelSweep: sweep}); err != nil {
		return nil, fmt.Errorf("listing the runs of sweep %q: %w", sweep, err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.TrainingRun) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}
