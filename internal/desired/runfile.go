// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// FileInput is the input of an attempt's run file.
type FileInput struct {
	// Run has its defaults (TrainingRun.Default).
	Run     *v1alpha1.TrainingRun
	Attempt int32
	// Pins are the pins of all environments that the run refers to.
	Pins Pins
	// DefaultBaseURL is the address of the endpoint of a run that names none.
	DefaultBaseURL string
	// Prices are the prices of the run's TinkerEndpoint, by model; nil if it has none, or if the run names none.
	Prices map[string]spending.Price
	// InitFrom is the checkpoint that initFrom refers to; empty if there is none.
	InitFrom string
	// Template is the text of the ConfigMap that the run's model names. It is nil if there is none, and for a run file
	// that only serves to check the spec.
	Template *string
	// Fixed is the value of an earlier attempt, which is kept; nil for the first attempt.
	Fixed *contract.Fixed
	// Version is the format version that the run began with; 0 for a run that begins now.
	Version int
}

// SpecError is the problem of a spec that is not accepted.
type SpecError struct{ problem.Problem }

// Error returns the sentences of the table.
func (e *SpecError) Error() string { return e.Message() }

// unacceptable returns a *SpecError with a code and the formatted evidence.
func unacceptable(code problem.Code, format string, args ...any) error {
	return &SpecError{problem.Problem{Code: code, Evidence: fmt.Sprintf(format, args...)}}
}

// File returns the run file of an attempt. It returns a *SpecError if the spec is not accepted; any other error means
// that the file is not valid.
func File(in FileInput) (contract.RunFile, error) {
	fixed := in.Fixed
	if fixed == nil {
		made, err := fixedOf(in)
		if err == nil {
			err = checkToolCalls(in.Run, in.Pins)
		}
		if err != nil {
			return contract.RunFile{}, err
		}
		fixed = &made
	}
	evaluation, err := evaluationOf(in.Run, in.Pins)
	if err != nil {
		return contract.RunFile{}, err
	}
	if err := checkTools(in.Run, in.Pins, fixed.Model.Renderer); err != nil {
		return contract.RunFile{}, err
	}
	digest, err := contract.SpecDigest(*fixed)
	if err != nil {
		return contract.RunFile{}, err
	}
	run := in.Run
	file := contract.RunFile{
		Version:          cmp.Or(in.Version, contract.FormatVersion),
		Run:              contract.RunReference{Namespace: run.Namespace, Name: run.Name, UID: string(run.UID)},
		Attempt:          in.Attempt,
		SpecDigest:       digest,
		Fixed:            *fixed,
		Checkpoints:      checkpointsOf(run),
		Evaluation:       evaluation,
		Concurrency:      int(*run.Spec.Rollouts.Concurrency),
		RequireOptimizer: *run.Spec.FailurePolicy.RequireOptimizerState,
		KnownCheckpoints: knownCheckpoints(run.Status.Checkpoints),
		Capabilities:     capabilitiesOf(run.Status.Capabilities, *fixed),
		TokenizerSHA256:  run.Status.TokenizerSHA256,
		TemplateSHA256:   run.Status.TemplateSHA256,
		Contents:         contentsOf(run),
		ProjectID:        run.Spec.Tinker.ProjectID,
		LearnerAddress:   LearnerAddress(run),
	}
	takeLength(&file, run.Spec.Algorithm)
	addArtifacts(&file, run.Spec.Artifacts)
	if file.ResumeFrom, err = resumeFromOf(run); err != nil {
		return contract.RunFile{}, err
	}
	file.Tracking = trackingServices(run)
	if err := AddBudget(&file, run, in.Prices); err != nil {
		return contract.RunFile{}, unacceptable(problem.PriceUnknown, "%v", err)
	}
	return file, file.Validate()
}

func addArtifacts(file *contract.RunFile, artifacts *v1alpha1.Artifacts) {
	if artifacts == nil {
		return
	}
	file.ArtifactsDir, file.ArtifactsURL = ArtifactsDir, artifacts.URL
	switch artifacts.Episodes {
	case v1alpha1.EpisodesNone:
		file.NoEpisodes = true
	case v1alpha1.EpisodesAll:
		file.RecordedGroups = math.MaxInt32
	default:
		file.RecordedGroups = int64(*artifacts.GroupsPerStep)
	}
}

// resumeFromOf returns the UID of the run that a run continues; empty if there is none.
func resumeFromOf(run *v1alpha1.TrainingRun) (string, error) {
	switch from := run.Spec.ResumeFrom; {
	case from == nil:
		return "", nil
	case from.UID == string(run.UID):
		return "", unacceptable(problem.ResumeRefused, "resumeFrom.uid is the uid of this run itself")
	default:
		return from.UID, nil
	}
}

func fixedOf(in FileInput) (contract.Fixed, error) {
	spec := in.Run.Spec
	model, err := ModelOf(spec.Model, in.Run.CreationTimestamp.Time, in.Template)
	if err != nil {
		return contract.Fixed{}, err
	}
	fixed := contract.Fixed{
		Model:   model,
		BaseURL: cmp.Or(spec.Tinker.BaseURL, in.DefaultBaseURL),
	}
	for _, use := range spec.Environments {
		environment, err := trainingEnvironment(use, in.Pins)
		if err != nil {
			return contract.Fixed{}, err
		}
		fixed.Environments = append(fixed.Environments, environment)
	}
	sortByName(fixed.Environments)
	switch spec.Mode {
	case v1alpha1.ModeEvaluate:
	case v1alpha1.ModeSupervise:
		fixed.Algorithm, fixed.Supervised = supervisedAlgorithm(spec.Algorithm), supervisedOf(spec)
	default:
		fixed.Algorithm = algorithmOf(spec.Algorithm, fixed.Model.Name, fixed.Environments)
		if err := checkRoles(fixed.Algorithm, fixed.Environments); err != nil {
			return contract.Fixed{}, err
		}
		if err := checkScorers(fixed); err != nil {
			return contract.Fixed{}, err
		}
	}
	fixed.Algorithm = withoutLength(fixed.Algorithm)
	if spec.InitFrom != nil {
		fixed.InitFrom = &contract.InitFrom{
			Checkpoint:       in.InitFrom,
			RestoreOptimizer: spec.InitFrom.Optimizer == v1alpha1.OptimizerRestore,
		}
		if spec.InitFrom.Data == v1alpha1.DataContinue {
			name, err := rl.ParseCheckpointName(in.InitFrom[strings.LastIndexByte(in.InitFrom, '/')+1:])
			if err != nil {
				return contract.Fixed{}, unacceptable(problem.CursorUnknown, "%s", in.InitFrom)
			}
			fixed.InitFrom.Cursor = name.Cursor
		}
	}
	return fixed, nil
}

func checkpointsOf(run *v1alpha1.TrainingRun) contract.Checkpoints {
	c := run.Spec.Checkpoints
	return contract.Checkpoints{
		EverySteps:        *c.EverySteps,
		TTLSeconds:        *c.TTLSeconds,
		RollingEverySteps: *c.Rolling.EverySteps,
		RollingTTLSeconds: *c.Rolling.TTLSeconds,
		KeepLast:          int(ptr.Deref(c.KeepLast, 0)),
		KeepBestCount:     int(*c.KeepBest),
		KeepBestMetric:    bestMetricOf(run),
	}
}

func evaluationOf(run *v1alpha1.TrainingRun, pins Pins) (*contract.Evaluation, error) {
	spec := run.Spec.Evaluation
	if spec == nil {
		return nil, nil
	}
	evaluation := &contract.Evaluation{
		EverySteps:    *spec.EverySteps,
		Before:        *spec.Before,
		After:         *spec.After,
		SamplingShare: *spec.SamplingShare,
		HeldOut:       heldOutOf(spec.Supervised),
	}
	for _, use := range EvaluationUses(run) {
		environment, err := evaluationEnvironment(use, pins)
		if err != nil {
			return nil, err
		}
		evaluation.Environments = append(evaluation.Environments, environment)
	}
	sortByName(evaluation.Environments)
	return evaluation, nil
}

// capabilitiesOf returns the found capabilities if they belong to the endpoint and model that the run is fixed to.
func capabilitiesOf(found *v1alpha1.Capabilities, fixed contract.Fixed) *contract.Capabilities {
	if found == nil || found.BaseURL != fixed.BaseURL || found.Model != fixed.Model.Name {
		return nil
	}
	return status.Capabilities(found)
}

func knownCheckpoints(checkpoints []v1alpha1.Checkpoint) []string {
	var known []string
	for _, checkpoint := range checkpoints {
		if checkpoint.State != "" {
			known = append(known, checkpoint.State)
		}
	}
	return known
}

func sortByName(environments []contract.Environment) {
	slices.SortFunc(environments, func(a, b contract.Environment) int { return cmp.Compare(a.Name, b.Name) })
}
