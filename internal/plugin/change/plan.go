// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/controller/resolve"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/prices"
)

const planHelp = `kubectl tinker plan says what a run would do before anything is spent: tasks, steps, groups, episodes and tokens. The API
server checks the run as if it were created, and the operator's own rules check it against the RewardEnvironments of the
namespace, whose probes have counted the tasks. What the endpoint will refuse is known if another run of the namespace
has used it with the same model, and what the first attempt will check by what such a run shares.

Tokens are upper limits: replies are as long as sampling.maxTokens, or limits.trajectoryTokens, permits.`

const planExample = `  kubectl tinker plan -f run.yaml
  kubectl tinker plan -f run.yaml --set spec.algorithm.steps=500 -o json`

// NewPlan returns the command that says what a run would do.
func NewPlan(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f file
	var format *output.Format
	command := &cobra.Command{
		Use: "plan -f FILE", Short: "Say what a run would do and cost in tokens", Long: planHelp, Example: planExample,
		Args: cli.NoArgs("the run is read from -f FILE"),
		RunE: func(command *cobra.Command, _ []string) error {
			return f.plan(command.Context(), env, cluster, *format)
		},
	}
	f.add(command)
	format = output.Flag(command.Flags())
	return command
}

func (f file) plan(ctx context.Context, env cli.IO, cluster *cli.Cluster, format output.Format) error {
	object, _, err := f.read(env)
	if err != nil {
		return err
	}
	connection, err := cluster.Connect()
	if err != nil {
		return err
	}
	run, err := dryRun(ctx, connection, object)
	if err != nil {
		return err
	}
	known, err := findCapabilities(ctx, connection, run, env.Now())
	if err != nil {
		return err
	}
	file, err := runFile(ctx, connection, run)
	if err != nil {
		return err
	}
	planned := estimateOf(file)
	planned.Endpoint = checkOf(file, known)
	return output.Print(env, format, planned.result())
}

// dryRun has the API server check a run, and returns it as the server would store it.
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

// runFile returns what the first attempt of a run would be given.
func runFile(ctx context.Context, connection *cli.Connection, run *v1alpha1.TrainingRun) (contract.RunFile, error) {
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
	pins, problem := resolve.Environments(run, nil, environments)
	if problem != nil {
		return contract.RunFile{}, fmt.Errorf("the run would wait (%s): %s", problem.Reason(), problem.Message())
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

// estimate is what a run would do at most.
type estimate struct {
	Model              string `json:"model"`
	Tasks              int64  `json:"tasks"`
	Steps              int64  `json:"steps"`
	GroupsPerStep      int64  `json:"groupsPerStep"`
	Groups             int64  `json:"groups"`
	Episodes           int64  `json:"episodes"`
	SampledTokens      int64  `json:"maxSampledTokens"`
	Evaluations        int64  `json:"evaluations"`
	EvaluationEpisodes int64  `json:"evaluationEpisodes"`
	EvaluationTokens   int64  `json:"maxEvaluationTokens"`
	// USD is what sampling and training on these tokens costs, without prompts, judges and references; nil where the price
	// is not known.
	USD *float64 `json:"maxUSD,omitempty"`
	// Endpoint is what the endpoint will refuse.
	Endpoint endpointCheck `json:"endpoint"`
}

// estimateOf computes the estimate. Where environments differ, episodes and tokens are those of the largest.
func estimateOf(file contract.RunFile) estimate {
	e := estimate{Model: file.Fixed.Model.Name}
	if a := file.Fixed.Algorithm; a != nil {
		e.Steps, e.GroupsPerStep = a.Steps, int64(a.TasksPerStep)
		e.Groups = e.Steps * e.GroupsPerStep
		var episodes, tokens int64
		for _, environment := range file.Fixed.Environments {
			e.Tasks += environment.Tasks()
			episodes = max(episodes, int64(environment.GroupSize))
			tokens = max(tokens, int64(environment.GroupSize)*episodeTokens(environment))
		}
		e.Episodes, e.SampledTokens = e.Groups*episodes, e.Groups*tokens
	}
	if ev := file.Evaluation; ev != nil {
		e.Evaluations = evaluations(*ev, e.Steps)
		for _, environment := range ev.Environments {
			episodes := environment.Tasks() * int64(environment.GroupSize)
			e.EvaluationEpisodes += e.Evaluations * episodes
			e.EvaluationTokens += e.Evaluations * episodes * episodeTokens(environment)
		}
	}
	if file.Prices != nil {
		policy := spending.Prices{Policy: file.Prices.Policy}
		usd := policy.USD(spending.Usage{SampledTokens: e.SampledTokens + e.EvaluationTokens, TrainedTokens: e.SampledTokens})
		e.USD = &usd
	}
	return e
}

// episodeTokens is how many tokens an episode samples at most.
func episodeTokens(environment contract.Environment) int64 {
	replies := max(1, environment.Limits.Turns)
	if most := environment.Limits.Requests; most > 0 {
		replies = min(replies, most)
	}
	tokens := int64(environment.Sampling.MaxTokens) * int64(replies)
	if limit := int64(environment.Limits.TrajectoryTokens); limit > 0 {
		tokens = min(tokens, limit)
	}
	return tokens
}

// evaluations counts the versions that are evaluated.
func evaluations(ev contract.Evaluation, steps int64) int64 {
	if steps == 0 {
		return 1
	}
	count := int64(0)
	if ev.Before {
		count++
	}
	if ev.EverySteps > 0 {
		count += steps / ev.EverySteps
	}
	if ev.After && (ev.EverySteps == 0 || steps%ev.EverySteps != 0) {
		count++
	}
	return count
}

func (e estimate) result() output.Result {
	result := output.Result{Header: []string{"WHAT", "HOW MUCH"}, Value: e}
	row := func(name, value string) { result.Rows = append(result.Rows, []string{name, value}) }
	count := func(name string, n int64) { row(name, strconv.FormatInt(n, 10)) }
	row("model", e.Model)
	count("tasks to train on", e.Tasks)
	count("steps", e.Steps)
	count("groups a step", e.GroupsPerStep)
	count("groups", e.Groups)
	count("episodes, at most", e.Episodes)
	row("sampled tokens, at most", output.Count(e.SampledTokens))
	count("evaluations", e.Evaluations)
	count("episodes of evaluations", e.EvaluationEpisodes)
	row("sampled tokens of evaluations, at most", output.Count(e.EvaluationTokens))
	if e.USD != nil {
		row("dollars for sampled and trained tokens, at most", strconv.FormatFloat(*e.USD, 'f', 2, 64))
	} else {
		row("dollars", "unknown: the price of a model is not in the table of "+prices.Date()+", nor in spec.budget.prices")
	}
	row("refused by the endpoint", e.Endpoint.text())
	return result
}
