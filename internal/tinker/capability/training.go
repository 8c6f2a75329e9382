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

// trial is a step of a model of its own, from the saved state.
type trial struct {
	// optimizer loads the state with the optimizer's.
	optimizer bool
	// fresh begins with a new adapter instead, and takes steps with these advantages first.
	fresh  bool
	before []float64
	// lora is the adapter; the run's own without.
	lora *tinker.LoraConfig
	data []tinker.Datum
	loss tinker.Loss
	adam tinker.AdamParams
}

// try carries trials out beside one another. What the server refuses, or fails at thrice, is in the
// outcomes; the error ends the probe.
func (l *lab) try(ctx context.Context, trials ...trial) ([]outcome, error) {
	outcomes := make([]outcome, len(trials))
	var under sync.WaitGroup
	for i, t := range trials {
		under.Go(func() {
			outcomes[i].err = l.persist(ctx, func(ctx context.Context) error {
				var err error
				outcomes[i].logprobs, err = l.tryOnce(ctx, t)
				return err
			})
		})
	}
	under.Wait()
	for _, o := range outcomes {
		if client.CategoryFrom(o.err) == tinker.CategoryUnauthorized || ctx.Err() != nil {
			return nil, fmt.Errorf("trying a step: %w", o.err)
		}
	}
	return outcomes, nil
}

func (l *lab) tryOnce(ctx context.Context, t trial) ([]float64, error) {
	lora := l.Lora
	if t.lora != nil {
		lora = *t.lora
	}
	open := l.create
	if !t.fresh {
		open = func(ctx context.Context, lora tinker.LoraConfig) (*client.Model, error) {
			return l.load(ctx, lora, t.optimizer)
		}
	}
	model, err := open(ctx, lora)
	if err != nil {
		return nil, err
	}
	if err := l.steps(ctx, model, t.before...); err != nil {
		return nil, err
	}
	if err := l.step(ctx, model, t.data, t.loss, t.adam); err != nil {
		return nil, err
	}
	return l.measure(ctx, model)
}

// pulling is the step that the first model took after it was saved.
func (l *lab) pulling() trial {
	return trial{data: l.lesson(pullBack), loss: tinker.Loss{Name: l.loss}, adam: stepSize}
}

// vital finds out about what decides the weights. Where no step can be seen, nothing is known of steps.
func (l *lab) vital(ctx context.Context) {
	parts := []func(context.Context) error{l.examine}
	if !l.blind && l.motion() >= visible {
		parts = append(parts, l.optimizer, l.settings, l.modules, l.settingsByGradient)
	}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			l.stop(err)
			return
		}
	}
}

// optimizer compares the third step of a model that was loaded with its optimizer, and of one that was
// loaded without, with that of the first model.
func (l *lab) optimizer(ctx context.Context) error {
	if !l.wants(OptimizerRestore) && !l.wants(OptimizerReset) && len(l.askedOfAdam()) == 0 {
		return nil
	}
	with, without := l.pulling(), l.pulling()
	with.optimizer = true
	outcomes, err := l.try(ctx, with, without)
	if err != nil {
		return err
	}
	warm, cold := outcomes[0], outcomes[1]
	switch {
	case warm.err != nil:
		l.concludeTrial(OptimizerRestore, warm.err)
	case !l.same(warm, l.third):
		l.find(OptimizerRestore, Ignored, "the step after a load is not the one that the saved model took")
	case l.carriedOn():
		l.find(OptimizerRestore, Supported, "")
	default:
		l.find(OptimizerRestore, Ignored, "steps have no memory of those before, so that there is nothing to restore")
	}
	switch {
	case cold.err != nil:
		l.concludeTrial(OptimizerReset, cold.err)
	case l.same(cold, l.third):
		l.find(OptimizerReset, Ignored, "a load without the optimizer's state goes on with it all the same")
	default:
		l.find(OptimizerReset, Supported, "")
	}
	return nil
}

// carriedOn says that the third step went on in the direction of the first two, against its own gradient:
// momentum does that, and a step without memory cannot.
func (l *lab) carriedOn() bool {
	along := 0.0
	for i := range l.saved {
		along += (l.saved[i] - l.base[i]) * (l.third.logprobs[i] - l.saved[i])
	}
	return along > 0
}

// adamChanges change one setting each so much that the third step is another.
var adamChanges = map[string]func(*tinker.AdamParams){
	"learning_rate":  func(p *tinker.AdamParams) { p.LearningRate *= 2 },
	"beta1":          func(p *tinker.AdamParams) { p.Beta1 = 0 },
	"beta2":          func(p *tinker.AdamParams) { p.Beta2 = 0.1 },
	"eps":            func(p *tinker.AdamParams) { p.Eps = 1e5 },
	"weight_decay":   func(p *tinker.AdamParams) { p.WeightDecay = 5000 },
	"grad_clip_norm": func(p *tinker.AdamParams) { p.GradClipNorm = 1e-6 },
}

func (l *lab) askedOfAdam() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(adamChanges)), func(name string) bool { return !l.wants(Adam(name)) })
}

// settings looks at those of optim_step that are asked about. A setting has an effect if the third step with
// it is not the one without it. Most need an optimizer with a past: that of the saved state, or, where it is
// not restored, that of a new adapter which takes all three steps.
func (l *lab) settings(ctx context.Context) error {
	asked := l.askedOfAdam()
	if len(asked) == 0 {
		return nil
	}
	usual := l.pulling()
	if usual.optimizer = l.known(OptimizerRestore) == Supported; !usual.optimizer {
		usual.fresh, usual.before = true, []float64{1, 1}
	}
	trials := []trial{usual}
	for _, name := range asked {
		changed := usual
		adamChanges[name](&changed.adam)
		trials = append(trials, changed)
	}
	outcomes, err := l.try(ctx, trials...)
	if err != nil {
		return err
	}
	for i, name := range asked {
		l.compare(Adam(name), outcomes[0], outcomes[i+1], fmt.Sprintf("a step is the same with %s and without", name))
		if outcomes[0].err == nil && !l.same(outcomes[0], l.third) {
			l.find(Adam(name), Unknown, "adapters of one seed begin differently")
		}
	}
	return nil
}

// compare files a setting as supported if it makes a difference. That the server refuses the probe's own
// extreme value says nothing about others.
func (l *lab) compare(f Feature, without, with outcome, note string) {
	switch {
	case without.err != nil:
		l.find(f, Unknown, without.err.Error())
	case with.err != nil:
		l.find(f, Unknown, with.err.Error())
	case l.same(without, with):
		l.find(f, Ignored, note)
	default:
		l.find(f, Supported, "")
	}
}

// modules compares a step of an adapter on the run's matrices with one on all. Adapters that begin with
// other numbers each time tell nothing.
func (l *lab) modules(ctx context.Context) error {
	if !l.wants(TrainModules) {
		return nil
	}
	all, part := l.Lora, l.Lora
	all.TrainAttn, all.TrainMLP, all.TrainUnembed = true, true, true
	if part == all {
		part.TrainMLP = false
	}
	step := func(lora tinker.LoraConfig) trial {
		return trial{fresh: true, lora: &lora, data: l.lesson(1), loss: tinker.Loss{Name: l.loss}, adam: stepSize}
	}
	outcomes, err := l.try(ctx, step(all), step(all), step(part))
	if err != nil {
		return err
	}
	l.compare(TrainModules, outcomes[0], outcomes[2], "a step is the same whatever matrices are trained")
	if outcomes[0].err == nil && outcomes[1].err == nil && !l.same(outcomes[0], outcomes[1]) {
		l.find(TrainModules, Unknown, "adapters of one seed begin differently")
	}
	return nil
}

// settingsByGradient looks at settings of which the value of the loss did not tell: from the saved state one
// model steps with the usual setting and one with the other.
func (l *lab) settingsByGradient(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(losses)) {
		if !l.wantsLoss(name) || l.known(Loss(name)) != Supported {
			continue
		}
		unseen := slices.DeleteFunc(slices.Clone(losses[name].settings), func(s setting) bool {
			return l.known(LossSetting(name, s.name)) != Unknown
		})
		if err := l.stepWith(ctx, name, unseen); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) stepWith(ctx context.Context, name string, settings []setting) error {
	if len(settings) == 0 {
		return nil
	}
	data, _, _ := l.contrast(name)
	step := func(config map[string]float64) trial {
		return trial{data: data, loss: tinker.Loss{Name: name, Config: config}, adam: stepSize}
	}
	trials := []trial{step(losses[name].config())}
	for _, s := range settings {
		config := losses[name].config()
		config[s.name] = s.other
		trials = append(trials, step(config))
	}
	outcomes, err := l.try(ctx, trials...)
	if err != nil {
		return err
	}
	for i, s := range settings {
		l.compare(LossSetting(name, s.name), outcomes[0], outcomes[i+1], "a step is the same with it and without")
	}
	return nil
}
