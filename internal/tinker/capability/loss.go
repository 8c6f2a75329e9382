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
	// bySequence says that value gets the mean of the log-ratios of a sequence in place of a token's log-probability,
	// and 0 in place of the sampled one.
	bySequence bool
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
	tinker.LossPPO:  {settings: bounds, value: clippedSurrogate},
	tinker.LossGSPO: {settings: bounds, bySequence: true, value: clippedSurrogate},
	tinker.LossCISPO: {settings: bounds, value: func(logprob, sampled, advantage float64,
		config map[string]float64) float64 {
		return -clip(math.Exp(logprob-sampled), config) * logprob * advantage
	}},
	tinker.LossDRO: {settings: []lossSetting{{beta, 0.05, 4}}, value: func(logprob, sampled, advantage float64,
		config map[string]float64) float64 {
		return -(logprob*advantage - config[beta]*(logprob-sampled)*(logprob-sampled)/2)
	}},
}

func clippedSurrogate(logprob, sampled, advantage float64, config map[string]float64) float64 {
	ratio := math.Exp(logprob - sampled)
	return -min(ratio*advantage, clip(ratio, config)*advantage)
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

// names returns the names of the settings, and the name of the mask if the loss has one.
func (d definition) names() []string {
	var names []string
	for _, s := range d.settings {
		names = append(names, s.name)
	}
	if d.bySequence {
		names = append(names, tinker.InputSequenceRatioMask)
	}
	return names
}

// total returns the loss of data that have the given log-probabilities.
func (d definition) total(logprobs []float64, data []lossDatum, config map[string]float64) float64 {
	sum := 0.0
	for _, of := range data {
		ratio := of.meanLogRatio(logprobs)
		for i, advantage := range of.advantages {
			logprob, sampled := logprobs[i], of.sampled[i]
			if d.bySequence {
				logprob, sampled = ratio, 0
			}
			sum += d.value(logprob, sampled, advantage, config)
		}
	}
	return sum
}

// lossDatum is a datum for the trial of a loss.
type lossDatum struct {
	sampled, advantages []float64
	// mask marks the tokens of a sequence's ratio; nil for losses of tokens.
	mask []float64
}

func (d lossDatum) meanLogRatio(logprobs []float64) float64 {
	sum, count := 0.0, 0.0
	for i, weight := range d.mask {
		sum, count = sum+weight*(logprobs[i]-d.sampled[i]), count+weight
	}
	return sum / max(count, 1)
}

// wire returns the data in the API's form.
func wire(loss tinker.LossName, data []lossDatum) []tinker.Datum {
	var list []tinker.Datum
	for _, d := range data {
		one := datum(loss, d.sampled, d.advantages)
		if d.mask != nil {
			one.LossFnInputs[tinker.InputSequenceRatioMask] = tinker.Floats(float32s(d.mask))
		}
		list = append(list, one)
	}
	return list
}

// checkLosses checks the wanted losses by forward passes at the saved state.
func (k *check) checkLosses(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(losses)) {
		if !k.findings.wantsLoss(name) {
			continue
		}
		l := &lossCheck{trainer: k.trainer, findings: k.findings, saved: k.saved, noLogprobs: k.noLogprobs}
		if err := l.run(ctx, name, losses[name]); err != nil {
			return err
		}
	}
	return nil
}

// lossCheck makes forward passes with a model of its own, which has loaded the saved state. After an error it uses
// another model, because a model cannot be used any more after one of its operations was rejected.
type lossCheck struct {
	trainer  *trainer
	findings *findings
	model    *client.Model
	// saved are the log-probabilities of the saved state. noLogprobs says that the server returns none.
	saved      []float64
	noLogprobs bool
}

// run compares the value of a loss with its formula, and with its values under other settings.
func (l *lossCheck) run(ctx context.Context, name tinker.LossName, d definition) error {
	trial := clippedData(l.saved, d.bySequence)
	data := wire(name, trial)
	usual, err := l.read(ctx, data, tinker.Loss{Name: name, Config: d.config()})
	if err != nil {
		l.findings.recordTrialError(Loss(name), err)
		for _, setting := range d.names() {
			l.findings.recordTrialError(LossSetting(name, setting), err)
		}
		return fatal(ctx, err)
	}
	l.findings.record(Loss(name), Supported, "")
	if l.findings.wants(LossSum) {
		twice, err := l.read(ctx, slices.Repeat(data, 2), tinker.Loss{Name: name, Config: d.config()})
		if err != nil {
			return fatal(ctx, err)
		}
		l.recordSum(usual, twice)
	}
	if !usual.known || l.noLogprobs {
		return nil // the steps of trainingCheck may still show a difference
	}
	l.recordFormula(name, usual.sum, d.total(l.saved, trial, d.config()))
	if d.bySequence {
		if err := l.mask(ctx, name, d, usual); err != nil {
			return err
		}
	}
	for _, s := range d.settings {
		config := d.config()
		config[s.name] = s.other
		changed, err := l.read(ctx, data, tinker.Loss{Name: name, Config: config})
		if err != nil {
			l.findings.recordTrialError(LossSetting(name, s.name), err)
			if err := fatal(ctx, err); err != nil {
				return err
			}
			continue
		}
		l.recordSetting(name, s, usual.sum, changed.sum)
	}
	return nil
}

// mask compares the value of a loss of sequences with its value where all tokens count in the ratio.
func (l *lossCheck) mask(ctx context.Context, name tinker.LossName, d definition, usual value) error {
	all := clippedData(l.saved, true)
	for i := range all {
		all[i].mask = uniform(1)
	}
	changed, err := l.read(ctx, wire(name, all), tinker.Loss{Name: name, Config: d.config()})
	if err != nil {
		l.findings.recordTrialError(LossSetting(name, tinker.InputSequenceRatioMask), err)
		return fatal(ctx, err)
	}
	l.recordSetting(name, lossSetting{tinker.InputSequenceRatioMask, 0, 1}, usual.sum, changed.sum)
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
			if l.model, err = l.trainer.load(ctx, l.trainer.Lora, false); err != nil {
				return v, err
			}
		}
		if v, err = l.value(ctx, data, loss); err != nil {
			l.model = nil
		}
		return v, err
	})
}

// clippedData returns data whose ratios are 2 and 1/2 in turn, with positive and negative advantages, so that each
// bound clips some tokens. The ratios are those of tokens or, if bySequence is set, those of sequences; the mask of a
// sequence leaves out its first half as a prompt.
func clippedData(saved []float64, bySequence bool) []lossDatum {
	ratios, signs := [2]float64{2, 0.5}, [2]float64{1, -0.5}
	if !bySequence {
		var d lossDatum
		for i, logprob := range saved {
			d.sampled, d.advantages = append(d.sampled, logprob-math.Log(ratios[i%2])), append(d.advantages, signs[i%2])
		}
		return []lossDatum{d}
	}
	data := make([]lossDatum, 2)
	for j := range data {
		d := &data[j]
		for i, logprob := range saved {
			sampled, advantage, counts := logprob-math.Log(ratios[j]), signs[j], 1.0
			if i < len(saved)/2 {
				// The prompt has the ratios of the other sequence: if it counted, both sequences would have a ratio near 1.
				sampled, advantage, counts = logprob-math.Log(ratios[1-j]), 0, 0
			}
			d.sampled, d.advantages = append(d.sampled, sampled), append(d.advantages, advantage)
			d.mask = append(d.mask, counts)
		}
	}
	return data
}

// relativeError returns the difference of two values, relative to the greater.
func relativeError(a, b float64) float64 {
	return math.Abs(a-b) / max(math.Abs(a), math.Abs(b), 1e-9)
}

// tolerance is the relative error up to which two values of a loss are equal.
const tolerance = 0.05

func (l *lossCheck) recordSetting(name tinker.LossName, s lossSetting, usual, changed float64) {
	if relativeError(usual, changed) > tolerance {
		l.findings.record(LossSetting(name, s.name), Supported, "")
		return
	}
	l.findings.record(LossSetting(name, s.name), Ignored, fmt.Sprintf("the loss is %.4g both with %g and with %g", usual,
		s.usual, s.other))
}

func (l *lossCheck) recordFormula(name tinker.LossName, got, want float64) {
	if relativeError(got, want) <= tolerance {
		l.findings.record(LossFormula(name), Supported, "")
		return
	}
	l.findings.record(LossFormula(name), Unsupported, fmt.Sprintf("the loss is %.4g, but %.4g by the published formula",
		got, want))
}

func (l *lossCheck) recordSum(once, twice value) {
	switch {
	case !once.known || !twice.known:
	case relativeError(2*once.sum, twice.sum) <= tolerance:
		l.findings.record(LossSum, Supported, "")
	default:
		l.findings.record(LossSum, Unsupported, fmt.Sprintf("the loss of one datum is %.4g, and %.4g of the same datum twice",
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
