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
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/plugin/try"
	"github.com/tinker-operator/tinker-operator/internal/prices"
)

const planHelp = `kubectl tinker plan says what a run would do before anything is spent: tasks, steps, groups,
episodes and tokens. The API server checks the run as if it were created, and the operator's own rules check it
against the RewardEnvironments of the namespace, whose probes have counted the tasks. What the endpoint will
refuse is known if another run of the namespace has used it with the same model, and what the first attempt will
check by what such a run shares.

With --local, no cluster is asked: the file also has the RewardEnvironments that the run names, with their ConfigMaps
and Secrets, and this machine probes them. The rules are the same as at the API server; --data, --ors and --secret are
described at kubectl tinker try.

Tokens are upper limits: replies are as long as sampling.maxTokens, or limits.trajectoryTokens, permits.`

const planExample = `  kubectl tinker plan -f run.yaml
  kubectl tinker plan -f run.yaml --set spec.algorithm.steps=500 -o json
  kubectl tinker plan -f config/samples/arithmetic.yaml --local`

type planFlags struct {
	file
	local              bool
	ors, data, secrets []string
}

// NewPlan returns the command that says what a run would do.
func NewPlan(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f planFlags
	var format *output.Format
	command := &cobra.Command{
		Use: "plan -f FILE", Short: "Say what a run would do and cost in tokens", Long: planHelp, Example: planExample,
		Args: cli.NoArgs("the run is read from -f FILE"),
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

// planLocally plans with the objects of the file alone.
func (f planFlags) planLocally(ctx context.Context, env cli.IO, format output.Format) error {
	run, all, err := f.parse(env, manifest.ParseAll)
	if err != nil {
		return err
	}
	local := try.Local{Run: run, Beside: all, ORS: f.ors, Data: f.data, Secrets: f.secrets}
	file, err := local.RunFile(ctx, env)
	if err != nil {
		return err
	}
	planned := estimateOf(file)
	planned.Endpoint = checkOf(file, knowledge{})
	return output.Print(env, format, planned.result())
}

func (f planFlags) plan(ctx context.Context, env cli.IO, cluster *cli.Cluster, format output.Format) error {
	if f.local {
		return f.planLocally(ctx, env, format)
	}
	if len(f.ors)+len(f.data)+len(f.secrets) > 0 {
		return cli.Misused("--ors, --data and --secret are for --local: the cluster probes environments by itself")
	}
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
	Model         string `json:"model"`
	Tasks         int64  `json:"tasks"`
	Steps         int64  `json:"steps"`
	GroupsPerStep int64  `json:"groupsPerStep"`
	// RowsPerStep is that of a supervised run. Epochs are passes over rows that nobody has counted; Steps is 0 then.
	RowsPerStep int64 `json:"rowsPerStep,omitempty"`
	Epochs      int64 `json:"epochs,omitempty"`
	// TrainedTokens are those of rows that are cut to maxTokens; 0 where they are not.
	TrainedTokens int64 `json:"maxTrainedTokens,omitempty"`
	Groups        int64 `json:"groups"`
	Episodes      int64 `json:"episodes"`
	SampledTokens int64 `json:"maxSampledTokens"`
	// TeacherTokens are those that teachers read: what is sampled, and prompts that a limit bounds. Unbounded says that
	// there are other prompts.
	TeacherTokens int64 `json:"maxTeacherTokens,omitempty"`
	Unbounded     bool  `json:"teacherPromptsUnbounded,omitempty"`
	Evaluations   int64 `json:"evaluations"`
	// HeldOutTokens are the tokens of held-out rows that are counted and cut; 0 where they are not.
	HeldOutTokens      int64 `json:"maxHeldOutTokens,omitempty"`
	EvaluationEpisodes int64 `json:"evaluationEpisodes"`
	EvaluationTokens   int64 `json:"maxEvaluationTokens"`
	// USD is what sampling and training on these tokens and reading them as a teacher costs, without prompts, judges and
	// references; nil where the price is not known.
	USD *float64 `json:"maxUSD,omitempty"`
	// Endpoint is what the endpoint will refuse.
	Endpoint endpointCheck `json:"endpoint"`
}

// estimateOf computes the estimate. Where environments differ, episodes and tokens are those of the largest.
func estimateOf(file contract.RunFile) estimate {
	e := estimate{Model: file.Fixed.Model.Name}
	if a := file.Algorithm(); a != nil {
		e.Steps, e.GroupsPerStep = a.Steps, int64(a.TasksPerStep)
		e.Groups = e.Steps * e.GroupsPerStep
		var episodes, tokens, taught int64
		for _, environment := range file.Fixed.Environments {
			e.Tasks += environment.Tasks()
			episodes = max(episodes, int64(environment.GroupSize))
			tokens = max(tokens, int64(environment.GroupSize)*episodeTokens(environment))
			read, bounded := teacherTokens(environment)
			taught = max(taught, int64(environment.GroupSize)*read)
			e.Unbounded = e.Unbounded || !bounded
		}
		e.TeacherTokens = e.Groups * taught
		e.Episodes, e.SampledTokens = e.Groups*episodes, e.Groups*tokens
		if s := file.Fixed.Supervised; s != nil {
			e.RowsPerStep, e.Epochs = int64(s.BatchSize), a.Epochs
			e.TrainedTokens = e.Steps * e.RowsPerStep * int64(s.MaxTokens)
		}
	}
	if ev := file.Evaluation; ev != nil && e.Epochs == 0 {
		e.Evaluations = evaluations(*ev, e.Steps)
		for _, environment := range ev.Environments {
			episodes := environment.Tasks() * int64(environment.GroupSize)
			e.EvaluationEpisodes += e.Evaluations * episodes
			e.EvaluationTokens += e.Evaluations * episodes * episodeTokens(environment)
		}
		e.HeldOutTokens = e.Evaluations * heldOutTokens(file)
	}
	if file.Prices != nil {
		policy := spending.Prices{Policy: file.Prices.Policy, Teacher: file.Prices.Teacher}
		usd := policy.USD(spending.Usage{SampledTokens: e.SampledTokens + e.EvaluationTokens,
			TrainedTokens: e.SampledTokens + e.TrainedTokens + e.HeldOutTokens, TeacherTokens: e.TeacherTokens})
		if e.RowsPerStep == 0 || e.TrainedTokens > 0 {
			e.USD = &usd
		}
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

// teacherTokens is how many tokens of an episode its teacher reads at most, with the one that each request samples. It
// is false if prompts, which no limit bounds, are not among them.
func teacherTokens(environment contract.Environment) (tokens int64, bounded bool) {
	if environment.Teacher == nil {
		return 0, true
	}
	limits := environment.Limits
	switch tokens = episodeTokens(environment) + 1; {
	case environment.Teacher.SystemPrompt != "":
		return tokens, false // Its message is longer than the environment's by an unknown number of tokens.
	case limits.TrajectoryTokens > 0:
		return int64(limits.TrajectoryTokens) + 1, true
	case limits.PromptTokens > 0 && limits.Turns <= 1:
		return tokens + int64(limits.PromptTokens), true
	}
	return tokens, false
}

// heldOutTokens is how many tokens the held-out rows of an evaluation have at most; 0 if they are not counted or not
// cut.
func heldOutTokens(file contract.RunFile) (tokens int64) {
	if file.Fixed.Supervised == nil {
		return 0
	}
	for _, split := range file.Evaluation.HeldOut {
		if split.Take == 0 {
			return 0
		}
		tokens += split.Take * int64(file.Fixed.Supervised.MaxTokens)
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
	e.trainingRows(row, count)
	count("evaluations", e.Evaluations)
	count("episodes of evaluations", e.EvaluationEpisodes)
	row("sampled tokens of evaluations, at most", output.Count(e.EvaluationTokens))
	if e.HeldOutTokens > 0 {
		row("tokens of held-out rows, at most", output.Count(e.HeldOutTokens))
	}
	if e.RowsPerStep > 0 && e.USD == nil {
		row("dollars", "unknown: they depend on the rows, which the learner counts, or on a price that is missing")
	} else if e.USD != nil {
		row("dollars for sampled and trained tokens, at most", strconv.FormatFloat(*e.USD, 'f', 2, 64))
	} else {
		row("dollars", "unknown: the price of a model is not in the table of "+prices.Date()+", nor in spec.budget.prices")
	}
	row("refused by the endpoint", e.Endpoint.text())
	return result
}

// trainingRows adds what the run trains on.
func (e estimate) trainingRows(row func(name, value string), count func(name string, n int64)) {
	if e.RowsPerStep == 0 {
		count("tasks to train on", e.Tasks)
		count("steps", e.Steps)
		count("groups a step", e.GroupsPerStep)
		count("groups", e.Groups)
		count("episodes, at most", e.Episodes)
		row("sampled tokens, at most", output.Count(e.SampledTokens))
		if e.TeacherTokens > 0 && e.Unbounded {
			row("tokens that teachers read, at most, besides prompts", output.Count(e.TeacherTokens))
		} else if e.TeacherTokens > 0 {
			row("tokens that teachers read, at most", output.Count(e.TeacherTokens))
		}
		return
	}
	if e.Epochs > 0 {
		row("epochs", strconv.FormatInt(e.Epochs, 10)+", whose steps the learner counts once it has read the rows")
	} else {
		count("steps", e.Steps)
		count("rows to train on", e.Steps*e.RowsPerStep)
	}
	count("rows a step", e.RowsPerStep)
	if e.TrainedTokens > 0 {
		row("trained tokens, at most", output.Count(e.TrainedTokens))
	}
}
