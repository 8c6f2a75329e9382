// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// Pin is a RewardEnvironment as a run uses it from its start to its end, whatever becomes of the object.
type Pin struct {
	// Digest is the digest that the probe has given.
	Digest string `json:"digest"`
	// Definition is stored only in the run file, if the run file has it.
	Definition contract.Definition `json:"definition,omitzero"`
	// Splits has the number of tasks of each split.
	Splits map[string]int64 `json:"splits"`
	// DeclaresTools says that the format of the model has to declare tools, as the probe found.
	DeclaresTools bool `json:"declaresTools,omitempty"`
}

// Pins are keyed by the RewardEnvironments' names.
type Pins map[string]Pin

// checkPrompts checks that an environment of a list can have one prompt a group if its sampling asks for that.
func checkPrompts(list string, environment contract.Environment) error {
	if environment.Sampling.SharesPrompt() && !environment.Definition.HasSharedPrompts() {
		return unacceptable(problem.PromptsDiffer, "%s[%s].sampling.sharedPrompt", list, environment.Name)
	}
	return nil
}

// Definition returns the spec of a RewardEnvironment in the form that programs read. The spec has the defaults of the
// schema.
func Definition(spec v1alpha1.RewardEnvironmentSpec) contract.Definition {
	made := contract.Definition{Interaction: spec.Interaction.DeepCopy()}
	if agent := made.Agent(); agent != nil {
		agent.SetDefaults()
	}
	if spec.Dataset != nil {
		made.Dataset = datasetOf(*spec.Dataset)
	}
	if spec.Reward != nil {
		made.Reward = rewardOf(*spec.Reward)
	}
	if spec.ORS != nil {
		made.ORS = orsOf(*spec.ORS)
	}
	made.Execution = executionOf(spec.Execution, made)
	return made
}

// RefName returns the name of the RewardEnvironment to which an entry refers.
func RefName(use v1alpha1.EnvironmentUse) string {
	if use.EnvironmentRef != nil {
		return use.EnvironmentRef.Name
	}
	return use.Name
}

// References are the names of all RewardEnvironments that a run refers to, sorted.
func References(run *v1alpha1.TrainingRun) []string {
	names := map[string]bool{}
	for _, use := range run.Spec.Environments {
		names[RefName(use.EnvironmentUse)] = true
	}
	for _, use := range EvaluationUses(run) {
		names[RefName(use.EnvironmentUse)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// EvaluationUses returns the entries to evaluate on, with the settings that they inherit from training. If the spec
// lists none, they are the training environments.
func EvaluationUses(run *v1alpha1.TrainingRun) []v1alpha1.EvaluationEnvironment {
	if run.Spec.Evaluation == nil {
		return nil
	}
	training := map[string]v1alpha1.EnvironmentUse{}
	uses := slices.Clone(run.Spec.Evaluation.Environments)
	for _, use := range run.Spec.Environments {
		training[use.Name] = use.EnvironmentUse
		if len(run.Spec.Evaluation.Environments) == 0 {
			uses = append(uses, v1alpha1.EvaluationEnvironment{EnvironmentUse: use.EnvironmentUse})
		}
	}
	for i, use := range uses {
		if from, ok := training[use.InheritFrom]; ok {
			uses[i].EnvironmentUse = inherit(use.EnvironmentUse, from)
		}
	}
	return uses
}

// inherit fills each field that is not given from another entry.
func inherit(use, from v1alpha1.EnvironmentUse) v1alpha1.EnvironmentUse {
	use.EnvironmentRef = cmp.Or(use.EnvironmentRef, &v1alpha1.EnvironmentRef{Name: RefName(from)})
	use.Retries = cmp.Or(use.Retries, from.Retries)
	use.Sampling.MaxTokens = cmp.Or(use.Sampling.MaxTokens, from.Sampling.MaxTokens)
	use.Sampling.Temperature = cmp.Or(use.Sampling.Temperature, from.Sampling.Temperature)
	use.Sampling.TopP = cmp.Or(use.Sampling.TopP, from.Sampling.TopP)
	use.Sampling.TopK = cmp.Or(use.Sampling.TopK, from.Sampling.TopK)
	use.Sampling.SharedPrompt = cmp.Or(use.Sampling.SharedPrompt, from.Sampling.SharedPrompt)
	if use.Sampling.Stop == nil {
		use.Sampling.Stop = from.Sampling.Stop
	}
	use.Limits.Turns = cmp.Or(use.Limits.Turns, from.Limits.Turns)
	use.Limits.Requests = cmp.Or(use.Limits.Requests, from.Limits.Requests)
	use.Limits.ToolCalls = cmp.Or(use.Limits.ToolCalls, from.Limits.ToolCalls)
	use.Limits.PromptTokens = cmp.Or(use.Limits.PromptTokens, from.Limits.PromptTokens)
	use.Limits.TrajectoryTokens = cmp.Or(use.Limits.TrajectoryTokens, from.Limits.TrajectoryTokens)
	use.Limits.EpisodeSeconds = cmp.Or(use.Limits.EpisodeSeconds, from.Limits.EpisodeSeconds)
	use.Limits.OnLimit = cmp.Or(use.Limits.OnLimit, from.Limits.OnLimit)
	use.Reward.Reduction = cmp.Or(use.Reward.Reduction, from.Reward.Reduction)
	use.Reward.Nonterminal = cmp.Or(use.Reward.Nonterminal, from.Reward.Nonterminal)
	use.Reward.Min = cmp.Or(use.Reward.Min, from.Reward.Min)
	use.Reward.Max = cmp.Or(use.Reward.Max, from.Reward.Max)
	return use
}

func trainingEnvironment(use v1alpha1.TrainingEnvironment, pins Pins) (contract.Environment, error) {
	environment := environmentOf(use.EnvironmentUse, pins)
	environment.Weight = ptr.Deref(use.Weight, 0)
	environment.SkipUnavailable = use.OnUnavailable == v1alpha1.UnavailableSkip
	environment.GroupSize = int(use.GroupSize)
	least := int32(2)
	if environment.Definition.IsUnrewarded() {
		least = 1
	}
	environment.MinMembers = int(ptr.Deref(use.MinMembers, max(least, (use.GroupSize+1)/2)))
	if use.Teacher != nil {
		environment.Teacher = use.Teacher.DeepCopy()
		environment.Teacher.SetDefaults()
	}
	if err := checkTeacher(environment); err != nil {
		return contract.Environment{}, err
	}
	wanted := use.Splits
	if len(wanted) == 0 {
		wanted = []v1alpha1.Split{{Name: "train"}}
	}
	for _, split := range wanted {
		taken, err := take(use.EnvironmentUse, pins, split.Name, split.Take)
		if err != nil {
			return contract.Environment{}, err
		}
		taken.Shuffle = ptr.Deref(split.Shuffle, true)
		environment.Splits = append(environment.Splits, taken)
	}
	sortSplits(environment.Splits)
	return environment, checkPrompts("environments", environment)
}

func evaluationEnvironment(use v1alpha1.EvaluationEnvironment, pins Pins) (contract.Environment, error) {
	environment := environmentOf(use.EnvironmentUse, pins)
	if environment.Definition.IsUnrewarded() {
		return contract.Environment{}, unacceptable(problem.RewardMissing, "evaluation.environments[%s]", use.Name)
	}
	environment.GroupSize = int(ptr.Deref(use.SamplesPerTask, 1))
	environment.MinMembers = 1
	for _, k := range use.PassAt {
		environment.PassAt = append(environment.PassAt, int(k))
	}
	if len(environment.PassAt) == 0 {
		environment.PassAt = []int{1}
	}
	slices.Sort(environment.PassAt)
	wanted := use.Splits
	if len(wanted) == 0 {
		wanted = []v1alpha1.EvaluationSplit{{Name: "test"}}
	}
	for _, split := range wanted {
		taken, err := take(use.EnvironmentUse, pins, split.Name, split.Take)
		if err != nil {
			return contract.Environment{}, err
		}
		environment.Splits = append(environment.Splits, taken)
	}
	sortSplits(environment.Splits)
	return environment, checkPrompts("evaluation.environments", environment)
}

func take(use v1alpha1.EnvironmentUse, pins Pins, name string, limit *int64) (contract.Split, error) {
	known := pins[RefName(use)].Splits
	tasks := known[name]
	if tasks < 1 {
		return contract.Split{}, unacceptable(problem.SplitNotFound,
			"environment %q has no tasks in a split %q; it has %s",
			use.Name, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	return contract.Split{Name: name, Tasks: min(tasks, ptr.Deref(limit, tasks))}, nil
}

func sortSplits(splits []contract.Split) {
	slices.SortFunc(splits, func(a, b contract.Split) int { return cmp.Compare(a.Name, b.Name) })
}

// turnsOf returns the limit of turns if none is given; 0 if there is no limit. Without a limit, an episode that does
// not end by itself would continue until the model's context is full.
func turnsOf(definition contract.Definition) int32 {
	const manyTurns = 50
	if definition.Interaction == nil && definition.ORS == nil {
		return 0
	}
	return manyTurns
}

// environmentOf returns the settings that training and evaluation share, with their defaults. These defaults are not in
// the schema, since an evaluation may inherit the settings from training.
func environmentOf(use v1alpha1.EnvironmentUse, pins Pins) contract.Environment {
	pin := pins[RefName(use)]
	sampling, limits, reward := *use.Sampling.DeepCopy(), use.Limits, *use.Reward.DeepCopy()
	sampling.Temperature = cmp.Or(sampling.Temperature, ptr.To(1.0))
	sampling.TopP = cmp.Or(sampling.TopP, 1)
	if !sampling.SharesPrompt() {
		sampling.SharedPrompt = nil
	}
	sampling.AllowBiased = nil
	limits.Turns = cmp.Or(limits.Turns, turnsOf(pin.Definition))
	limits.OnLimit = cmp.Or(limits.OnLimit, playing.LimitGrade)
	reward.Reduction = cmp.Or(reward.Reduction, playing.ReductionSum)
	return contract.Environment{
		Name:       use.Name,
		Digest:     pin.Digest,
		Definition: pin.Definition,
		Retries:    int(ptr.Deref(use.Retries, 3)),
		Sampling:   sampling,
		Limits:     limits,
		Reward:     reward,
	}
}
