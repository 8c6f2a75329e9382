// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// gradientLosses are losses that are proportional to the advantages; the first that the server has is used.
var gradientLosses = []tinker.LossName{tinker.LossImportanceSampling, tinker.LossPPO, tinker.LossCISPO}

// proportional is an optimizer whose steps are proportional to the gradient, and forget earlier ones: its epsilon is
// much greater than any gradient.
func proportional(rate float64) tinker.AdamParams {
	const eps = 1e6
	return tinker.AdamParams{LearningRate: rate * eps, Eps: eps}
}

// The range in which a step's motion is visible and small, in nats, the least motion that is more than noise, and the
// rate that is tried first.
const (
	least, most = 0.01, 0.05
	visible     = 2e-4
	lowestRate  = 1e-10
)

// gradientCheck takes small steps with models that loaded the saved state.
type gradientCheck struct {
	trainer  *trainer
	findings *findings
	// saved are the log-probabilities of the saved state.
	saved []float64
	loss  tinker.LossName
	rate  float64
}

// gradientSum compares steps of different data whose gradients have known ratios.
func (t trainingCheck) gradientSum(ctx context.Context) error {
	if !t.findings.wants(GradientSum) || t.findings.support(GradientSum) != Unknown {
		return nil
	}
	found, err := retryFor(ctx, t.measureGradients)
	switch {
	case err == nil:
		t.findings.record(GradientSum, found.Support, found.Note)
	case fatal(ctx, err) != nil:
		return err
	case t.trainer.API.SendsJSON() && isOutage(err):
		// A run needs the answer, and gets it when the server has recovered.
		return fmt.Errorf("measuring how gradients are combined: %w", err)
	default:
		t.findings.record(GradientSum, Unknown, err.Error())
	}
	return nil
}

func (t trainingCheck) measureGradients(ctx context.Context) (Finding, error) {
	g := &gradientCheck{trainer: t.trainer, findings: t.findings, saved: t.check.saved}
	var one float64
	for _, g.loss = range gradientLosses {
		var err error
		if one, err = g.calibrate(ctx); err == nil {
			break
		}
		if !isRejected(err) || g.loss == gradientLosses[len(gradientLosses)-1] {
			return Finding{}, err
		}
	}
	all, half := uniform(1), uniform(1)
	for i := len(half) / 2; i < len(half); i++ {
		half[i] = 0
	}
	motions, err := g.motions(ctx, [][]tinker.Datum{
		{g.datum(uniform(2))}, {g.datum(all), g.datum(all)}, {g.datum(half[:len(half)/2])}, {g.datum(half)},
	})
	if err != nil {
		return Finding{}, err
	}
	support, note := combination(motions[0]/one, motions[1]/one, motions[3]/motions[2])
	return Finding{support, note}, nil
}

// combination decides how gradients are combined. linear is the ratio of the steps with twice the advantages and with
// once; twice is the ratio of the steps of two equal sequences and of one; padded is the ratio of the steps of a
// sequence whose second half has no advantages and of its first half alone.
func combination(linear, twice, padded float64) (Support, string) {
	is := func(ratio, want float64) bool { return math.Abs(ratio/want-1) < 0.15 }
	switch {
	case !is(linear, 2):
		return Unknown, "steps are not proportional to gradients"
	case is(twice, 2) && is(padded, 1):
		return Supported, ""
	case is(twice, 1) && is(padded, 0.5):
		return Ignored, "gradients are averaged over tokens and sequences, which the run compensates"
	}
	return Unsupported, fmt.Sprintf("the gradient of two equal sequences is %.3g of that of one, and %.3g with as many "+
		"tokens without advantage", twice, padded)
}

// datum returns a datum of the loss with these advantages.
func (g *gradientCheck) datum(advantages []float64) tinker.Datum {
	return datum(g.loss, g.saved[:len(advantages)], advantages)
}

// open returns a model with the saved weights, or a new one if the server refuses to load them.
func (g *gradientCheck) open(ctx context.Context) (*client.Model, error) {
	model, err := g.trainer.load(ctx, g.trainer.Lora, false)
	if isRejected(err) {
		return g.trainer.create(ctx, g.trainer.Lora)
	}
	return model, err
}

// motions takes a step with each of the data, by models of the same weights, and returns how far each moved.
func (g *gradientCheck) motions(ctx context.Context, data [][]tinker.Datum) ([]float64, error) {
	motions := make([]float64, len(data))
	all := ctx
	steps, ctx := errgroup.WithContext(ctx)
	for i := range data {
		steps.Go(func() error {
			model, err := g.open(ctx)
			if err != nil {
				return err
			}
			defer g.trainer.unload(all, model)
			motions[i], err = g.motion(ctx, model, data[i])
			return err
		})
	}
	return motions, steps.Wait()
}

// calibrate finds a learning rate at which a step moves the log-probabilities visibly but little, and returns how
// far. It begins with a rate that moves nothing, since a model that was moved far does not come back, and reverses
// each visible step. It uses a single model, since servers that read JSON have room for few.
func (g *gradientCheck) calibrate(ctx context.Context) (float64, error) {
	if g.findings.needsNoCheckpoint() || !g.trainer.API.SendsJSON() {
		return g.calibrateAtOnce(ctx)
	}
	const attempts = 16
	model, err := g.open(ctx)
	if err != nil {
		return 0, err
	}
	defer g.trainer.unload(ctx, model)
	g.rate = lowestRate
	for range attempts {
		motion, err := g.motion(ctx, model, []tinker.Datum{g.datum(uniform(1))})
		switch {
		case err != nil:
			return 0, err
		case motion >= least && motion <= most:
			return motion, nil
		case motion > 1 || math.IsNaN(motion):
			return 0, fmt.Errorf("looking for a learning rate: a step moves the log-probabilities by %g", motion)
		case motion < visible:
			g.rate *= 10
			continue
		}
		if err := g.step(ctx, model, []tinker.Datum{g.datum(uniform(-1))}); err != nil {
			return 0, err
		}
		g.rate *= math.Sqrt(least*most) / motion
	}
	return 0, errNoMotion
}

// calibrateAtOnce finds the rate sooner, with more models. They all take one step from the same weights,
// concurrently, so that a model that is moved too far does no harm: it is not used again.
func (g *gradientCheck) calibrateAtOnce(ctx context.Context) (float64, error) {
	const factor, models, rounds = 100, 4, 4
	var rates []float64
	for i := range models {
		rates = append(rates, lowestRate*math.Pow(factor, float64(i)))
	}
	data := []tinker.Datum{g.datum(uniform(1))}
	for range rounds {
		motions, err := g.motionsAt(ctx, rates, data)
		if err != nil {
			return 0, err
		}
		i := slices.IndexFunc(motions, func(motion float64) bool { return motion >= visible })
		if i < 0 {
			for j := range rates {
				rates[j] *= math.Pow(factor, float64(len(rates)))
			}
			continue
		}
		g.rate = rates[i]
		if motions[i] >= least && motions[i] <= most {
			return motions[i], nil
		}
		rates = []float64{g.rate * math.Sqrt(least*most) / motions[i]}
	}
	return 0, errNoMotion
}

// motionsAt takes a step at each of several rates, by models of the same weights, and returns how far each moved.
func (g *gradientCheck) motionsAt(ctx context.Context, rates []float64, data []tinker.Datum) ([]float64, error) {
	motions := make([]float64, len(rates))
	steps, ctx := errgroup.WithContext(ctx)
	for i, rate := range rates {
		steps.Go(func() error {
			at := *g
			at.rate = rate
			moved, err := at.motions(ctx, [][]tinker.Datum{data})
			switch {
			case errors.Is(err, errNoLogprobs): // It was moved so far that they are not finite.
				motions[i] = math.Inf(1)
			case err != nil:
				return err
			default:
				motions[i] = moved[0]
			}
			return nil
		})
	}
	return motions, steps.Wait()
}

// motion takes a step, and returns how far it moved the log-probabilities.
func (g *gradientCheck) motion(ctx context.Context, model *client.Model, data []tinker.Datum) (float64, error) {
	before, err := g.trainer.measure(ctx, model)
	if err != nil {
		return 0, err
	}
	if err := g.step(ctx, model, data); err != nil {
		return 0, err
	}
	after, err := g.trainer.measure(ctx, model)
	if err != nil {
		return 0, err
	}
	return distance(before, after), nil
}

func (g *gradientCheck) step(ctx context.Context, model *client.Model, data []tinker.Datum) error {
	return step(ctx, model, data, tinker.Loss{Name: g.loss, Config: losses[g.loss].config()}, proportional(g.rate))
}
