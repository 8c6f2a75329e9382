// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/resolve"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/plugin/try"
)

const planHelp = `kubectl tinker plan says what a run would do before anything is spent: tasks, steps, groups,
episodes and tokens. The API server checks the run as if it were created, and the operator's own rules check it
against the RewardEnvironments of the namespace, whose probes have counted the tasks. What the endpoint will
refuse is known if another run of the namespace has used it with the same model, and what the first attempt will
check by what such a run shares.

RewardEnvironments that the file has beside the run, with their ConfigMaps and Secrets, are probed on this machine,
unless the namespace has the same. ConfigMaps that the file lacks are read from the namespace. --data, --ors and
--secret are described at kubectl tinker try.

With --local, or where no cluster is configured, none is asked: the file has all RewardEnvironments that the run names.
The rules are the same as at the API server.

Tokens are upper limits: replies are as long as sampling.maxTokens, or limits.trajectoryTokens, permits. Prompts are
counted for some tasks of the RewardEnvironments that this machine has probed: the dollars have the prompts with which
episodes begin, and none of later turns.`

const planExample = `  kubectl tinker plan -f run.yaml
  kubectl tinker plan -f run.yaml --set spec.algorithm.steps=500 -o json
  kubectl tinker plan -f config/samples/arithmetic.yaml --local`

type planFlags struct {
	file
	local              bool
	ors, data, secrets []string
}

// NewPlan returns the command that estimates a run.
func NewPlan(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f planFlags
	var format *output.Format
	command := &cobra.Command{
		Use: "plan -f FILE", Short: "Say what a run would do and cost, in tokens and dollars", Long: planHelp,
		Example: planExample,
		Args:    cli.NoArgs("the run is read from -f FILE"),
		RunE: func(command *cobra.Command, _ []string) error {
			return f.plan(command.Context(), env, cluster, *format)
		},
	}
	f.add(command)
	flags := command.Flags()
	flags.BoolVar(&f.local, "local", false, "probe the RewardEnvironments of the file on this machine, without a cluster")
	flags.StringArrayVar(&f.ors, "ors", nil, "`NAME=URL` is where the server of the RewardEnvironment NAME runs")
	flags.StringArrayVar(&f.data, "data", nil, "`NAME=DIR` is the folder of the claim or ConfigMap NAME")
	flags.StringArrayVar(&f.secrets, "secret", nil, "`NAME=DIR` is the folder of the Secret NAME")
	format = output.Flag(flags)
	return command
}

func (f planFlags) plan(ctx context.Context, env cli.IO, cluster *cli.Cluster, format output.Format) error {
	object, all, err := f.parse(env, manifest.ParseAll)
	if err != nil {
		return err
	}
	local := try.Local{Run: object, Beside: all, ORS: f.ors, Data: f.data, Secrets: f.secrets}
	if f.local {
		return planLocally(ctx, env, local, format)
	}
	connection, err := cluster.Connect()
	if err != nil {
		if missing := local.CheckReferences(ctx); missing != nil {
			return fmt.Errorf("%w; to plan without a cluster: %w", err, missing)
		}
		fmt.Fprintf(env.Stderr, "no cluster is configured: the plan is that of --local\n")
		return planLocally(ctx, env, local, format)
	}
	run, err := dryRun(ctx, connection, object)
	if err != nil {
		return err
	}
	known, err := findCapabilities(ctx, connection, run, env.Now())
	if err != nil {
		return err
	}
	probed, err := f.probe(ctx, env, connection, run, local)
	if err != nil {
		return err
	}
	defer probed.Close()
	file, err := runFile(ctx, connection, run, probed.Pins)
	if err != nil {
		return err
	}
	return show(ctx, env, format, file, known, probed)
}

// planLocally plans with only the objects of the file.
func planLocally(ctx context.Context, env cli.IO, local try.Local, format output.Format) error {
	if err := local.CheckReferences(ctx); err != nil {
		return err
	}
	probed, err := local.Probe(ctx, env, nil)
	if err != nil {
		return err
	}
	defer probed.Close()
	file, err := probed.RunFile()
	if err != nil {
		return err
	}
	return show(ctx, env, format, file, knowledge{}, probed)
}

// probe probes the environments of the file that the run names and that the namespace lacks, or has with another spec.
func (f planFlags) probe(ctx context.Context, env cli.IO, connection *cli.Connection, run *v1alpha1.TrainingRun,
	local try.Local) (*try.Probed, error) {
	names, lacking := []string{}, []*unstructured.Unstructured{}
	for _, object := range local.Beside.Environments {
		name := object.GetName()
		if !slices.Contains(desired.References(run), name) {
			continue
		}
		same, err := isThere(ctx, connection, run.Namespace, object)
		if err != nil {
			return nil, err
		}
		if !same {
			names, lacking = append(names, name), append(lacking, object)
		}
	}
	if len(names) == 0 && len(f.ors)+len(f.data)+len(f.secrets) > 0 {
		return nil, cli.Misused("--ors, --data and --secret are for RewardEnvironments of the file that the namespace " +
			"lacks: the cluster probes its own")
	}
	there, err := namespaceConfigMaps(ctx, connection, run.Namespace, lacking, local.Beside.Others, f.data)
	if err != nil {
		return nil, err
	}
	local.Beside.Others = append(slices.Clone(local.Beside.Others), there...)
	return local.Probe(ctx, env, names)
}

// isThere reports whether the namespace has a RewardEnvironment of the file with the same spec.
func isThere(ctx context.Context, connection *cli.Connection, namespace string,
	object *unstructured.Unstructured) (bool, error) {
	found, given := &v1alpha1.RewardEnvironment{}, &v1alpha1.RewardEnvironment{}
	err := connection.Get(ctx, client.ObjectKey{Namespace: namespace, Name: object.GetName()}, found)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading RewardEnvironment %q: %w", object.GetName(), err)
	}
	checked := object.DeepCopy()
	if err := manifest.Check(ctx, checked); err != nil {
		return false, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(checked.Object, given); err != nil {
		return false, fmt.Errorf("reading RewardEnvironment %q: %w", object.GetName(), err)
	}
	return equality.Semantic.DeepEqual(found.Spec, given.Spec), nil
}

// show prints the plan of a run file.
func show(ctx context.Context, env cli.IO, format output.Format, file contract.RunFile, known knowledge,
	probed *try.Probed) error {
	training, err := probed.CountPrompts(ctx, file, file.Fixed.Environments)
	var evaluation map[string]try.Prompts
	if err == nil && file.Evaluation != nil {
		evaluation, err = probed.CountPrompts(ctx, file, file.Evaluation.Environments)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		fmt.Fprintf(env.Stderr, "prompts are not counted: %v\n", err)
	}
	planned := estimateOf(file, training, evaluation)
	planned.Endpoint = checkOf(file, known)
	return output.Print(env, format, planned.result())
}

// dryRun checks a run at the API server, and returns it as the server would store it.
func dryRun(ctx context.Context, connection *cli.Connection,
	object *unstructured.Unstructured) (*v1alpha1.TrainingRun, error) {
	if err := place(object, connection); err != nil {
		return nil, err
	}
	strict := client.WithFieldValidation(connection.Client, metav1.FieldValidationStrict)
	checked := object.DeepCopy()
	if err := strict.Create(ctx, checked, client.DryRunAll); err != nil {
		return nil, refused(object, err)
	}
	run := &v1alpha1.TrainingRun{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(checked.Object, run); err != nil {
		return nil, fmt.Errorf("reading the checked run: %w", err)
	}
	return run, nil
}

// runFile returns the run file of a run's first attempt. pinned are the environments that are not taken from the
// cluster.
func runFile(ctx context.Context, connection *cli.Connection, run *v1alpha1.TrainingRun,
	pinned desired.Pins) (contract.RunFile, error) {
	environments := map[string]*v1alpha1.RewardEnvironment{}
	for _, name := range desired.References(run) {
		environment := &v1alpha1.RewardEnvironment{}
		err := connection.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: name}, environment)
		if client.IgnoreNotFound(err) != nil {
			return contract.RunFile{}, fmt.Errorf("reading RewardEnvironment %q: %w", name, err)
		}
		if err == nil {
			environments[name] = environment
		}
	}
	pins, problem := resolve.Environments(run, pinned, environments)
	if problem != nil {
		near := connection.NearEnvironments(ctx, run.Namespace, desired.References(run))
		return contract.RunFile{}, fmt.Errorf("the run would wait (%s): %s", problem.Reason(),
			strings.TrimSpace(problem.Message()+" "+near))
	}
	initFrom := ""
	if source := run.Spec.InitFrom; source != nil {
		var from *v1alpha1.TrainingRun
		if source.RunRef != nil {
			var err error
			beside := *connection // The run may be of another namespace than the context.
			beside.Namespace = run.Namespace
			if from, err = beside.Run(ctx, source.RunRef.Name); err != nil {
				return contract.RunFile{}, fmt.Errorf("initFrom: %w", err)
			}
		}
		if initFrom, problem = resolve.InitFrom(run, from); problem != nil {
			return contract.RunFile{}, fmt.Errorf("the run would wait (%s): %s", problem.Reason(), problem.Message())
		}
	}
	baseURL := "http://endpoint" // Without capabilities the plan does not depend on it.
	if known := run.Status.Capabilities; known != nil {
		baseURL = known.BaseURL
	}
	made, err := desired.File(desired.FileInput{Run: run, Attempt: 1, Pins: pins, DefaultBaseURL: baseURL,
		InitFrom: initFrom})
	if err != nil {
		return contract.RunFile{}, fmt.Errorf("the run would be refused: %w", err)
	}
	return made, nil
}
