// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

// Default sets every field of the spec that has a default and is not given, as admission does by the markers on
// the types. An object that was stored before a default was introduced lacks it, so the manager calls Default
// on each object that it reads. Fields that are inherited from another field have no default here.
func (r *TrainingRun) Default() {
	r.Spec.Model.setDefaults()
	if r.Spec.Algorithm != nil {
		setAlgorithmDefaults(r.Spec.Algorithm)
	}
	setDefaultText(&r.Spec.Mode, ModeTrain)
	r.Spec.Checkpoints.setDefaults()
	if e := r.Spec.Evaluation; e != nil {
		setDefault(&e.EverySteps, 20)
		setDefault(&e.Before, true)
		setDefault(&e.After, true)
		setDefault(&e.SamplingShare, DefaultSamplingShare)
	}
	setDefault(&r.Spec.Rollouts.Workers, 2)
	setDefault(&r.Spec.Rollouts.Concurrency, 256)
	r.Spec.FailurePolicy.setDefaults()
	if t := r.Spec.Tracking; t != nil && t.WandB != nil {
		setDefaultText(&t.WandB.BaseURL, "https://api.wandb.ai")
	}
	if a := r.Spec.Artifacts; a != nil {
		setDefault(&a.TranscriptGroups, DefaultTranscriptGroups)
	}
	setDefault(&r.Spec.Suspend, false)
	setDefault(&r.Spec.RetryGeneration, 0)
	setDefault(&r.Spec.StalledAfterSeconds, 120)
}

// Default sets every field of the spec that has a default and is not given, as TrainingRun's method does.
func (e *RewardEnvironment) Default() {
	if d := e.Spec.Dataset; d != nil && d.Arithmetic != nil {
		setDefault(&d.Arithmetic.MaxOperand, 99)
	}
	if d := e.Spec.Dataset; d != nil && d.Countdown != nil {
		setDefault(&d.Countdown.MinNumbers, 3)
		setDefault(&d.Countdown.MaxNumbers, 4)
		setDefault(&d.Countdown.MaxNumber, 99)
		setDefault(&d.Countdown.Tasks, 10000)
	}
	if o := e.Spec.ORS; o != nil {
		setDefaultText(&o.SecretDelivery, environment.DeliverHeader)
		setDefault(&o.Timeouts.CreateSeconds, 120)
		setDefault(&o.Timeouts.CallSeconds, 300)
		if o.Server != nil {
			setDefault(&o.Server.Port, 8080)
		}
	}
	if x := e.Spec.Execution; x != nil {
		setDefaultText(&x.Placement, environment.PlacementWorker)
	}
	if i := e.Spec.Interaction; i != nil && i.ToolUse != nil {
		setDefault(&i.ToolUse.ParseErrors.MaxConsecutive, 2)
		setDefaultText(&i.ToolUse.ParseErrors.Train, environment.KeepParseErrors)
	}
	if i := e.Spec.Interaction; i != nil && i.SolverJudge != nil {
		setDefault(&i.SolverJudge.Solvers, 2)
	}
}

func (m *Model) setDefaults() {
	setDefault(&m.LoraRank, 32)
	if len(m.TrainModules) == 0 {
		m.TrainModules = []TrainModule{TrainAttention, TrainMLP, TrainUnembed}
	}
	setDefault(&m.Seed, 0)
}

func setAlgorithmDefaults(a *algorithm.Algorithm) {
	a.Advantage.Baseline = cmp.Or(a.Advantage.Baseline, algorithm.BaselineGroupMean)
	a.Advantage.Scale = cmp.Or(a.Advantage.Scale, algorithm.ScaleNone)
	a.Loss.Name = cmp.Or(a.Loss.Name, algorithm.LossImportanceSampling)
	a.Grouping = cmp.Or(a.Grouping, algorithm.GroupingTrajectory)
	a.Substeps = cmp.Or(a.Substeps, 1)
	a.ConstantGroups = cmp.Or(a.ConstantGroups, algorithm.KeepConstantGroups)
	a.OnDroppedGroup = cmp.Or(a.OnDroppedGroup, algorithm.RefillDroppedGroups)
	a.Optimizer.Schedule = cmp.Or(a.Optimizer.Schedule, algorithm.ScheduleConstant)
	setDefault(&a.Optimizer.Beta1, 0.9)
	setDefault(&a.Optimizer.Beta2, 0.95)
	a.Optimizer.Epsilon = cmp.Or(a.Optimizer.Epsilon, 1e-8)
}

func (c *Checkpoints) setDefaults() {
	setDefault(&c.EverySteps, 20)
	setDefault(&c.TTLSeconds, 604800)
	setDefault(&c.Rolling.EverySteps, 1)
	setDefault(&c.Rolling.TTLSeconds, 86400)
	setDefault(&c.KeepBest, 1)
	setDefaultText(&c.BestMetric, "test/pass@1")
}

func (p *FailurePolicy) setDefaults() {
	setDefault(&p.MaxRestarts, 5)
	setDefault(&p.RequireOptimizerState, true)
	setDefault(&p.StartDeadlineSeconds, 900)
	setDefault(&p.ProgressDeadlineSeconds, 3600)
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func setDefaultText[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}
