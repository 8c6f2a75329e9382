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
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// algorithmOf fills the algorithm in; epochs become steps by the tasks of the environments.
func algorithmOf(a *v1alpha1.Algorithm, model string, environments []contract.Environment) contract.Algorithm {
	steps := ptr.Deref(a.Steps, 0)
	if a.Epochs != nil {
		tasks := tasksOf(environments)
		steps = max(1, *a.Epochs*tasks/int64(a.TasksPerStep))
	}
	algorithm := contract.Algorithm{
		TasksPerStep: int(a.TasksPerStep),
		Steps:        steps,
		Seed:         *a.Seed,
		Advantage: contract.Advantage{
			Baseline: contract.Baseline(a.Advantage.Baseline),
			Scale:    contract.Scale(a.Advantage.Scale),
			DDoF:     int(*a.Advantage.DDoF),
		},
		Loss:               lossOf(a.Loss),
		Substeps:           int(*a.Substeps),
		Lag:                int(*a.Lag),
		DropConstantGroups: a.ConstantGroups == v1alpha1.DropConstantGroups,
		Refill:             a.OnDroppedGroup == v1alpha1.RefillDroppedGroups,
		Optimizer:          optimizerOf(a.Optimizer),
		KL:                 klOf(a.KL, model),
	}
	if a.Grouping != v1alpha1.GroupingTrajectory {
		algorithm.Grouping = contract.Grouping(a.Grouping)
	}
	for _, role := range a.Roles {
		algorithm.Roles = append(algorithm.Roles, roleOf(role, algorithm))
	}
	slices.SortFunc(algorithm.Roles, func(a, b contract.Role) int { return strings.Compare(a.Name, b.Name) })
	return algorithm
}

// klOf fills a KL penalty in: its reference is the run's base model unless another is given.
func klOf(kl *v1alpha1.KL, model string) *contract.KL {
	if kl == nil {
		return nil
	}
	filled := &contract.KL{Coefficient: kl.Coefficient, Discount: ptr.Deref(kl.Discount, 0),
		Reference: contract.Reference{Model: model}}
	if r := kl.Reference; r != nil {
		filled.Reference = contract.Reference{Model: r.Model, Checkpoint: r.Checkpoint}
	}
	return filled
}

// roleOf fills a role in: what it does not give is the algorithm's.
func roleOf(r v1alpha1.AlgorithmRole, algorithm contract.Algorithm) contract.Role {
	role := contract.Role{Name: string(r.Name), Advantage: algorithm.Advantage, Loss: algorithm.Loss}
	if a := r.Advantage; a != nil {
		role.Advantage.Baseline = cmp.Or(contract.Baseline(a.Baseline), role.Advantage.Baseline)
		role.Advantage.Scale = cmp.Or(contract.Scale(a.Scale), role.Advantage.Scale)
		role.Advantage.DDoF = int(ptr.Deref(a.DDoF, int32(role.Advantage.DDoF)))
	}
	if r.Loss != nil {
		role.Loss = lossOf(*r.Loss)
	}
	return role
}

// checkRoles checks that every role of an algorithm is one of an environment, and that there is something to compare.
func checkRoles(a contract.Algorithm, environments []contract.Environment) error {
	known := map[string]bool{}
	for _, environment := range environments {
		roles := environment.Definition.Roles()
		if len(roles) == 0 && a.Grouping == contract.GroupingEpisode {
			return unacceptable(v1alpha1.ReasonRoleNotFound,
				"algorithm.grouping Episode compares the trajectories of one episode, "+
					"and an episode of environment %q has only one: set it to Trajectory or Step", environment.Name)
		}
		for _, role := range roles {
			known[role] = true
		}
	}
	for _, role := range a.Roles {
		if known[role.Name] {
			continue
		}
		have := "the environments of the run have no roles"
		if len(known) > 0 {
			have = "the environments of the run have the roles " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
		}
		return unacceptable(v1alpha1.ReasonRoleNotFound,
			"algorithm.roles names %q, and %s: correct the name or remove the entry",
			role.Name, have)
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

// lossOf spells the settings as the Tinker API does, all of them, since servers differ in their defaults.
func lossOf(l v1alpha1.Loss) contract.Loss {
	clip := func(low, high float64) map[string]float64 {
		return map[string]float64{
			contract.SettingClipLow:  ptr.Deref(l.ClipLow, low),
			contract.SettingClipHigh: ptr.Deref(l.ClipHigh, high),
		}
	}
	loss := contract.Loss{Name: contract.LossName(l.Name)}
	switch l.Name {
	case v1alpha1.LossPPO:
		loss.Config = clip(0.8, 1.2)
	case v1alpha1.LossCISPO:
		loss.Config = clip(0, 4)
	}
	return loss
}

func optimizerOf(o v1alpha1.Optimizer) contract.Optimizer {
	return contract.Optimizer{
		LearningRate: o.LearningRate,
		Schedule:     contract.Schedule(o.Schedule),
		WarmupSteps:  *o.WarmupSteps,
		Beta1:        *o.Beta1,
		Beta2:        *o.Beta2,
		Epsilon:      *o.Epsilon,
		WeightDecay:  *o.WeightDecay,
		GradClipNorm: *o.GradClipNorm,
	}
}
