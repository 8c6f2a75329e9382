// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// algorithmOf fills in the settings of an algorithm that depend on others: epochs become steps by the tasks of the
// environments, and roles inherit the algorithm's own settings.
func algorithmOf(spec *algorithm.Algorithm, model string, environments []contract.Environment) *algorithm.Algorithm {
	a := spec.DeepCopy()
	a.Steps, a.Epochs = stepsOf(spec, environments), 0
	fillClips(&a.Loss)
	if a.KL != nil && a.KL.Reference == nil {
		a.KL.Reference = &algorithm.Reference{Model: model}
	}
	for i := range a.Roles {
		role := &a.Roles[i]
		advantage, loss := a.AdvantageOf(string(role.Name)), a.LossOf(string(role.Name))
		role.Advantage = &algorithm.RoleAdvantage{
			Baseline: advantage.Baseline, Scale: advantage.Scale, DDoF: ptr.To(advantage.DDoF),
		}
		role.Loss = loss.DeepCopy()
		fillClips(role.Loss)
	}
	slices.SortFunc(a.Roles, func(a, b algorithm.Role) int { return cmp.Compare(a.Name, b.Name) })
	return a
}

// takeLength moves the number of steps out of the settings that decide the weights, unless the learning rate of a step
// depends on it. An attempt that keeps the settings of an earlier one has the number that the spec has now.
func takeLength(file *contract.RunFile, spec *algorithm.Algorithm) {
	fixed := file.Fixed.Algorithm
	if fixed == nil || fixed.Optimizer.Schedule.Falls() {
		return
	}
	file.Steps, file.Epochs = spec.Steps, spec.Epochs
	if file.Fixed.Supervised == nil {
		file.Steps, file.Epochs = stepsOf(spec, file.Fixed.Environments), 0
	}
}

// withoutLength returns settings whose digest does not depend on the number of steps, unless the learning rate does.
func withoutLength(a *algorithm.Algorithm) *algorithm.Algorithm {
	if a == nil || a.Optimizer.Schedule.Falls() {
		return a
	}
	a = a.DeepCopy()
	a.Steps, a.Epochs = 0, 0
	return a
}

// stepsOf returns the steps of a run that trains on environments.
func stepsOf(a *algorithm.Algorithm, environments []contract.Environment) int64 {
	if a.Epochs > 0 {
		return max(1, a.Epochs*tasksOf(environments)/int64(a.TasksPerStep))
	}
	return a.Steps
}

// fillClips fills in the bounds of the probability ratio, whose defaults depend on the loss.
func fillClips(loss *algorithm.Loss) {
	low, high := 0.8, 1.2
	if loss.Name == algorithm.LossCISPO {
		low, high = 0, 4
	}
	if loss.Name.Clips() {
		loss.ClipLow, loss.ClipHigh = ptr.To(ptr.Deref(loss.ClipLow, low)), ptr.To(ptr.Deref(loss.ClipHigh, high))
	}
}

// checkRoles checks that every role of an algorithm is one of an environment, and that there is something to compare.
func checkRoles(a *algorithm.Algorithm, environments []contract.Environment) error {
	known := map[string]bool{}
	for _, environment := range environments {
		roles := environment.Definition.Roles()
		if len(roles) == 0 && a.Grouping == algorithm.GroupingEpisode {
			return unacceptable(problem.GroupingUnusable, "%q", environment.Name)
		}
		for _, role := range roles {
			known[role] = true
		}
	}
	for _, role := range a.Roles {
		if known[string(role.Name)] {
			continue
		}
		have := "the environments of the run have no roles"
		if len(known) > 0 {
			have = "the environments of the run have the roles " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
		}
		return unacceptable(problem.RoleNotFound, "algorithm.roles names %q, and %s", role.Name, have)
	}
	return nil
}

func tasksOf(environments []contract.Environment) int64 {
	var tasks int64
	for _, environment := range environments {
		tasks += environment.Tasks()
	}
	return tasks
}
