// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// formula is a loss as the API's reference defines it. It returns the loss of one token, and its derivative with
// respect to the log-probability.
type formula func(logprob, sampled, advantage float64) (value, slope float64)

func ratioOf(logprob, sampled float64) float64 { return math.Exp(logprob - sampled) }

func crossEntropyLoss(logprob, _, weight float64) (value, slope float64) {
	return -weight * logprob, -weight
}

func importanceLoss(logprob, sampled, advantage float64) (value, slope float64) {
	r := ratioOf(logprob, sampled)
	return -r * advantage, -r * advantage
}

func ppoLoss(low, high float64) formula {
	return func(logprob, sampled, advantage float64) (value, slope float64) {
		r := ratioOf(logprob, sampled)
		if clipped := min(max(r, low), high); clipped*advantage < r*advantage {
			return -clipped * advantage, 0
		}
		return -r * advantage, -r * advantage
	}
}

func cispoLoss(low, high float64) formula {
	return func(logprob, sampled, advantage float64) (value, slope float64) {
		weight := min(max(ratioOf(logprob, sampled), low), high) * advantage
		return -weight * logprob, -weight
	}
}

func droLoss(beta float64) formula {
	return func(logprob, sampled, advantage float64) (value, slope float64) {
		d := logprob - sampled
		return -(logprob*advantage - beta*d*d/2), -(advantage - beta*d)
	}
}

// losses are all losses, with and without settings.
var losses = map[string]struct {
	loss    tinker.Loss
	formula formula
}{
	"cross_entropy":       {tinker.Loss{Name: tinker.LossCrossEntropy}, crossEntropyLoss},
	"importance_sampling": {tinker.Loss{Name: tinker.LossImportanceSampling}, importanceLoss},
	"ppo":                 {tinker.Loss{Name: tinker.LossPPO}, ppoLoss(0.8, 1.2)},
	"ppo with bounds": {tinker.Loss{Name: tinker.LossPPO, Config: map[string]float64{"clip_low_threshold": 0.4,
		"clip_high_threshold": 1.7}}, ppoLoss(0.4, 1.7)},
	"ppo with one bound": {tinker.Loss{Name: tinker.LossPPO, Config: map[string]float64{"clip_high_threshold": 3}},
		ppoLoss(0.8, 3)},
	"cispo": {tinker.Loss{Name: tinker.LossCISPO}, cispoLoss(0, 4)},
	"cispo with bounds": {tinker.Loss{Name: tinker.LossCISPO, Config: map[string]float64{"clip_low_threshold": 0.8,
		"clip_high_threshold": 1.2}}, cispoLoss(0.8, 1.2)},
	"dro":                      {tinker.Loss{Name: tinker.LossDRO}, droLoss(0.05)},
	"dro with another penalty": {tinker.Loss{Name: tinker.LossDRO, Config: map[string]float64{"beta": 1.5}}, droLoss(1.5)},
	"dro without a penalty":    {tinker.Loss{Name: tinker.LossDRO, Config: map[string]float64{"beta": 0}}, droLoss(0)},
}

// lossData is a sequence with inputs of a loss: ratios of 2, 1/2 and about 1 in turn, with positive and negative
// advantages.
type lossData struct {
	tokens                       []int32
	targets                      []int64
	logprobs, sampled, advantage []float64
}

func (s lossData) datum(loss tinker.LossName) tinker.Datum {
	inputs := map[string]tinker.Tensor{tinker.InputTargetTokens: tinker.Ints(s.targets)}
	if loss == tinker.LossCrossEntropy {
		inputs[tinker.InputWeights] = floats(s.advantage)
	} else {
		inputs[tinker.InputLogprobs], inputs[tinker.InputAdvantages] = floats(s.sampled), floats(s.advantage)
	}
	return tinker.Datum{ModelInput: tinker.Text(s.tokens), LossFnInputs: inputs}
}

// weighted returns a datum for cross_entropy whose weights are the slopes of a loss at the current weights. The two
// losses have the same gradient there, even if the loss treats a part of itself as constant.
func (s lossData) weighted(f formula) tinker.Datum {
	weighted := s
	weighted.advantage = nil
	for i, logprob := range s.logprobs {
		_, slope := f(logprob, s.sampled[i], s.advantage[i])
		weighted.advantage = append(weighted.advantage, -slope)
	}
	return weighted.datum(tinker.LossCrossEntropy)
}

func floats(values []float64) tinker.Tensor {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	return tinker.Floats(out)
}

// trained is a simulator with a saved state of a trained model.
type trained struct {
	simulated
	state  string
	models int
}

func newTrained(t *testing.T) *trained {
	t.Helper()
	s := &trained{simulated: simulate(t)}
	m := s.model(t, 0)
	train(t, m)
	saving, err := m.SaveState(t.Context(), client.SaveRequest{Name: "state"})
	s.state = wait(t, saving, err).Path
	return s
}

// loadModel returns a model with the saved state and a fresh optimizer.
func (s *trained) loadModel(t *testing.T) *client.Model {
	t.Helper()
	s.models++
	m := s.model(t, s.models)
	loading, err := m.LoadState(t.Context(), s.state, false)
	wait(t, loading, err)
	return m
}

// lossData measures the sequence with a model and chooses the sampled log-probabilities relative to the result.
func (s *trained) lossData(t *testing.T) lossData {
	t.Helper()
	out := lossData{tokens: []int32{72, 51, 43, 52, 61, 55, 46, 10, 65}, targets: []int64{51, 43, 52, 61, 55, 46, 10, 65,
		66}}
	out.advantage, out.sampled = make([]float64, 9), make([]float64, 9)
	forward, err := s.loadModel(t).Forward(t.Context(), []tinker.Datum{out.datum("cross_entropy")}, crossEntropy)
	result := wait(t, forward, err)
	for i, logprob := range result.LossFnOutputs[0][tinker.InputLogprobs].Float {
		out.logprobs = append(out.logprobs, float64(logprob))
		out.advantage[i] = []float64{1, -0.5, 0.75, -1.25}[i%4]
		out.sampled[i] = float64(float32(float64(logprob) - math.Log([]float64{2, 0.5, 1.05}[i%3])))
	}
	return out
}

// TestLossValues compares the value of each loss in the simulator with its formula.
func TestLossValues(t *testing.T) {
	s := newTrained(t)
	data := s.lossData(t)
	for name, tc := range losses {
		t.Run(name, func(t *testing.T) {
			forward, err := s.loadModel(t).Forward(t.Context(), []tinker.Datum{data.datum(tc.loss.Name)}, tc.loss)
			got := wait(t, forward, err).Metrics["loss:sum"]
			want, terms := 0.0, 0.0
			for i, logprob := range data.logprobs {
				value, _ := tc.formula(logprob, data.sampled[i], data.advantage[i])
				want, terms = want+value, terms+math.Abs(value)
			}
			if math.Abs(got-want) > 1e-6*terms {
				t.Errorf("loss is %.9g, by its formula %.9g", got, want)
			}
		})
	}
}

// TestLossGradients steps along the gradient of each loss, with an eps so large that Adam is gradient descent, and
// compares the decrease of the loss with the norm of the gradient that the simulator reports. The decrease is that of
// the equivalent cross_entropy, because some losses treat a part of themselves as constant.
func TestLossGradients(t *testing.T) {
	s := newTrained(t)
	data := s.lossData(t)
	for name, tc := range losses {
		t.Run(name, func(t *testing.T) {
			held := []tinker.Datum{data.weighted(tc.formula)}
			// descend returns the decrease of the loss in a step of the given length, and the norm of the gradient.
			descend := func(length, norm float64) (fall, gradient float64) {
				const eps = 1e9
				m := s.loadModel(t)
				before, err := m.Forward(t.Context(), held, crossEntropy)
				pass, passErr := m.ForwardBackward(t.Context(), []tinker.Datum{data.datum(tc.loss.Name)}, tc.loss)
				step, stepErr := m.OptimStep(t.Context(), tinker.AdamParams{LearningRate: length / norm * eps, Beta1: 0.9,
					Beta2: 0.95, Eps: eps})
				after, afterErr := m.Forward(t.Context(), held, crossEntropy)
				was := wait(t, before, err).Metrics["loss:sum"]
				wait(t, pass, passErr)
				gradient = wait(t, step, stepErr).Metrics["unclipped_grad_l2:mean"]
				return was - wait(t, after, afterErr).Metrics["loss:sum"], gradient
			}
			_, norm := descend(1e-6, 1)
			// Richardson extrapolation from three quotients cancels the first two terms of the error.
			const h = 2e-3
			var quotient [3]float64
			for i, length := range []float64{h, h / 2, h / 4} {
				fall, _ := descend(length, norm)
				quotient[i] = fall / length
			}
			slope := (8*quotient[2] - 6*quotient[1] + quotient[0]) / 3
			if math.Abs(slope-norm) > 1e-3*norm {
				t.Errorf("the loss decreases by %.6g per step, the norm of the gradient is %.6g", slope, norm)
			}
		})
	}
}

// TestLossesAreSpelledAsTheAPISpellsThem checks the names on the wire, and that only given settings are sent.
func TestLossesAreSpelledAsTheAPISpellsThem(t *testing.T) {
	cases := map[string]struct {
		loss algorithm.Loss
		want tinker.Loss
	}{
		"without settings": {algorithm.Loss{Name: algorithm.LossImportanceSampling},
			tinker.Loss{Name: "importance_sampling"}},
		"with both bounds": {algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.8), ClipHigh: new(1.2)},
			tinker.Loss{Name: "ppo", Config: map[string]float64{"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}}},
		"of sequences": {algorithm.Loss{Name: algorithm.LossGSPO, ClipLow: new(0.8)},
			tinker.Loss{Name: "gspo", Config: map[string]float64{"clip_low_threshold": 0.8}}},
		"with a bound of 0": {algorithm.Loss{Name: algorithm.LossCISPO, ClipLow: new(0.0)},
			tinker.Loss{Name: "cispo", Config: map[string]float64{"clip_low_threshold": 0}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, client.LossOf(tc.loss)); diff != "" {
				t.Errorf("loss (-want +got):\n%s", diff)
			}
		})
	}
}
