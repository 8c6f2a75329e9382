// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package admit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

func TestDefaultKeepsWhatIsGiven(t *testing.T) {
	run := &v1alpha1.TrainingRun{Spec: v1alpha1.TrainingRunSpec{Algorithm: &algorithm.Algorithm{
		Optimizer: algorithm.Optimizer{Beta1: new(0.0)}, Lag: 3}}}
	admit.Default(run)
	want := algorithm.Algorithm{
		Lag: 3, Substeps: 1, Grouping: algorithm.GroupingTrajectory,
		Advantage:      algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleNone},
		Loss:           algorithm.Loss{Name: algorithm.LossImportanceSampling},
		ConstantGroups: algorithm.KeepConstantGroups, OnDroppedGroup: algorithm.RefillDroppedGroups,
		Optimizer: algorithm.Optimizer{Schedule: algorithm.ScheduleConstant, Beta1: new(0.0), Beta2: new(0.95),
			Epsilon: 1e-8},
	}
	if diff := cmp.Diff(want, *run.Spec.Algorithm); diff != "" {
		t.Errorf("algorithm (-want +got):\n%s", diff)
	}
	env := &v1alpha1.RewardEnvironment{Spec: v1alpha1.RewardEnvironmentSpec{
		Interaction: &environment.Interaction{ToolUse: &environment.ToolUse{}}}}
	admit.Default(env)
	parsing := env.Spec.Interaction.ToolUse.ParseErrors
	if parsing.MaxConsecutive == nil || *parsing.MaxConsecutive != 2 || parsing.Train != environment.KeepParseErrors {
		t.Errorf("parseErrors = %+v, want 2 and Keep", parsing)
	}
}
