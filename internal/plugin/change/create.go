// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
)

const createHelp = `kubectl tinker create creates the run of a file, with fields that --set changes.

Paths are dotted, and [NAME] chooses an entry of a list or map. The schema of the kind decides the type of a value; null
removes a field. A RewardEnvironment of the file is created too; one that exists is left as it is.

--grid makes a run for each of its values, and for each combination where it is given more than once. The runs are named
after the one in the file, with a number, and labelled as a sweep, which kubectl tinker compare --sweep shows, and with
their values: sweep.rl.tinker-operator.dev/learningRate=2.0e-5. The API server checks all runs before the first is
created.

--max-running lets so many of them run at a time. The others are created suspended, and the command stays and resumes
the next whenever one has ended. It can be interrupted: kubectl tinker resume --sweep continues.

--search draws the values of --samples runs: uniform(LOW,HIGH) and loguniform(LOW,HIGH) are ranges, and of A,B,C each
value is as likely. The command stays until all runs have ended, and prints what they have reached, the best first, and
what was spent. With --search halving, runs are suspended at the steps of --rungs, and one in --reduction is resumed,
the best by --metric. The state of a search is in its runs: the same command continues it, and --search random with more
--samples adds runs.`

const createExample = `  kubectl tinker create -f run.yaml
  kubectl tinker create -f run.yaml --name fast --set spec.algorithm.optimizer.learningRate=2.0e-5
  kubectl tinker create -f run.yaml --set spec.environments[arithmetic].groupSize=16
  kubectl tinker create -f run.yaml --sweep lr --grid spec.algorithm.optimizer.learningRate=1.0e-5,2.0e-5,4.0e-5
  kubectl tinker create -f run.yaml --grid spec.algorithm.seed=1,2,3,4 --max-running 2
  kubectl tinker create -f run.yaml --search halving --samples 9 --max-running 3 \
    --grid 'spec.algorithm.optimizer.learningRate=loguniform(1e-6,1e-4)' --grid spec.model.loraRank=8,16,32
  kubectl tinker compare --sweep lr --sort pass@1`

// file has the flags of commands that read a file with a run.
type file struct {
	path string
	name string
	set  []string
}

func (f *file) add(command *cobra.Command) {
	flags := command.Flags()
	cli.FileFlag(flags, &f.path, "`FILE` that has the run, - for the standard input (required)")
	flags.StringVar(&f.name, "name", "", "`NAME` of the run in the place of the file's")
	flags.StringArrayVar(&f.set, "set", nil, "`PATH=VALUE` sets a field; may be given several times")
	_ = command.MarkFlagFilename("filename", "yaml", "yml", "json")
}

// read returns the run of the file, with its fields set, and the environments beside it.
func (f *file) read(env cli.IO) (*unstructured.Unstructured, []*unstructured.Unstructured, error) {
	run, all, err := f.parse(env, manifest.Parse)
	return run, all.Environments, err
}

// parse reads the file and returns its run, with its fields set, and all objects.
func (f *file) parse(env cli.IO, parse func([]byte) (manifest.Manifests, error)) (*unstructured.Unstructured,
	manifest.Manifests, error) {
	if f.path == "" {
		return nil, manifest.Manifests{}, cli.Misused("-f is required: a file that has a TrainingRun")
	}
	data, err := env.ReadInput(f.path, os.ReadFile)
	if err != nil {
		return nil, manifest.Manifests{}, fmt.Errorf("reading the run: %w", err)
	}
	all, err := parse(data)
	if err != nil {
		return nil, manifest.Manifests{}, fmt.Errorf("reading %s: %w", cli.InputName(f.path), err)
	}
	if len(all.Runs) != 1 {
		return nil, manifest.Manifests{}, fmt.Errorf("reading %s: it has %s, want 1: give the runs of a chain one by "+
			"one", cli.InputName(f.path), cli.Count(len(all.Runs), "TrainingRun"))
	}
	run := all.Runs[0]
	return run, all, assign(run, f.name, f.set)
}

// assign sets the name and fields of a run.
func assign(run *unstructured.Unstructured, name string, assignments []string) error {
	for _, assignment := range assignments {
		if err := manifest.Set(run.Object, assignment); err != nil {
			return cli.Misused("--set: %w", err)
		}
	}
	if name != "" {
		run.SetName(name)
	}
	return nil
}

type createFlags struct {
	file
	grid   []string
	sweep  string
	dryRun bool
	// most limits the runs of the sweep that run at a time; 0 means no limit.
	most   int
	search search
}

// NewCreate returns the command that creates runs.
func NewCreate(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f createFlags
	command := &cobra.Command{
		Use: "create -f FILE", Short: "Create a run with changed fields, or a sweep", Long: createHelp,
		Example: createExample,
		Args:    cli.NoArgs("the run is read from -f FILE"),
		RunE: func(command *cobra.Command, _ []string) error {
			if f.search.Kind != "" {
				return f.runSearch(command.Context(), env, cluster)
			}
			if err := f.search.unused(command.Flags().Changed); err != nil {
				return err
			}
			return f.run(command.Context(), env, cluster)
		},
	}
	f.add(command)
	command.Flags().StringArrayVar(&f.grid, "grid", nil,
		"`PATH=A,B,C` makes a run for each value; may be given several times")
	command.Flags().StringVar(&f.sweep, "sweep", "", "`NAME` of the sweep that --grid makes; without it, the run's")
	f.search.add(command.Flags())
	command.Flags().IntVar(&f.most, "max-running", 0, "`NUMBER` of runs of --grid that run at a time")
	command.Flags().BoolVar(&f.dryRun, "dry-run", false, "have the API server check all objects and create none")
	return command
}

func (f createFlags) run(ctx context.Context, env cli.IO, cluster *cli.Cluster) error {
	run, environments, err := f.read(env)
	if err != nil {
		return err
	}
	if f.sweep != "" && len(f.grid) == 0 {
		return cli.Misused("--sweep names the runs of --grid: give --grid PATH=A,B,C")
	}
	if f.most < 0 || f.most > 0 && len(f.grid) == 0 {
		return cli.Misused("--max-running is how many runs of --grid run at a time: give --grid PATH=A,B,C, and a number " +
			"above 0")
	}
	runs, err := expand(run, f.sweep, f.grid)
	if err != nil {
		return err
	}
	if f.most > 0 {
		if err := holdBack(runs[min(f.most, len(runs)):]); err != nil {
			return err
		}
	}
	connection, err := cluster.Connect()
	if err != nil {
		return err
	}
	if err := create(ctx, env, connection, environments, runs, f.dryRun); err != nil || f.dryRun || f.most == 0 {
		return err
	}
	return newFeeder(env, connection, runs[0].GetNamespace(), runs[0].GetLabels()[observe.LabelSweep]).feed(ctx, f.most)
}

// create creates environments that do not exist yet, and runs. The API server checks all of them first.
func create(
	ctx context.Context, env cli.IO, connection *cli.Connection, environments, runs []*unstructured.Unstructured,
	dryRun bool,
) error {
	strict := client.WithFieldValidation(connection.Client, metav1.FieldValidationStrict)
	var errs []error
	for _, object := range slices.Concat(environments, runs) {
		if err := place(object, connection); err != nil {
			return err
		}
	}
	check := func(object *unstructured.Unstructured, mayExist bool) {
		err := strict.Create(ctx, object.DeepCopy(), client.DryRunAll)
		if err != nil && (!mayExist || !apierrors.IsAlreadyExists(err)) {
			errs = append(errs, refused(object, err))
		}
	}
	for _, object := range environments {
		check(object, true)
	}
	for _, object := range runs {
		check(object, false)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	suffix := ""
	if dryRun {
		strict, suffix = client.NewDryRunClient(strict), " (dry run)"
	}
	for _, object := range slices.Concat(environments, runs) {
		kind := strings.ToLower(object.GetKind())
		switch err := strict.Create(ctx, object); {
		case apierrors.IsAlreadyExists(err) && object.GetKind() == manifest.KindEnvironment:
			fmt.Fprintf(env.Stdout, "%s %s exists and is left as it is%s\n", kind, object.GetName(), suffix)
		case err != nil:
			return refused(object, err)
		default:
			fmt.Fprintf(env.Stdout, "%s %s created%s\n", kind, object.GetName(), suffix)
		}
	}
	return nil
}

// place puts an object into the namespace of the connection unless the object names a namespace. As with kubectl,
// this must be the namespace that the command line names, if any.
func place(object *unstructured.Unstructured, connection *cli.Connection) error {
	switch named := object.GetNamespace(); {
	case named == "":
		object.SetNamespace(connection.Namespace)
	case connection.NamespaceGiven && named != connection.Namespace:
		return cli.Misused("%s %q is of namespace %q, and --namespace is %q: correct one of them",
			object.GetKind(), object.GetName(), named, connection.Namespace)
	}
	return nil
}

// refused explains why the API server does not accept an object.
func refused(object *unstructured.Unstructured, err error) error {
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%s %q exists already: choose another name with --name", object.GetKind(), object.GetName())
	}
	return fmt.Errorf("the API server refuses %s %q: %w", object.GetKind(), object.GetName(),
		manifest.Suggest(object.GetKind(), err))
}
