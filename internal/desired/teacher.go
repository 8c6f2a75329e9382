// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// checkTeacher checks that something teaches in an environment: rewards that can be compared, or a teacher that can
// read its conversations.
func checkTeacher(e contract.Environment) error {
	unrewarded := e.Definition.IsUnrewarded()
	switch {
	case unrewarded && e.Teacher == nil:
		return unacceptable(problem.RewardMissing, "environments[%s]", e.Name)
	case !unrewarded && min(e.GroupSize, e.MinMembers) < 2:
		return unacceptable(problem.GroupTooSmall, "environments[%s]: groupSize %d, minMembers %d", e.Name, e.GroupSize,
			e.MinMembers)
	case e.Teacher != nil && e.Teacher.SystemPrompt != "" && e.Definition.Agent() != nil:
		return unacceptable(problem.TeacherUnusable, "environments[%s].teacher.systemPrompt", e.Name)
	}
	return nil
}

// checkScorers checks that the base models that score sampled tokens have the tokenizer of the run's model. The learner
// checks checkpoints.
func checkScorers(fixed contract.Fixed) error {
	for _, s := range fixed.Scorers() {
		if s.Model == "" || models.SameTokenizer(fixed.Model.Name, s.Model) {
			continue
		}
		return unacceptable(problem.TokenizersDiffer, "%s.model is %s, and the model of the run is %s", s.Path, s.Model,
			fixed.Model.Name)
	}
	return nil
}
