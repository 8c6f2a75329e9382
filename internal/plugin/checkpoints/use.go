// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"cmp"
	"context"
	"fmt"

	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// users are the objects of a namespace that may need a checkpoint.
type users struct {
	runs         []v1alpha1.TrainingRun
	environments []v1alpha1.RewardEnvironment
}

// usersOf returns the users in the namespace of a run. It returns none if the command does not guard checkpoints.
func (e *editor) usersOf(ctx context.Context, connection *cli.Connection, run *v1alpha1.TrainingRun) (users, error) {
	if !e.guards || e.force {
		return users{}, nil
	}
	runs, err := connection.Runs(ctx)
	if err != nil {
		return users{}, err
	}
	var environments v1alpha1.RewardEnvironmentList
	if err := connection.List(ctx, &environments, kube.InNamespace(run.Namespace)); err != nil {
		return users{}, fmt.Errorf("listing the environments whose judges may need the checkpoint: %w", err)
	}
	return users{runs: runs, environments: environments.Items}, nil
}

// guard refuses checkpoints that are in use.
func (e *editor) guard(run *v1alpha1.TrainingRun, chosen []v1alpha1.Checkpoint, by users) error {
	if !e.guards || e.force {
		return nil
	}
	for _, c := range chosen {
		if use := usedBy(run, c, by); use != "" {
			return fmt.Errorf("the checkpoint of step %d is in use: %s: choose another one with --step, or delete it all "+
				"the same with --force", c.Step, use)
		}
	}
	return nil
}

// usedBy names the user of a run's checkpoint; it is empty if there is none.
func usedBy(run *v1alpha1.TrainingRun, c v1alpha1.Checkpoint, by users) string {
	if latest := status.Latest(&run.Status); latest != nil && (latest.Step == c.Step || isOf(*latest, c.State)) {
		if run.Status.State == v1alpha1.StateSucceeded {
			return fmt.Sprintf("it is the result of run %q", run.Name)
		}
		return fmt.Sprintf("run %q would resume from it", run.Name)
	}
	if best := status.Best(&run.Status); best != nil && best.Step == c.Step {
		return fmt.Sprintf("it is the best one of run %q by spec.checkpoints.keepBest", run.Name)
	}
	if a := run.Spec.Algorithm; a != nil && run.Status.CompletionTime == nil && inWindow(run, c, int64(a.Lag)) {
		return fmt.Sprintf("run %q samples with it, or would after a restart (spec.algorithm.lag)", run.Name)
	}
	return cmp.Or(usedByOthers(run, c, by.runs), judgedBy(c, by.environments))
}

// usedByOthers says which run of a list needs a checkpoint of a run.
func usedByOthers(run *v1alpha1.TrainingRun, c v1alpha1.Checkpoint, runs []v1alpha1.TrainingRun) string {
	for _, other := range runs {
		if use := referredBy(&other, c); use != "" {
			return use
		}
		if latest := status.Latest(&other.Status); latest != nil && isOf(*latest, c.State) {
			return fmt.Sprintf("run %q would resume from it", other.Name)
		}
		if from := other.Spec.InitFrom; from != nil && other.Status.LatestCheckpoint == "" && begins(from, run, c) {
			return fmt.Sprintf("run %q begins with it (spec.initFrom)", other.Name)
		}
	}
	return ""
}

// inWindow reports whether a run may sample with a checkpoint that is not its newest.
func inWindow(run *v1alpha1.TrainingRun, c v1alpha1.Checkpoint, lag int64) bool {
	latest := status.Latest(&run.Status)
	return lag > 0 && latest != nil && c.Step < latest.Step && c.Step >= latest.Step-lag
}

// referredBy names the field by which a run that is not over samples with a checkpoint of any run.
func referredBy(run *v1alpha1.TrainingRun, c v1alpha1.Checkpoint) string {
	if run.Status.CompletionTime != nil {
		return ""
	}
	if a := run.Spec.Algorithm; a != nil && a.KL != nil && a.KL.Reference != nil && isOf(c, a.KL.Reference.Checkpoint) {
		return fmt.Sprintf("run %q compares its policy with it (spec.algorithm.kl.reference)", run.Name)
	}
	for _, env := range run.Spec.Environments {
		if env.Teacher != nil && isOf(c, env.Teacher.Checkpoint) {
			return fmt.Sprintf("run %q learns from it (spec.environments[%s].teacher)", run.Name, env.Name)
		}
	}
	return ""
}

// judgedBy says which environment has a judge, or a frozen model of an agent, that samples with a checkpoint.
func judgedBy(c v1alpha1.Checkpoint, environments []v1alpha1.RewardEnvironment) string {
	for _, env := range environments {
		if model := frozenOf(c, env.Spec.Interaction); model != "" {
			return fmt.Sprintf("the agent of RewardEnvironment %q asks it as frozen/%s", env.Name, model)
		}
		if env.Spec.Reward == nil {
			continue
		}
		rules := []environment.RewardRule{env.Spec.Reward.RewardRule}
		for _, weighted := range env.Spec.Reward.Weighted {
			rules = append(rules, weighted.RewardRule)
		}
		for _, rule := range rules {
			if rule.Rubric != nil && rule.Rubric.Judge.Tinker != nil && isOf(c, rule.Rubric.Judge.Tinker.Checkpoint) {
				return fmt.Sprintf("the judge of RewardEnvironment %q samples with it", env.Name)
			}
		}
	}
	return ""
}

// frozenOf returns the name of the frozen model that samples with a checkpoint; empty if there is none.
func frozenOf(c v1alpha1.Checkpoint, interaction *environment.Interaction) string {
	if interaction == nil || interaction.Agent == nil {
		return ""
	}
	for _, model := range interaction.Agent.Frozen {
		if isOf(c, model.Checkpoint) {
			return model.Name
		}
	}
	return ""
}

// isOf reports whether a path is a path of a checkpoint.
func isOf(c v1alpha1.Checkpoint, path string) bool {
	return path != "" && (path == c.State || path == c.Sampler)
}

// begins reports whether a run that has saved nothing yet begins with a checkpoint.
func begins(from *v1alpha1.InitFrom, run *v1alpha1.TrainingRun, c v1alpha1.Checkpoint) bool {
	if from.RunRef != nil {
		return from.RunRef.Name == run.Name && from.RunRef.Step != nil && *from.RunRef.Step == c.Step
	}
	return isOf(c, from.Checkpoint)
}
