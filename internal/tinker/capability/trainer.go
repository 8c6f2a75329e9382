// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// sequence is what the probe trains on: ids that are in every vocabulary, in an order that no model expects.
var sequence = []int32{72, 113, 49, 97, 59, 84, 102, 38, 120, 55, 107, 68, 33, 116, 90, 105, 43}

// stepSize is the optimizer of the probe's steps. Its rate moves an adapter of any model visibly, and is
// not so high that it overflows.
var stepSize = tinker.AdamParams{LearningRate: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}

// pullBack is the advantage of the third step; the first two have 1. It is weaker, so that momentum
// outweighs it, and so that the second moment matters.
const pullBack = -0.5

const hour = int64(time.Hour / time.Second)

// datum is the sequence with the inputs of a loss; cross_entropy takes the advantages for weights.
func datum(loss string, sampled, advantages []float64) tinker.Datum {
	targets := make([]int64, len(advantages))
	for i := range targets {
		targets[i] = int64(sequence[i+1])
	}
	inputs := map[string]tinker.Tensor{tinker.InputTargetTokens: tinker.Ints(targets)}
	if loss == crossEntropy {
		inputs[tinker.InputWeights] = tinker.Floats(narrow(advantages))
	} else {
		inputs[tinker.InputLogprobs] = tinker.Floats(narrow(sampled))
		inputs[tinker.InputAdvantages] = tinker.Floats(narrow(advantages))
	}
	return tinker.Datum{ModelInput: tinker.Text(sequence[:len(advantages)]), LossFnInputs: inputs}
}

func narrow(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	return out
}

// uniform is the same advantage for every token.
func uniform(advantage float64) []float64 {
	all := make([]float64, len(sequence)-1)
	for i := range all {
		all[i] = advantage
	}
	return all
}

// lesson is a datum of the loss that the probe trains by.
func (l *lab) lesson(advantage float64) []tinker.Datum {
	return []tinker.Datum{datum(l.loss, l.base, uniform(advantage))}
}

// create makes a model of the probe's own.
func (l *lab) create(ctx context.Context, lora tinker.LoraConfig) (*client.Model, error) {
	l.mu.Lock()
	l.made++
	number := l.made
	lora.Rank = l.rank
	session := l.session
	l.mu.Unlock()
	seed := int64(1)
	lora.Seed = &seed
	model, err := l.API.CreateModel(ctx, tinker.CreateModelRequest{
		Session: session, ModelSeq: number - 1, BaseModel: l.Model, Lora: lora, UserMetadata: l.UserMetadata,
	})
	if err != nil {
		return nil, fmt.Errorf("making a model: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.models = append(l.models, model.ID())
	return model, nil
}

// load makes a model and loads the saved state into it, if there is one.
func (l *lab) load(ctx context.Context, lora tinker.LoraConfig, optimizer bool) (*client.Model, error) {
	model, err := l.create(ctx, lora)
	if err != nil || l.state == "" {
		return model, err
	}
	loading, err := model.LoadState(ctx, l.state, optimizer)
	if _, err = await(ctx, loading, err); err != nil {
		return nil, fmt.Errorf("loading the state: %w", err)
	}
	return model, nil
}

// enter makes a session.
func (l *lab) enter(ctx context.Context) error {
	session, err := l.API.CreateSession(ctx, client.SessionRequest{Tags: []string{"tinker-operator", "probe"}})
	if err != nil {
		return fmt.Errorf("making a session: %w", err)
	}
	l.session, l.made = session, 0
	l.alive.Go(func() { l.API.KeepAlive(ctx, session, nil) })
	return nil
}

// prepare makes the first model in a session, and trains, saves and examines it. It may be called again.
func (l *lab) prepare(ctx context.Context) error {
	err := l.enter(ctx)
	if err != nil {
		return err
	}
	l.first, err = l.create(ctx, l.Lora)
	if refused(err) && l.rank != l.Lora.Rank {
		l.rank = l.Lora.Rank
		l.first, err = l.create(ctx, l.Lora)
	}
	if err != nil {
		return err
	}
	saving, err := l.first.SaveSampler(ctx, client.SaveRequest{Name: "probe-sampler", TTLSeconds: l.ttl})
	if l.sampler, err = l.path(ctx, saving, err); err != nil {
		return fmt.Errorf("saving sampler weights: %w", err)
	}
	err = l.train(ctx)
	if refused(err) {
		l.blind = true // the server does not take the probe's steps; those of a run may be others
		return nil
	}
	return err
}

// path waits for a save. A server that refuses the time to live is asked again without, by another model.
func (l *lab) path(ctx context.Context, saving *client.Future[tinker.SaveResult], err error) (string, error) {
	saved, err := await(ctx, saving, err)
	if refused(err) && l.ttl > 0 {
		l.ttl = 0
		return "", fmt.Errorf("%w: %s", errWithTTL, err.Error())
	}
	return saved.Path, err
}

// errWithTTL hides that it is the server's refusal, so that another try follows.
var errWithTTL = errors.New("a save with a time to live is refused")

// train takes two steps with the first model, saves it, and takes the third.
func (l *lab) train(ctx context.Context) error {
	if err := l.measureBase(ctx); err != nil {
		return err
	}
	if err := l.steps(ctx, l.first, 1, 1); err != nil {
		return err
	}
	saving, err := l.first.SaveState(ctx, client.SaveRequest{Name: "probe-state", TTLSeconds: l.ttl})
	if l.state, err = l.path(ctx, saving, err); err != nil {
		return fmt.Errorf("saving the state: %w", err)
	}
	if l.saved, err = l.see(ctx); err != nil {
		return err
	}
	if err := l.steps(ctx, l.first, pullBack); err != nil {
		return err
	}
	after, err := l.see(ctx)
	l.third = outcome{logprobs: after}
	return err
}

// measureBase takes the log-probabilities of the first model, and with them the loss to train by: the first
// that the server takes. A model that was refused something is of no use any more.
func (l *lab) measureBase(ctx context.Context) error {
	l.loss, l.base, l.saved = crossEntropy, uniform(0), uniform(0)
	base, err := l.see(ctx)
	if refused(err) {
		if l.first, err = l.create(ctx, l.Lora); err != nil {
			return err
		}
		l.loss = importanceSampling
		base, err = l.see(ctx)
	}
	if err == nil {
		l.base = base
	}
	return err
}

// see measures the first model, and notes that the server tells nothing; then it gives zeros.
func (l *lab) see(ctx context.Context) ([]float64, error) {
	logprobs, err := l.measure(ctx, l.first)
	if errors.Is(err, errBlind) {
		l.blind = true
		return uniform(0), nil
	}
	return logprobs, err
}

// errBlind says that a server gives no log-probabilities of training data.
var errBlind = errors.New("the endpoint gives no log-probabilities of training data")

// measure gives the log-probabilities of the sequence.
func (l *lab) measure(ctx context.Context, m *client.Model) ([]float64, error) {
	future, err := m.Forward(ctx, l.lesson(1), tinker.Loss{Name: l.loss})
	result, err := await(ctx, future, err)
	if err != nil {
		return nil, fmt.Errorf("measuring log-probabilities: %w", err)
	}
	if len(result.LossFnOutputs) == 0 {
		return nil, errBlind
	}
	tensor, err := result.LossFnOutputs[0][tinker.InputLogprobs].Dense()
	if err != nil || len(tensor.Float) != len(sequence)-1 {
		return nil, errBlind
	}
	logprobs := make([]float64, len(tensor.Float))
	for i, v := range tensor.Float {
		logprobs[i] = float64(v)
	}
	if slices.ContainsFunc(logprobs, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
		return nil, errBlind
	}
	return logprobs, nil
}

// steps takes optimizer steps one after the other, each with its advantage.
func (l *lab) steps(ctx context.Context, m *client.Model, advantages ...float64) error {
	for _, advantage := range advantages {
		if err := l.step(ctx, m, l.lesson(advantage), tinker.Loss{Name: l.loss}, stepSize); err != nil {
			return err
		}
	}
	return nil
}

// step submits a pass and an optimizer step back to back and waits for both.
func (l *lab) step(ctx context.Context, m *client.Model, data []tinker.Datum, loss tinker.Loss, adam tinker.AdamParams) error {
	pass, err := m.ForwardBackward(ctx, data, loss)
	if err != nil {
		return fmt.Errorf("computing gradients: %w", err)
	}
	optim, err := m.OptimStep(ctx, adam)
	_, passErr := pass.Wait(ctx)
	if _, err = await(ctx, optim, err); err == nil {
		err = passErr
	}
	if err != nil {
		return fmt.Errorf("taking a step: %w", err)
	}
	return nil
}

// outcome is what came of a step: the log-probabilities after it, or why there are none.
type outcome struct {
	logprobs []float64
	err      error
}

// motion is how far the first model's third step moved the log-probabilities: the measure of all others.
func (l *lab) motion() float64 { return distance(l.saved, l.third.logprobs) }

// same says that two outcomes of a step are one, but for the noise of the server's arithmetic.
func (l *lab) same(a, b outcome) bool { return distance(a.logprobs, b.logprobs) <= l.motion()/10 }

// distance is the root of the mean square, in nats.
func distance(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum / float64(len(a)))
}

// visible is from where on a motion is more than noise, in nats.
const visible = 1e-3
