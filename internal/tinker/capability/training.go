// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// trainingCheck checks the features that show in the weights after a step.
type trainingCheck struct {
	check    *check
	trainer  *trainer
	findings *findings
}

func newTrainingCheck(k *check) trainingCheck {
	return trainingCheck{check: k, trainer: k.trainer, findings: k.findings}
}

// trial is a step of a model of its own.
type trial struct {
	// fresh says that the trial starts from a new adapter, and first takes steps with the advantages in before.
	// Otherwise the trial loads the saved state, with the optimizer's state or without it.
	fresh     bool
	before    []float64
	optimizer bool
	// lora is the adapter; nil means the run's.
	lora *tinker.LoraConfig
	data []tinker.Datum
	loss tinker.Loss
	adam tinker.AdamParams
}

// outcome is the result of a trial: the log-probabilities after the step, or an error.
type outcome struct {
	logprobs []float64
	err      error
}

// checkTraining checks losses and steps. If the server's steps are invisible, it checks losses only. Checks that do not
// build on one another run concurrently, each with models of its own.
func (k *check) checkTraining(ctx context.Context) {
	t := newTrainingCheck(k)
	sequences := [][]func(context.Context) error{{k.checkLosses}, {t.repeats}}
	switch {
	case k.findings.needsNoCheckpoint() && !k.noLogprobs:
		sequences = [][]func(context.Context) error{{t.repeats}, {t.gradientSum}}
	case k.canCompareSteps():
		sequences = [][]func(context.Context) error{
			{k.checkLosses, t.lossSettings}, {t.repeats}, {t.optimizer, t.adamSettings}, {t.modules}, {t.snapshot},
			{t.gradientSum},
		}
	}
	if k.findings.needsNoCheckpoint() || !k.canCompareSteps() {
		k.endSnapshot()
	}
	var inFlight sync.WaitGroup
	for _, sequence := range sequences {
		inFlight.Go(func() {
			for _, part := range sequence {
				if err := part(ctx); err != nil {
					k.findings.stop(err)
					return
				}
			}
		})
	}
	inFlight.Wait()
}

// canCompareSteps reports whether the server's steps are visible.
func (k *check) canCompareSteps() bool { return !k.noLogprobs && k.motion() >= minMotion }

// try runs trials concurrently. Outcomes hold the errors of trials that the server rejects, or at which it fails
// three times; the returned error ends the check.
func (t trainingCheck) try(ctx context.Context, trials ...trial) ([]outcome, error) {
	outcomes := make([]outcome, len(trials))
	var inFlight sync.WaitGroup
	for i, trial := range trials {
		inFlight.Go(func() {
			outcomes[i].logprobs, outcomes[i].err = retryFor(ctx, func(ctx context.Context) ([]float64, error) {
				return t.tryOnce(ctx, trial)
			})
		})
	}
	inFlight.Wait()
	for _, o := range outcomes {
		if client.CategoryFrom(o.err) == tinker.CategoryUnauthorized || ctx.Err() != nil {
			return nil, fmt.Errorf("trying a step: %w", o.err)
		}
	}
	return outcomes, nil
}

func (t trainingCheck) tryOnce(ctx context.Context, trial trial) ([]float64, error) {
	lora := t.trainer.Lora
	if trial.lora != nil {
		lora = *trial.lora
	}
	model, err := t.trainer.open(ctx, lora, trial.fresh, trial.optimizer)
	if err != nil {
		return nil, err
	}
	defer t.trainer.unload(ctx, model)
	if err := t.trainer.steps(ctx, model, trial.before...); err != nil {
		return nil, err
	}
	if err := step(ctx, model, trial.data, trial.loss, trial.adam); err != nil {
		return nil, err
	}
	return t.trainer.measure(ctx, model)
}

// reverseStep returns the step that the first model took after it was saved.
func (t trainingCheck) reverseStep() trial {
	return trial{data: t.check.reverse(), loss: tinker.Loss{Name: t.trainer.loss}, adam: adamParams}
}

// optimizer compares the third step of a model that was loaded with its optimizer, and of one that was loaded without
// it, with the third step of the first model.
func (t trainingCheck) optimizer(ctx context.Context) error {
	if !t.findings.wants(OptimizerRestore) && !t.findings.wants(OptimizerReset) &&
		len(t.findings.wantedAdamSettings()) == 0 {
		return nil
	}
	with, without := t.reverseStep(), t.reverseStep()
	with.optimizer = true
	outcomes, err := t.try(ctx, with, without)
	if err != nil {
		return err
	}
	warm, cold := outcomes[0], outcomes[1]
	switch {
	case warm.err != nil:
		t.findings.recordTrialError(OptimizerRestore, warm.err)
	case !t.check.same(warm, t.check.thirdStep):
		t.findings.record(OptimizerRestore, Ignored, "the step after a load differs from the step that the saved model took")
	case t.hasMomentum():
		t.findings.record(OptimizerRestore, Supported, "")
	default:
		t.findings.record(OptimizerRestore, Ignored, "steps do not depend on earlier ones, so there is no state to restore")
	}
	switch {
	case cold.err != nil:
		t.findings.recordTrialError(OptimizerReset, cold.err)
	case t.check.same(cold, t.check.thirdStep):
		t.findings.record(OptimizerReset, Ignored, "a load without the optimizer's state restores it all the same")
	default:
		t.findings.record(OptimizerReset, Supported, "")
	}
	return nil
}

// hasMomentum reports whether the third step continued in the direction of the first two, against its own gradient.
// A step without momentum cannot.
func (t trainingCheck) hasMomentum() bool {
	along := 0.0
	for i := range t.check.saved {
		along += (t.check.saved[i] - t.trainer.initial[i]) * (t.check.thirdStep.logprobs[i] - t.check.saved[i])
	}
	return along > 0
}

// adamChanges change one setting each, so much that the third step differs.
var adamChanges = map[string]func(*tinker.AdamParams){
	"learning_rate":  func(p *tinker.AdamParams) { p.LearningRate *= 2 },
	"beta1":          func(p *tinker.AdamParams) { p.Beta1 = 0 },
	"beta2":          func(p *tinker.AdamParams) { p.Beta2 = 0.1 },
	"eps":            func(p *tinker.AdamParams) { p.Eps = 1e5 },
	weightDecay:      func(p *tinker.AdamParams) { p.WeightDecay = 5000 },
	"grad_clip_norm": func(p *tinker.AdamParams) { p.GradClipNorm = 1e-6 },
}

// weightDecay is the name of the setting that is checked when every other check has ended: some servers decay the
// weights of all models in the step of one.
const weightDecay = "weight_decay"

// adamSettings checks the wanted settings of optim_step except weight_decay. A setting has an effect if the third step
// with it differs from the one without it.
func (t trainingCheck) adamSettings(ctx context.Context) error {
	wanted := slices.DeleteFunc(t.findings.wantedAdamSettings(), func(name string) bool { return name == weightDecay })
	if len(wanted) == 0 {
		return nil
	}
	trials := []trial{t.usualStep()}
	for _, name := range wanted {
		trials = append(trials, t.changedStep(name))
	}
	outcomes, err := t.try(ctx, trials...)
	if err != nil {
		return err
	}
	for i, name := range wanted {
		t.compareAdam(name, outcomes[0], outcomes[i+1])
	}
	return nil
}

// checkWeightDecay takes the third step without weight_decay and then with it.
func (k *check) checkWeightDecay(ctx context.Context) {
	t := newTrainingCheck(k)
	if ctx.Err() != nil || !k.findings.wants(Adam(weightDecay)) || !k.canCompareSteps() {
		return
	}
	var outcomes [2]outcome
	for i, step := range []trial{t.usualStep(), t.changedStep(weightDecay)} {
		tried, err := t.try(ctx, step)
		if err != nil {
			k.findings.stop(err)
			return
		}
		outcomes[i] = tried[0]
	}
	t.compareAdam(weightDecay, outcomes[0], outcomes[1])
}

// usualStep returns the third step. Most settings need an optimizer with earlier steps: the optimizer of the saved
// state, or, if the server does not restore it, the optimizer of a new adapter that takes all three steps.
func (t trainingCheck) usualStep() trial {
	usual := t.reverseStep()
	if usual.optimizer = t.findings.support(OptimizerRestore) == Supported; !usual.optimizer {
		usual.fresh, usual.before = true, []float64{1, 1}
	}
	return usual
}

// changedStep returns the third step with a setting changed.
func (t trainingCheck) changedStep(name string) trial {
	changed := t.usualStep()
	adamChanges[name](&changed.adam)
	return changed
}

// compareAdam records the finding by the steps without and with a setting.
func (t trainingCheck) compareAdam(name string, without, with outcome) {
	t.compare(Adam(name), without, with, fmt.Sprintf("a step is the same with and without %s", name))
	if without.err == nil && !t.check.same(without, t.check.thirdStep) {
		t.findings.record(Adam(name), Unknown, "adapters of the same seed start with different weights")
	}
}

// compare records a setting as supported if it makes a difference. If the server rejects the check's own extreme
// value, that says nothing about other values.
func (t trainingCheck) compare(f Feature, without, with outcome, note string) {
	switch {
	case without.err != nil:
		t.findings.record(f, Unknown, without.err.Error())
	case with.err != nil:
		t.findings.record(f, Unknown, with.err.Error())
	case t.check.same(without, with):
		t.findings.record(f, Ignored, note)
	default:
		t.findings.record(f, Supported, "")
	}
}

// modules compares a step of an adapter on the run's matrices with one on all matrices. It finds nothing if adapters
// start with different weights each time.
func (t trainingCheck) modules(ctx context.Context) error {
	if !t.findings.wants(TrainModules) {
		return nil
	}
	all, part := t.trainer.Lora, t.trainer.Lora
	all.TrainAttn, all.TrainMLP, all.TrainUnembed = true, true, true
	if part == all {
		part.TrainMLP = false
	}
	step := func(lora tinker.LoraConfig) trial {
		return trial{fresh: true, lora: &lora, data: t.trainer.batch(1), loss: tinker.Loss{Name: t.trainer.loss},
			adam: adamParams}
	}
	outcomes, err := t.try(ctx, step(all), step(all), step(part))
	if err != nil {
		return err
	}
	t.compare(TrainModules, outcomes[0], outcomes[2], "a step is the same whatever matrices are trained")
	if outcomes[0].err == nil && outcomes[1].err == nil && !t.check.same(outcomes[0], outcomes[1]) {
		t.findings.record(TrainModules, Unknown, "adapters of the same seed start with different weights")
	}
	return nil
}

// lossSettings checks the settings that the value of the loss did not show: from the saved state one model steps
// with the usual setting and one with the other.
func (t trainingCheck) lossSettings(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(losses)) {
		if !t.findings.wantsLoss(name) || t.findings.support(Loss(name)) != Supported {
			continue
		}
		unknown := slices.DeleteFunc(slices.Clone(losses[name].settings), func(s lossSetting) bool {
			return t.findings.support(LossSetting(name, s.name)) != Unknown
		})
		if err := t.stepWith(ctx, name, unknown); err != nil {
			return err
		}
	}
	return nil
}

func (t trainingCheck) stepWith(ctx context.Context, name tinker.LossName, settings []lossSetting) error {
	if len(settings) == 0 {
		return nil
	}
	data := wire(name, clippedData(t.check.saved, losses[name].bySequence))
	step := func(config map[string]float64) trial {
		return trial{data: data, loss: tinker.Loss{Name: name, Config: config}, adam: adamParams}
	}
	trials := []trial{step(losses[name].config())}
	for _, s := range settings {
		config := losses[name].config()
		config[s.name] = s.other
		trials = append(trials, step(config))
	}
	outcomes, err := t.try(ctx, trials...)
	if err != nil {
		return err
	}
	for i, s := range settings {
		t.compare(LossSetting(name, s.name), outcomes[0], outcomes[i+1], "a step is the same with and without it")
	}
	return nil
}
