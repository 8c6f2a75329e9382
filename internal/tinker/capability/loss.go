// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// lossSetting is a setting of a loss: the usual value, and another that has a visible effect on the check's data.
type lossSetting struct {
	name         string
	usual, other float64
}

// definition is a loss as the reference of the API defines it.
type definition struct {
	settings []lossSetting
	// value returns the loss of one token, given its log-probability now and when it was sampled.
	value func(logprob, sampled, advantage float64, config map[string]float64) float64
}

const (
	clipLow  = "clip_low_threshold"
	clipHigh = "clip_high_threshold"
	beta     = "beta"
)

// bounds have usual values between the ratios of the data, 1/2 and 2, and other values beyond them.
var bounds = []lossSetting{{clipLow, 0.8, 0.1}, {clipHigh, 1.2, 10}}

var losses = map[tinker.LossName]definition{
	tinker.LossCrossEntropy: {value: func(logprob, _, weight float64,
		_ map[string]float64) float64 {
		return -weight * logprob
	}},
	tinker.LossImportanceSampling: {value: func(logprob, sampled, advantage float64, _ map[string]float64) float64 {
		return -math.Exp(logprob-sampled) * advantage
	}},
	tinker.LossPPO: {settings: bounds, value: func(logprob, sampled, advantage float64,
		config map[string]float64) float64 {
		ratio := math.Exp(logprob - sampled)
		return -min(ratio*advantage, clip(ratio, config)*advantage)
	}},
	tinker.LossCISPO: {settings: bounds, value: func(logprob, sampled, advantage float64,
		config map[string]float64) float64 {
		return -clip(math.Exp(logprob-sampled), config) * logprob * advantage
	}},
	tinker.LossDRO: {settings: []lossSetting{{beta, 0.05, 4}}, value: func(logprob, sampled, advantage float64,
		config map[string]float64) float64 {
		return -(logprob*advantage - config[beta]*(logprob-sampled)*(logprob-sampled)/2)
	}},
}

func clip(ratio float64, config map[string]float64) float64 {
	return min(max(ratio, config[clipLow]), config[clipHigh])
}

// config returns the usual settings.
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

// checkLosses checks the wanted losses by forward passes at the saved state.
func (k *check) checkLosses(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(losses)) {
		if !k.wantsLoss(name) {
			continue
		}
		l := &lossCheck{check: k}
		if err := l.run(ctx, name, losses[name]); err != nil {
			return err
		}
	}
	return nil
}

// lossCheck makes forward passes with a model of its own, which has loaded the saved state. After an error it uses
// another one, because a model that had an operation rejected cannot be used any more.
type lossCheck struct {
	*check
	model *client.Model
}

// run compares the value of a loss with its formula, and with its values under other settings.
func (l *lossCheck) run(ctx context.Context, name tinker.LossName, d definition) error {
	data, sampled, advantages := l.clippedDatum(name)
	usual, err := l.read(ctx, data, tinker.Loss{Name: name, Config: d.config()})
	if err != nil {
		l.recordTrialError(Loss(name), err)
		for _, s := range d.settings {
			l.recordTrialError(LossSetting(name, s.name), err)
		}
		return fatal(ctx, err)
	}
	l.record(Loss(name), Supported, "")
	if l.wants(LossSum) {
		twice, err := l.read(ctx, slices.Repeat(data, 2), tinker.Loss{Name: name, Config: d.config()})
		if err != nil {
			return fatal(ctx, err)
		}
		l.recordSum(usual, twice)
	}
	if !usual.known || l.noLogprobs {
		return nil // the steps of trainingCheck may still show a difference
	}
	l.recordFormula(name, usual.sum, d.total(l.saved, sampled, advantages, d.config()))
	for _, s := range d.settings {
		config := d.config()
		config[s.name] = s.other
		changed, err := l.read(ctx, data, tinker.Loss{Name: name, Config: config})
		if err != nil {
			l.recordTrialError(LossSetting(name, s.name), err)
			if err := fatal(ctx, err); err != nil {
				return err
			}
			continue
		}
		l.recordSetting(name, s, usual.sum, changed.sum)
	}
	return nil
}

// fatal returns the error if it ends the check.
func fatal(ctx context.Context, err error) error {
	if ctx.Err() != nil || client.CategoryFrom(err) == tinker.CategoryUnauthorized {
		return fmt.Errorf("trying a loss: %w", err)
	}
	return nil
}

// read returns the value of a loss, and retries temporary errors.
func (l *lossCheck) read(ctx context.Context, data []tinker.Datum, loss tinker.Loss) (value, error) {
	return retryFor(ctx, func(ctx context.Context) (v value, err error) {
		if l.model == nil {
			if l.model, err = l.load(ctx, l.Lora, false); err != nil {
				return v, err
			}
		}
		if v, err = l.value(ctx, data, loss); err != nil {
			l.model = nil
		}
		return v, err
	})
}

// clippedDatum returns a datum whose tokens have ratios of 2 and 1/2 in turn, with positive and negative advantages,
// so that each bound clips some tokens.
func (k *check) clippedDatum(loss tinker.LossName) (data []tinker.Datum, sampled, advantages []float64) {
	for i, logprob := range k.saved {
		ratio, advantage := 2.0, 1.0
		if i%2 == 1 {
			ratio, advantage = 0.5, -0.5
		}
		sampled, advantages = append(sampled, logprob-math.Log(ratio)), append(advantages, advantage)
	}
	return []tinker.Datum{datum(loss, sampled, advantages)}, sampled, advantages
}

// relativeError returns the difference of two values, relative to the greater.
func relativeError(a, b float64) float64 {
	return math.Abs(a-b) / max(math.Abs(a), math.Abs(b), 1e-9)
}

// tolerance is the relative error up to which two values of a loss are equal.
const tolerance = 0.05

func (l *lossCheck) recordSetting(name tinker.LossName, s lossSetting, usual, changed float64) {
	if relativeError(usual, changed) > tolerance {
		l.record(LossSetting(name, s.name), Supported, "")
		return
	}
	l.record(LossSetting(name, s.name), Ignored, fmt.Sprintf("the loss is %.4g both with %g and with %g", usual, s.usual,
		s.other))
}

func (l *lossCheck) recordFormula(name tinker.LossName, got, want float64) {
	if relativeError(got, want) <= tolerance {
		l.record(LossFormula(name), Supported, "")
		return
	}
	l.record(LossFormula(name), Unsupported, fmt.Sprintf("the loss is %.4g, but %.4g by the published formula", got, want))
}

func (l *lossCheck) recordSum(once, twice value) {
	switch {
	case !once.known || !twice.known:
	case relativeError(2*once.sum, twice.sum) <= tolerance:
		l.record(LossSum, Supported, "")
	default:
		l.record(LossSum, Unsupported, fmt.Sprintf("the loss of one datum is %.4g, and %.4g of the same datum twice",
			once.sum, twice.sum))
	}
}

// value is the value of a loss, if the server returns it.
type value struct {
	sum   float64
	known bool
}

const (
	metricLoss = "loss:sum"
	outputLoss = "elementwise_loss"
)

// value returns the loss of a forward pass: its metric, or the sum over the tokens.
func (l *lossCheck) value(ctx context.Context, data []tinker.Datum, loss tinker.Loss) (value, error) {
	future, err := l.model.Forward(ctx, data, loss)
	result, err := await(ctx, future, err)
	if err != nil {
		return value{}, err
	}
	if sum, ok := result.Metrics[metricLoss]; ok {
		return value{sum, finite.Is(sum)}, nil
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
