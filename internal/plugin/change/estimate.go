// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/plugin/try"
	"github.com/tinker-operator/tinker-operator/internal/prices"
)

// estimate has the maximum numbers of a run's steps, episodes and tokens.
type estimate struct {
	Model         string `json:"model"`
	Tasks         int64  `json:"tasks"`
	Steps         int64  `json:"steps"`
	GroupsPerStep int64  `json:"groupsPerStep"`
	// RowsPerStep is the batch of a supervised run. Epochs are passes over an unknown number of rows; Steps is then 0.
	RowsPerStep int64 `json:"rowsPerStep,omitempty"`
	Epochs      int64 `json:"epochs,omitempty"`
	// TrainedTokens are the tokens of rows that are cut to maxTokens; 0 if rows are not cut.
	TrainedTokens int64 `json:"maxTrainedTokens,omitempty"`
	Groups        int64 `json:"groups"`
	Episodes      int64 `json:"episodes"`
	SampledTokens int64 `json:"maxSampledTokens"`
	// TeacherTokens are the tokens that teachers read: sampled tokens, and prompts that a limit bounds. Unbounded says
	// that teachers also read prompts that no limit bounds.
	TeacherTokens int64 `json:"maxTeacherTokens,omitempty"`
	Unbounded     bool  `json:"teacherPromptsUnbounded,omitempty"`
	Evaluations   int64 `json:"evaluations"`
	// HeldOutTokens are the tokens of held-out rows; 0 if the rows are not counted or not cut.
	HeldOutTokens      int64 `json:"maxHeldOutTokens,omitempty"`
	EvaluationEpisodes int64 `json:"evaluationEpisodes"`
	EvaluationTokens   int64 `json:"maxEvaluationTokens"`
	// Prompts are the counts of the prompts with which episodes of training environments begin. PromptTokens are the
	// tokens of the prompts of all training and evaluation episodes, by the mean of the counted prompts; 0 if no prompt
	// was counted.
	Prompts      map[string]try.Prompts `json:"prompts,omitempty"`
	PromptTokens int64                  `json:"promptTokens,omitempty"`
	// LaterPrompts says that episodes may have prompts beyond the first.
	LaterPrompts bool `json:"laterPrompts,omitempty"`
	// USD is the cost of the counted prompts, and of sampling these tokens, training on them and reading them as a
	// teacher, without judges and references; nil if a price is not known.
	USD *float64 `json:"maxUSD,omitempty"`
	// LearningRate is the learning rate of the run. CookbookRate is tinker-cookbook's rate for supervised training of
	// the model; 0 if it has none.
	LearningRate float64 `json:"learningRate,omitempty"`
	CookbookRate float64 `json:"cookbookLearningRate,omitempty"`
	// Endpoint has the settings that the endpoint will refuse.
	Endpoint endpointCheck `json:"endpoint"`
}

// estimateOf computes the estimate. If environments differ, episodes and tokens are the numbers of the largest
// environment. training and evaluation are the counts of prompts, by the names of environments.
func estimateOf(file contract.RunFile, training, evaluation map[string]try.Prompts) estimate {
	e := estimate{Model: file.Fixed.Model.Name, Prompts: training}
	trainedPrompts := int64(0)
	if a := file.Algorithm(); a != nil {
		e.LearningRate = a.Optimizer.LearningRate
		e.CookbookRate, _ = models.LearningRate(e.Model)
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
			prompts := int64(math.Ceil(training[environment.Name].Mean * float64(environment.GroupSize)))
			trainedPrompts = max(trainedPrompts, e.Groups*prompts)
			definition := environment.Definition
			e.LaterPrompts = e.LaterPrompts || definition.Interaction != nil || definition.ORS != nil
		}
		e.PromptTokens = trainedPrompts
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
			e.PromptTokens += int64(math.Ceil(evaluation[environment.Name].Mean * float64(e.Evaluations*episodes)))
		}
		e.HeldOutTokens = e.Evaluations * heldOutTokens(file)
	}
	if file.Prices != nil {
		policy := spending.Prices{Policy: file.Prices.Policy, Teacher: file.Prices.Teacher}
		usd := policy.USD(spending.Usage{PromptTokens: e.PromptTokens, SampledTokens: e.SampledTokens + e.EvaluationTokens,
			TrainedTokens: e.SampledTokens + trainedPrompts + e.TrainedTokens + e.HeldOutTokens,
			TeacherTokens: e.TeacherTokens})
		if e.RowsPerStep == 0 || e.TrainedTokens > 0 {
			e.USD = &usd
		}
	}
	return e
}

// episodeTokens returns the maximum number of tokens that an episode samples.
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

// teacherTokens returns the maximum number of tokens of an episode that its teacher reads, including the one that each
// request samples. bounded is false if no limit bounds prompts, which are then not included.
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

// heldOutTokens returns the maximum number of tokens of the held-out rows of an evaluation; 0 if they are not counted
// or not cut.
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
	if e.CookbookRate > 0 {
		row("learning rate", e.rateText())
	}
	e.trainingRows(row, count)
	if e.Epochs > 0 {
		row("evaluations", "unknown: they follow from the steps")
	} else {
		count("evaluations", e.Evaluations)
		count("episodes of evaluations", e.EvaluationEpisodes)
		row("sampled tokens of evaluations, at most", output.Count(e.EvaluationTokens))
	}
	if e.HeldOutTokens > 0 {
		row("tokens of held-out rows, at most", output.Count(e.HeldOutTokens))
	}
	e.promptRows(row)
	if e.RowsPerStep > 0 && e.USD == nil {
		row("dollars", "unknown: they depend on the rows, which the learner counts, or on a price that is missing")
	} else if e.USD != nil {
		what := "dollars for sampled and trained tokens, at most"
		if e.PromptTokens > 0 {
			what = "dollars, with the first prompts of episodes, at most"
		}
		row(what, strconv.FormatFloat(*e.USD, 'f', 2, 64))
	} else {
		row("dollars", "unknown: the price of a model is not in the table of "+prices.Date()+", nor in spec.budget.prices")
	}
	row("refused by the endpoint", e.Endpoint.text())
	return result
}

// rateText compares the learning rate with tinker-cookbook's.
func (e estimate) rateText() string {
	text := fmt.Sprintf("%.3g; tinker-cookbook's rule for supervised training of this model gives %.3g", e.LearningRate,
		e.CookbookRate)
	if e.RowsPerStep == 0 {
		text += ", and its recipes of reinforcement learning have 1e-05 to 1e-04"
	}
	return text
}

// promptRows adds the counts of prompts.
func (e estimate) promptRows(row func(name, value string)) {
	for _, name := range slices.Sorted(maps.Keys(e.Prompts)) {
		p := e.Prompts[name]
		text := fmt.Sprintf("%.0f on average over %d tasks, %d at most", p.Mean, p.Tasks, p.Longest)
		if p.TooLong > 0 {
			text += fmt.Sprintf("; %d of the tasks have more than limits.promptTokens and are left out: raise it, or shorten "+
				"their prompts", p.TooLong)
		}
		row("prompt tokens of "+name, text)
	}
	switch {
	case e.PromptTokens > 0 && e.LaterPrompts:
		row("prompt tokens, about, without those of later turns", output.Count(e.PromptTokens))
	case e.PromptTokens > 0:
		row("prompt tokens, about", output.Count(e.PromptTokens))
	}
}

// trainingRows adds the data of training.
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
