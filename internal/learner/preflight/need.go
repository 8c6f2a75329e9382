// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// need is a setting of the run that an endpoint must not ignore.
type need struct {
	feature capability.Feature
	// setting names its field, and remedy the repair besides another endpoint; remedy is empty if there is none.
	setting, remedy string
}

// published are features that a run can do without and whose support is reported to users.
var published = []capability.Feature{
	capability.Seed, capability.PromptLogprobs, capability.PromptLogprobsLastN, capability.ListModels,
	capability.ListCheckpoints, capability.UserMetadata, capability.TTL, capability.UnloadModel,
}

// lossFields are the fields of the spec by the setting of a loss.
var lossFields = map[string]string{client.SettingClipLow: "clipLow", client.SettingClipHigh: "clipHigh"}

// needsOf lists the features that the run's settings rely on. Settings whose value has no effect are left out.
func needsOf(file contract.RunFile) []need {
	needs := samplingNeeds(file)
	alg := file.Fixed.Algorithm
	if alg == nil {
		return needs
	}
	if file.Fixed.Supervised != nil {
		needs = append(needs, need{capability.Loss(tinker.LossCrossEntropy), "mode Supervise", ""})
	} else {
		needs = append(needs, lossNeeds(alg.Loss, "algorithm.loss")...)
	}
	for _, role := range alg.Roles {
		for _, n := range lossNeeds(alg.LossOf(string(role.Name)), fmt.Sprintf("algorithm.roles[%s].loss", role.Name)) {
			if !slices.ContainsFunc(needs, func(known need) bool { return known.feature == n.feature }) {
				needs = append(needs, n)
			}
		}
	}
	needs = append(needs, optimizerNeeds(alg.Optimizer)...)
	if m := file.Fixed.Model; !m.TrainAttention || !m.TrainMLP || !m.TrainUnembed {
		needs = append(needs, need{capability.TrainModules, "model.trainModules", "leave it out, so that all are trained"})
	}
	for _, s := range file.Fixed.Scorers() {
		needs = append(needs, need{capability.PromptLogprobs, strings.TrimSuffix(s.Path, ".reference"), "leave it out"})
	}
	if alg.Lag > 0 {
		needs = append(needs, need{capability.SamplerSnapshot, "algorithm.lag", "set it to 0"})
	}
	if init := file.Fixed.InitFrom; init != nil && !init.RestoreOptimizer {
		needs = append(needs, need{capability.OptimizerReset, "initFrom.optimizer Reset", "set it to Restore"})
	}
	return needs
}

// lossNeeds lists the features that a loss relies on; path is the path of its field.
func lossNeeds(loss algorithm.Loss, path string) []need {
	wire, remedy := client.LossOf(loss), fmt.Sprintf("choose another %s.name", path)
	needs := []need{{capability.Loss(wire.Name), path + ".name " + string(loss.Name), remedy}}
	for _, setting := range slices.Sorted(maps.Keys(wire.Config)) {
		needs = append(needs, need{capability.LossSetting(wire.Name, setting), path + "." + lossFields[setting], remedy})
	}
	if wire.Name == tinker.LossGSPO {
		needs = append(needs, need{capability.LossSetting(wire.Name, tinker.InputSequenceRatioMask),
			"the input " + tinker.InputSequenceRatioMask + " of " + path + ".name " + string(loss.Name), remedy})
	}
	return needs
}

func optimizerNeeds(o algorithm.Optimizer) []need {
	const path = "algorithm.optimizer."
	needs := []need{{capability.Adam("beta1"), path + "beta1", ""}, {capability.Adam("beta2"), path + "beta2", ""}}
	// Below this an epsilon has no visible effect.
	const negligible = 1e-8
	if o.Epsilon > negligible {
		needs = append(needs, need{capability.Adam("eps"), path + "epsilon", "leave it out"})
	}
	if o.WeightDecay > 0 {
		needs = append(needs, need{capability.Adam("weight_decay"), path + "weightDecay", "set it to 0"})
	}
	if o.GradClipNorm > 0 {
		needs = append(needs, need{capability.Adam("grad_clip_norm"), path + "gradClipNorm", "set it to 0"})
	}
	return needs
}

// use is an environment as the run uses it, with the path of its field.
type use struct {
	path string
	contract.Environment
}

// usesOf lists the environments of training and evaluation.
func usesOf(file contract.RunFile) []use {
	var uses []use
	for _, env := range file.Fixed.Environments {
		uses = append(uses, use{fmt.Sprintf("environments[%s]", env.Name), env})
	}
	if file.Evaluation != nil {
		for _, env := range file.Evaluation.Environments {
			uses = append(uses, use{fmt.Sprintf("evaluation.environments[%s]", env.Name), env})
		}
	}
	return uses
}

// samplingNeeds lists the needs of the environments, each setting once.
func samplingNeeds(file contract.RunFile) []need {
	var needs []need
	add := func(f capability.Feature, setting string) {
		if !slices.ContainsFunc(needs, func(n need) bool { return n.feature == f }) {
			needs = append(needs, need{f, setting, "leave it out"})
		}
	}
	for _, use := range usesOf(file) {
		at := use.path + ".sampling."
		if *use.Sampling.Temperature != 1 {
			add(capability.Temperature, at+"temperature")
		}
		if use.Sampling.TopP != 1 {
			add(capability.TopP, at+"topP")
		}
		if use.Sampling.TopK > 0 {
			add(capability.TopK, at+"topK")
		}
		if use.Sampling.SharesPrompt() && use.GroupSize > 1 {
			add(capability.NumSamples, at+"sharedPrompt")
		}
	}
	return needs
}

// featuresOf lists the features to check.
func featuresOf(file contract.RunFile, needs []need) []capability.Feature {
	features := slices.Clone(published)
	for _, n := range needs {
		features = append(features, n.feature)
	}
	if file.Fixed.Algorithm != nil {
		features = append(features, capability.Protobuf, capability.Repeats, capability.GradientSum,
			capability.SamplerSnapshot,
			capability.OptimizerRestore, capability.LossSum)
	}
	return features
}

// gradientRefusal returns a line if gradients are combined in a way that cannot be compensated. Averages can be
// compensated: the learner makes advantages larger, and every loss is proportional to them.
func gradientRefusal(file contract.RunFile, report capability.Report) []string {
	if file.Fixed.Algorithm == nil || report.Of(capability.GradientSum) != capability.Unsupported {
		return nil
	}
	return []string{fmt.Sprintf("that gradients are sums over tokens and sequences (%s)",
		report.Findings[capability.GradientSum].Note)}
}

// gradientsUnknown rejects a run that trains at an endpoint that reads JSON only, if its gradients could not be
// measured: such servers often average them, which would change the learning rate unnoticed.
func gradientsUnknown(file contract.RunFile, report capability.Report) error {
	if file.Fixed.Algorithm == nil || !report.Lacks(capability.Protobuf) ||
		report.Of(capability.GradientSum) != capability.Unknown {
		return nil
	}
	note := cmp.Or(report.Findings[capability.GradientSum].Note,
		"the steps of the check did not change the log-probabilities that the endpoint returns")
	return Reject(problem.UnsupportedByEndpoint,
		"It could not be measured whether the endpoint sums gradients over tokens and "+
			"sequences (%s). It reads JSON only, "+
			"and such servers often average gradients, so that algorithm.optimizer.learningRate would have another meaning: "+
			"repair the endpoint and "+
			"try the run again, or use another endpoint", note)
}

// refusal returns why the endpoint cannot serve the run as its spec says; nil when it can.
func refusal(file contract.RunFile, needs []need, report capability.Report) error {
	var lines []string
	for _, n := range needs {
		if !report.Lacks(n.feature) {
			continue
		}
		line := n.setting + " (" + string(report.Of(n.feature))
		if note := report.Findings[n.feature].Note; note != "" {
			line += ": " + note
		}
		line += ")"
		if n.remedy != "" {
			line += ": " + n.remedy
		}
		lines = append(lines, line)
	}
	lines = append(lines, gradientRefusal(file, report)...)
	if len(lines) > 0 {
		return Reject(problem.UnsupportedByEndpoint, "The endpoint does not honour %s; or use an endpoint that does",
			strings.Join(lines, "; "))
	}
	if file.Fixed.Algorithm != nil && file.RequireOptimizer && report.Lacks(capability.OptimizerRestore) {
		return Reject(problem.OptimizerNotRestored,
			"The endpoint does not restore the optimizer (%s), so that a resumed run would "+
				"begin Adam anew: set failurePolicy.requireOptimizerState to false if that is acceptable, or use an endpoint that "+
				"restores it",
			report.Findings[capability.OptimizerRestore].Note)
	}
	return nil
}
