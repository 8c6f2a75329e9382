// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// setting is a setting of a loss: a usual value, and another that the probe's data tell from it.
type setting struct {
	name         string
	usual, other float64
}

// definition is a loss as the API's reference publishes it.
type definition struct {
	settings []setting
	// value of one token, of the log-probability now and when it was sampled.
	value func(logprob, sampled, advantage float64, config map[string]float64) float64
}

const (
	crossEntropy       = "cross_entropy"
	importanceSampling = "importance_sampling"
	clipLow            = "clip_low_threshold"
	clipHigh           = "clip_high_threshold"
	beta               = "beta"
)

// bounds lie between the ratios of the data, 1/2 and 2; the others lie beyond them.
var bounds = []setting{{clipLow, 0.8, 0.1}, {clipHigh, 1.2, 10}}

var losses = map[string]definition{
	crossEntropy: {value: func(logprob, _, weight float64, _ map[string]float64) float64 { return -weight * logprob }},
	importanceSampling: {value: func(logprob, sampled, advantage float64, _ map[string]float64) float64 {
		return -math.Exp(logprob-sampled) * advantage
	}},
	"ppo": {settings: bounds, value: func(logprob, sampled, advantage float64, config map[string]float64) float64 {
		ratio := math.Exp(logprob - sampled)
		return -min(ratio*advantage, clip(ratio, config)*advantage)
	}},
	"cispo": {settings: bounds, value: func(logprob, sampled, advantage float64, config map[string]float64) float64 {
		return -clip(math.Exp(logprob-sampled), config) * logprob * advantage
	}},
	"dro": {settings: []setting{{beta, 0.05, 4}}, value: func(logprob, sampled, advantage float64, config map[string]float64) float64 {
		return -(logprob*advantage - config[beta]*(logprob-sampled)*(logprob-sampled)/2)
	}},
}

func clip(ratio float64, config map[string]float64) float64 {
	return min(max(ratio, config[clipLow]), config[clipHigh])
}

// config gives the loss with the usual settings.
func (d definition) config() map[string]float64 {
	if len(d.settings) == 0 {
		return nil
	}
	config := map[string]float64{}
	for _, s := range d.settings {
		config[s.name] = s.usual
	}
	return config
}

func (d definition) total(logprobs, sampled, advantages []float64, config map[string]float64) float64 {
	sum := 0.0
	for i, logprob := range logprobs {
		sum += d.value(logprob, sampled[i], advantages[i], config)
	}
	return sum
}

// examine finds out about the losses that are asked about, by forward passes at the saved state.
func (l *lab) examine(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(losses)) {
		if !l.wantsLoss(name) {
			continue
		}
		r := &reader{lab: l}
		if err := r.examine(ctx, name, losses[name]); err != nil {
			return err
		}
	}
	return nil
}

// reader makes forward passes with a model of its own, which is at the saved state, and takes another one after
// an error: one that was refused something is of no use any more.
type reader struct {
	*lab
	model *client.Model
}

// examine compares the value of a loss with its formula, and for each setting with the value under another.
func (r *reader) examine(ctx context.Context, name string, d definition) error {
	data, sampled, advantages := r.contrast(name)
	usual, err := r.read(ctx, data, tinker.Loss{Name: name, Config: d.config()})
	if err != nil {
		r.concludeTrial(Loss(name), err)
		for _, s := range d.settings {
			r.concludeTrial(LossSetting(name, s.name), err)
		}
		return r.ended(ctx, err)
	}
	r.find(Loss(name), Supported, "")
	if r.wants(LossSum) {
		twice, err := r.read(ctx, slices.Repeat(data, 2), tinker.Loss{Name: name, Config: d.config()})
		if err != nil {
			return r.ended(ctx, err)
		}
		r.findAdded(usual, twice)
	}
	if !usual.known || r.blind {
		return nil // steps may still tell
	}
	r.findFormula(name, usual.sum, d.total(r.saved, sampled, advantages, d.config()))
	for _, s := range d.settings {
		config := d.config()
		config[s.name] = s.other
		changed, err := r.read(ctx, data, tinker.Loss{Name: name, Config: config})
		if err != nil {
			r.concludeTrial(LossSetting(name, s.name), err)
			if err := r.ended(ctx, err); err != nil {
				return err
			}
			continue
		}
		r.findSetting(name, s, usual.sum, changed.sum)
	}
	return nil
}

// ended gives the error if it ends the probe.
func (l *lab) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil || client.CategoryFrom(err) == tinker.CategoryUnauthorized {
		return fmt.Errorf("trying a loss: %w", err)
	}
	return nil
}

// read gives the value of a loss, trying again what may pass.
func (r *reader) read(ctx context.Context, data []tinker.Datum, loss tinker.Loss) (value, error) {
	var v value
	err := r.persist(ctx, func(ctx context.Context) error {
		var err error
		if r.model == nil {
			if r.model, err = r.load(ctx, r.Lora, false); err != nil {
				return err
			}
		}
		if v, err = r.value(ctx, data, loss); err != nil {
			r.model = nil
		}
		return err
	})
	return v, err
}

// contrast is a datum whose tokens have the ratios 2 and 1/2 by turns, of which one is praised and the
// other blamed, so that each bound clips something.
func (l *lab) contrast(loss string) (data []tinker.Datum, sampled, advantages []float64) {
	for i, logprob := range l.saved {
		ratio, advantage := 2.0, 1.0
		if i%2 == 1 {
			ratio, advantage = 0.5, -0.5
		}
		sampled, advantages = append(sampled, logprob-math.Log(ratio)), append(advantages, advantage)
	}
	return []tinker.Datum{datum(loss, sampled, advantages)}, sampled, advantages
}

// relative says how far two values are apart, against the greater.
func relative(a, b float64) float64 {
	return math.Abs(a-b) / max(math.Abs(a), math.Abs(b), 1e-9)
}

// apart is from where on two values of a loss are not the same number computed twice.
const apart = 0.05

func (l *lab) findSetting(name string, s setting, usual, changed float64) {
	if relative(usual, changed) > apart {
		l.find(LossSetting(name, s.name), Supported, "")
		return
	}
	l.find(LossSetting(name, s.name), Ignored, fmt.Sprintf("the loss is %.4g with %g and with %g", usual, s.usual, s.other))
}

func (l *lab) findFormula(name string, got, want float64) {
	if relative(got, want) <= apart {
		l.find(LossFormula(name), Supported, "")
		return
	}
	l.find(LossFormula(name), Unsupported, fmt.Sprintf("the loss is %.4g, by the published formula %.4g", got, want))
}

func (l *lab) findAdded(once, twice value) {
	switch {
	case !once.known || !twice.known:
	case relative(2*once.sum, twice.sum) <= apart:
		l.find(LossSum, Supported, "")
	default:
		l.find(LossSum, Unsupported, fmt.Sprintf("the loss of one datum is %.4g, of the same twice %.4g", once.sum, twice.sum))
	}
}

// value is the value of a loss, where the server tells it.
type value struct {
	sum   float64
	known bool
}

const (
	metricLoss = "loss:sum"
	outputLoss = "elementwise_loss"
)

// value gives the loss of a forward pass: its metric, or the sum of the tokens'.
func (r *reader) value(ctx context.Context, data []tinker.Datum, loss tinker.Loss) (value, error) {
	future, err := r.model.Forward(ctx, data, loss)
	result, err := await(ctx, future, err)
	if err != nil {
		return value{}, err
	}
	if sum, ok := result.Metrics[metricLoss]; ok {
		return value{sum, !math.IsNaN(sum) && !math.IsInf(sum, 0)}, nil
	}
	total := value{}
	for _, output := range result.LossFnOutputs {
		tensor, err := output[outputLoss].Dense()
		if err != nil || len(tensor.Float) == 0 {
			return value{}, nil
		}
		for _, v := range tensor.Float {
			total.sum += float64(v)
		}
		total.known = true
	}
	return total, nil
}

// wantsLoss says whether anything about a loss is asked.
func (l *lab) wantsLoss(name string) bool {
	if l.wants(Loss(name)) || l.wants(LossFormula(name)) {
		return true
	}
	return slices.ContainsFunc(losses[name].settings, func(s setting) bool { return l.wants(LossSetting(name, s.name)) })
}
