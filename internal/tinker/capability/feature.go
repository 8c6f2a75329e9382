// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Feature is something that a server may support. It has the API's name, if there is one.
type Feature string

// The features other than losses and optimizer steps.
const (
	// OptimizerRestore means that a model loaded with its optimizer continues as if it had never been saved.
	OptimizerRestore Feature = "optimizer_restore"
	// OptimizerReset means that a model loaded without its optimizer starts with a fresh one.
	OptimizerReset Feature = "optimizer_reset"
	// TrainModules means that the train_* flags of a model exclude the other matrices from training.
	TrainModules Feature = "train_modules"
	// Protobuf means that the server reads training data in protobuf. Other servers get them in JSON.
	Protobuf Feature = "protobuf"
	// Repeats means that the server recognises a submit that is repeated, and does not execute it twice.
	Repeats Feature = "repeats"
	// GradientSum means that gradients are summed over tokens and sequences. It is Ignored if they are averaged over
	// both, and Unsupported if they are combined in another way.
	GradientSum Feature = "gradient_sum"
	// SamplerSnapshot means that sampler weights stay as they were saved when their model is trained further.
	SamplerSnapshot Feature = "sampler_snapshot"
	// LossSum means that losses are summed over datums, and not averaged.
	LossSum Feature = "loss_sum"
	// Seed means that a seed of up to 63 bits determines the samples. It is Unsupported if the server refuses such seeds.
	Seed Feature = "seed"
	// NumSamples means that the seed of a request for several samples determines each of them by its place, and that the
	// samples differ from each other.
	NumSamples Feature = "num_samples"
	// Temperature, TopK and TopP mean that these settings narrow the choice of tokens.
	Temperature Feature = "temperature"
	TopK        Feature = "top_k"
	TopP        Feature = "top_p"
	// PromptLogprobs means that the log-probabilities of a prompt equal those of a forward pass.
	PromptLogprobs Feature = "prompt_logprobs"
	// PromptLogprobsLastN means that a request can ask for the log-probabilities of the last tokens of a prompt alone.
	PromptLogprobsLastN Feature = "prompt_logprobs_last_n"
	// ListModels and ListCheckpoints mean that the account's listings have new models and checkpoints.
	ListModels      Feature = "list_models"
	ListCheckpoints Feature = "list_checkpoints"
	// UserMetadata means that the metadata of a model is returned.
	UserMetadata Feature = "user_metadata"
	// TTL means that the TTL of a checkpoint can be set.
	TTL Feature = "ttl"
	// DeleteCheckpoint and UnloadModel mean that these calls succeed.
	DeleteCheckpoint Feature = "delete_checkpoint"
	UnloadModel      Feature = "unload_model"
)

// Loss returns the feature that the server computes the loss.
func Loss(name tinker.LossName) Feature { return Feature("loss." + name) }

// LossSetting returns the feature that a setting changes the loss.
func LossSetting(name tinker.LossName, setting string) Feature {
	return Feature("loss." + string(name) + "." + setting)
}

// LossFormula returns the feature that the loss has the published value.
func LossFormula(name tinker.LossName) Feature { return Feature("loss." + name + ".formula") }

// Adam returns the feature that a setting of optim_step, as the API names it, changes the step.
func Adam(setting string) Feature { return Feature("adam." + setting) }

// All returns every feature that can be checked, sorted.
func All() []Feature {
	all := []Feature{
		Protobuf, Repeats, GradientSum, SamplerSnapshot, OptimizerRestore, OptimizerReset, TrainModules, LossSum, Seed,
		NumSamples, Temperature, TopK, TopP, PromptLogprobs, PromptLogprobsLastN,
		ListModels, ListCheckpoints, UserMetadata, TTL, DeleteCheckpoint, UnloadModel,
	}
	for name, definition := range losses {
		all = append(all, Loss(name), LossFormula(name))
		for _, setting := range definition.names() {
			all = append(all, LossSetting(name, setting))
		}
	}
	for setting := range adamChanges {
		all = append(all, Adam(setting))
	}
	slices.Sort(all)
	return all
}

// Support says whether a server supports a feature.
type Support string

// The kinds of support. Features that were not checked are Unknown.
const (
	Supported Support = "supported"
	// Ignored means that the server accepts it, and that it has no effect.
	Ignored Support = "ignored"
	// Unsupported means that the server rejects it, or does something else.
	Unsupported Support = "unsupported"
	Unknown     Support = "unknown"
)

// Finding is the result of the check of one feature.
type Finding struct {
	Support Support
	// Note explains the finding for people; it may be empty.
	Note string
}

// Report holds the findings about one server with one base model.
type Report struct {
	BaseURL, Model string
	Findings       map[Feature]Finding
}

// Of returns the support of a feature.
func (r Report) Of(f Feature) Support {
	return cmp.Or(r.Findings[f].Support, Unknown)
}

// Lacks reports whether the server does not support a feature.
func (r Report) Lacks(f Feature) bool {
	support := r.Of(f)
	return support == Ignored || support == Unsupported
}

// Missing returns the features whose support is unknown.
func (r Report) Missing(features []Feature) []Feature {
	var missing []Feature
	for _, f := range features {
		if r.Of(f) == Unknown {
			missing = append(missing, f)
		}
	}
	return missing
}

// With adds the findings of another report of the same server, which take precedence.
func (r Report) With(other Report) Report {
	findings := maps.Clone(r.Findings)
	if findings == nil {
		findings = map[Feature]Finding{}
	}
	maps.Copy(findings, other.Findings)
	return Report{BaseURL: other.BaseURL, Model: other.Model, Findings: findings}
}

// List returns the features of one kind of support, sorted.
func (r Report) List(support Support) []string {
	var list []string
	for f, finding := range r.Findings {
		if finding.Support == support {
			list = append(list, string(f))
		}
	}
	slices.Sort(list)
	return list
}
