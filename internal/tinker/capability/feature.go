// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"maps"
	"slices"
)

// Feature is something that a server may support. Names are those of the API where it has one.
type Feature string

// The features besides those of losses and of the optimizer step.
const (
	// OptimizerRestore is that a state loaded with its optimizer goes on as if never saved.
	OptimizerRestore Feature = "optimizer_restore"
	// OptimizerReset is that a state loaded without its optimizer begins with a fresh one.
	OptimizerReset Feature = "optimizer_reset"
	// TrainModules is that the train_* flags of a model keep the other matrices as they are.
	TrainModules Feature = "train_modules"
	// LossSum is that losses add up over datums; where they do not, they are averaged.
	LossSum Feature = "loss_sum"
	// Seed is that a seed decides the samples.
	Seed Feature = "seed"
	// Temperature, TopK and TopP are that they narrow the choice of tokens.
	Temperature Feature = "temperature"
	TopK        Feature = "top_k"
	TopP        Feature = "top_p"
	// PromptLogprobs is that there is one for each token of the prompt, as a forward pass gives them.
	PromptLogprobs Feature = "prompt_logprobs"
	// ListModels and ListCheckpoints are that the account's listings have what was just made.
	ListModels      Feature = "list_models"
	ListCheckpoints Feature = "list_checkpoints"
	// UserMetadata is that what was noted about a model is given back.
	UserMetadata Feature = "user_metadata"
	// TTL is that a checkpoint can be given a time to live.
	TTL Feature = "ttl"
	// DeleteCheckpoint and UnloadModel are that they are possible.
	DeleteCheckpoint Feature = "delete_checkpoint"
	UnloadModel      Feature = "unload_model"
)

// Loss is that the server computes the loss of that name.
func Loss(name string) Feature { return Feature("loss." + name) }

// LossSetting is that a setting changes the loss.
func LossSetting(name, setting string) Feature { return Feature("loss." + name + "." + setting) }

// LossFormula is that the loss has the published value.
func LossFormula(name string) Feature { return Feature("loss." + name + ".formula") }

// Adam is that a setting of optim_step, as the API names it, changes the step.
func Adam(setting string) Feature { return Feature("adam." + setting) }

// All lists every feature that a probe can tell something about, sorted.
func All() []Feature {
	all := []Feature{
		OptimizerRestore, OptimizerReset, TrainModules, LossSum, Seed, Temperature, TopK, TopP, PromptLogprobs,
		ListModels, ListCheckpoints, UserMetadata, TTL, DeleteCheckpoint, UnloadModel,
	}
	for name, definition := range losses {
		all = append(all, Loss(name), LossFormula(name))
		for _, s := range definition.settings {
			all = append(all, LossSetting(name, s.name))
		}
	}
	for setting := range adamChanges {
		all = append(all, Adam(setting))
	}
	slices.Sort(all)
	return all
}

// Support is what a probe found of a feature.
type Support string

// The kinds of support. Unknown is also what nobody looked at.
const (
	Supported Support = "supported"
	// Ignored is that the server takes it without an error, and without an effect.
	Ignored Support = "ignored"
	// Unsupported is that the server refuses it, or does something else.
	Unsupported Support = "unsupported"
	Unknown     Support = "unknown"
)

// Finding is what was found of one feature.
type Finding struct {
	Support Support
	// Note says what was seen, for people; empty where there is nothing to add.
	Note string
}

// Report is what was found of one server with one base model.
type Report struct {
	BaseURL, Model string
	Findings       map[Feature]Finding
}

// Of says what was found of a feature.
func (r Report) Of(f Feature) Support {
	if found, ok := r.Findings[f]; ok {
		return found.Support
	}
	return Unknown
}

// Lacks says that the server was found not to do it.
func (r Report) Lacks(f Feature) bool {
	support := r.Of(f)
	return support == Ignored || support == Unsupported
}

// Missing gives those of the features of which nothing is known.
func (r Report) Missing(features []Feature) []Feature {
	var missing []Feature
	for _, f := range features {
		if r.Of(f) == Unknown {
			missing = append(missing, f)
		}
	}
	return missing
}

// With adds what another report of the same server found, which wins.
func (r Report) With(other Report) Report {
	findings := maps.Clone(r.Findings)
	if findings == nil {
		findings = map[Feature]Finding{}
	}
	maps.Copy(findings, other.Findings)
	return Report{BaseURL: other.BaseURL, Model: other.Model, Findings: findings}
}

// List gives the features of one kind of support, sorted.
func (r Report) List(support Support) []string {
	var list []string
	for f, found := range r.Findings {
		if found.Support == support {
			list = append(list, string(f))
		}
	}
	slices.Sort(list)
	return list
}
