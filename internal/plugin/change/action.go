// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// Action changes one run, or makes another run from it, as the command of the same name does.
type Action struct {
	// Name is the name of the command.
	Name string
	// Does describes the action.
	Does string
	// Inputs are the inputs from a person beside the run.
	Inputs []Input
	apply  func(*v1alpha1.TrainingRun, Values) (string, error)
	// make returns the run that the action makes, in the place of apply.
	make func(*v1alpha1.TrainingRun, Values) (*unstructured.Unstructured, error)
}

// Input is an input of an action beside a run.
type Input struct {
	// Name is the name of the command's flag.
	Name, Title string
	// Number says that the value is a whole number, and Long that the value may have several lines.
	Number, Long bool
	value        func(*v1alpha1.TrainingRun) string
}

// Value returns the value of the input before a person changes it.
func (i Input) Value(run *v1alpha1.TrainingRun) string {
	if i.value == nil {
		return ""
	}
	return i.value(run)
}

// Values are the values that a person gives, by the names of the inputs.
type Values map[string]string

func (v Values) number(name string, bits int) (int64, error) {
	n, err := strconv.ParseInt(v[name], 10, bits)
	if err != nil {
		return 0, cli.Misused("%s is %q: give a whole number", name, v[name])
	}
	return n, nil
}

// Outcome is the outcome of an action. Made is the name of the run that it makes; empty for a change.
type Outcome struct{ Says, Made string }

// alone returns the change of an action that needs only the run.
func alone(apply func(*v1alpha1.TrainingRun) (string, error)) func(*v1alpha1.TrainingRun, Values) (string, error) {
	return func(run *v1alpha1.TrainingRun, _ Values) (string, error) { return apply(run) }
}

// Actions returns the actions that only need a run and some values.
func Actions() []Action {
	return []Action{
		{Name: "suspend", Does: "stops the run at a saved state and deletes its pods; resume continues it",
			apply: alone(suspendRun)},
		{Name: "resume", Does: "continues the suspended run from its last saved state", apply: alone(resumeRun)},
		{Name: "retry", Does: "continues the failed run from its last usable checkpoint, with a new restart budget",
			apply: alone(retryRun)},
		{Name: "scale", Does: "sets how many worker pods the run has, which may come and go while it trains",
			Inputs: []Input{{Name: "replicas", Title: "Worker pods", Number: true, value: workersOf}}, apply: scaleTo},
		{Name: "fork", Does: "creates a run that begins with a checkpoint of this run and counts its own steps",
			Inputs: []Input{{Name: "step", Title: "Checkpoint of step", Number: true, value: newestStep},
				{Name: "name", Title: "Name of the new run", value: forkName},
				{Name: "set", Title: "Changed fields, a PATH=VALUE on each line", Long: true}}, make: forkTo},
	}
}

// Defaults returns the values that a run has before a person changes them.
func (a Action) Defaults(run *v1alpha1.TrainingRun) Values {
	values := Values{}
	for _, input := range a.Inputs {
		values[input.Name] = input.Value(run)
	}
	return values
}

// Preview describes the effect of the action on the known state of a run. An error says why the action does not
// apply. The run is not changed.
func (a Action) Preview(run *v1alpha1.TrainingRun) (string, error) {
	run = run.DeepCopy()
	if a.make == nil {
		return a.apply(run, a.Defaults(run))
	}
	made, err := a.make(run, a.Defaults(run))
	if err != nil {
		return "", err
	}
	return saysOf(made), nil
}

func saysOf(made *unstructured.Unstructured) string {
	return fmt.Sprintf("is forked as %s", made.GetName())
}

// Check checks the action at the API server without doing it, and describes its effect.
func (a Action) Check(ctx context.Context, connection *cli.Connection, name string, values Values) (Outcome, error) {
	return a.act(ctx, connection, name, values, true)
}

// Do does the action, and describes its effect.
func (a Action) Do(ctx context.Context, connection *cli.Connection, name string, values Values) (Outcome, error) {
	return a.act(ctx, connection, name, values, false)
}

func (a Action) act(ctx context.Context, connection *cli.Connection, name string, values Values,
	dry bool) (Outcome, error) {
	if a.make == nil {
		var options []client.PatchOption
		if dry {
			options = append(options, client.DryRunAll)
		}
		says, err := edit{apply: func(run *v1alpha1.TrainingRun) (string, error) { return a.apply(run, values) }}.to(ctx,
			connection, name, options...)
		return Outcome{Says: says}, err
	}
	run, err := connection.Run(ctx, name)
	if err != nil {
		return Outcome{}, err
	}
	made, err := a.make(run, values)
	if err != nil {
		return Outcome{}, err
	}
	quiet := cli.IO{Stdout: io.Discard, Stderr: io.Discard}
	return Outcome{Says: saysOf(made), Made: made.GetName()},
		create(ctx, quiet, connection, nil, []*unstructured.Unstructured{made}, dry)
}

func workersOf(run *v1alpha1.TrainingRun) string {
	switch {
	case run.Spec.Rollouts.Workers != nil:
		return fmt.Sprint(*run.Spec.Rollouts.Workers)
	case run.Status.Workers != nil:
		return fmt.Sprint(*run.Status.Workers)
	}
	return ""
}

// scaleTo sets the number of a run's workers.
func scaleTo(run *v1alpha1.TrainingRun, values Values) (string, error) {
	if run.Status.CompletionTime != nil {
		return "", fmt.Errorf("run %q is over (%s): it has no workers", run.Name, run.Status.State)
	}
	if run.Spec.Mode == v1alpha1.ModeSupervise {
		return "", fmt.Errorf("run %q is trained on examples: it has no workers", run.Name)
	}
	replicas, err := values.number("replicas", 32)
	if err != nil {
		return "", err
	}
	return scaleRun(run, int32(replicas))
}

func newestStep(run *v1alpha1.TrainingRun) string {
	if c, err := checkpoints.Choose(run, checkpoints.Newest, false); err == nil {
		return fmt.Sprint(c.Step)
	}
	return ""
}

func forkName(run *v1alpha1.TrainingRun) string {
	if step := newestStep(run); step != "" {
		return run.Name + "-s" + step
	}
	return ""
}

// forkTo returns the run that begins with a checkpoint.
func forkTo(run *v1alpha1.TrainingRun, values Values) (*unstructured.Unstructured, error) {
	if len(checkpoints.Known(run)) == 0 {
		return nil, errors.New("the run has no checkpoint yet: suspend saves one, and so does spec.checkpoints.everySteps")
	}
	step, err := values.number("step", 64)
	if err != nil {
		return nil, err
	}
	checkpoint, err := checkpoints.Choose(run, step, false)
	if err != nil {
		return nil, err
	}
	f := forkFlags{name: strings.TrimSpace(values["name"]), optimizer: string(v1alpha1.OptimizerRestore)}
	for line := range strings.Lines(values["set"]) {
		if line = strings.TrimSpace(line); line != "" {
			f.set = append(f.set, line)
		}
	}
	return f.fork(run, checkpoint)
}
