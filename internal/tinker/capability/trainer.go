// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// sequence is the training data: ids that every vocabulary has, in an order that no model expects.
var sequence = []int32{72, 113, 49, 97, 59, 84, 102, 38, 120, 55, 107, 68, 33, 116, 90, 105, 43}

// adamParams is the optimizer of the check's steps. Its learning rate moves an adapter of any model visibly, and
// does not overflow.
var adamParams = tinker.AdamParams{LearningRate: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}

// reverseAdvantage is the advantage of the third step; the first two have 1. It is smaller, so that momentum
// outweighs it and the second moment matters.
const reverseAdvantage = -0.5

const hour = int64(time.Hour / time.Second)

// minMotion is the distance in nats from which a motion is more than noise.
const minMotion = 1e-3

// datum returns the sequence with the inputs of a loss; cross_entropy takes the advantages as weights.
func datum(loss tinker.LossName, sampled, advantages []float64) tinker.Datum {
	targets := make([]int64, len(advantages))
	for i := range targets {
		targets[i] = int64(sequence[i+1])
	}
	inputs := map[string]tinker.Tensor{tinker.InputTargetTokens: tinker.Ints(targets)}
	if loss == tinker.LossCrossEntropy {
		inputs[tinker.InputWeights] = tinker.Floats(float32s(advantages))
	} else {
		inputs[tinker.InputLogprobs] = tinker.Floats(float32s(sampled))
		inputs[tinker.InputAdvantages] = tinker.Floats(float32s(advantages))
	}
	return tinker.Datum{ModelInput: tinker.Text(sequence[:len(advantages)]), LossFnInputs: inputs}
}

func float32s(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	return out
}

// uniform returns the same advantage for every token.
func uniform(advantage float64) []float64 {
	return slices.Repeat([]float64{advantage}, len(sequence)-1)
}

// distance returns the root mean square of the differences, in nats.
func distance(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum / float64(len(a)))
}

// trainer creates and trains the models of a check.
type trainer struct {
	Checker
	session string
	rank    int
	// loss is the loss of the steps, and initial the log-probabilities of the new first model.
	loss    tinker.LossName
	initial []float64
	// state is the path of the saved state.
	state string
	// samplingSessions counts the sampling sessions of checks that train.
	samplingSessions atomic.Int64
	// keepAlive runs the heartbeats of sessions, and unloads models.
	keepAlive sync.WaitGroup

	mu sync.Mutex
	// nextModel is the number of the next model in the session; created are the ids of all.
	nextModel int
	created   []string
	// sessions are all sessions of the check: another try makes another one.
	sessions []string
}

// createSession creates the session of further models.
func (t *trainer) createSession(ctx context.Context) error {
	session, err := t.API.CreateSession(ctx, client.SessionRequest{Tags: []string{"tinker-operator", "probe"}})
	if err != nil {
		return fmt.Errorf("creating a session: %w", err)
	}
	t.session, t.nextModel = session, 0
	t.sessions = append(t.sessions, session)
	t.keepAlive.Go(func() { t.API.KeepAlive(ctx, session, nil) })
	return nil
}

// create creates a model.
func (t *trainer) create(ctx context.Context, lora tinker.LoraConfig) (*client.Model, error) {
	t.mu.Lock()
	number := t.nextModel
	t.nextModel++
	lora.Rank = t.rank
	session := t.session
	t.mu.Unlock()
	seed := int64(1)
	lora.Seed = &seed
	model, err := t.API.CreateModel(ctx, tinker.CreateModelRequest{
		Session: session, ModelSeq: number, BaseModel: t.Model, Lora: lora, UserMetadata: t.UserMetadata,
	})
	if err != nil {
		return nil, fmt.Errorf("creating a model: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.created = append(t.created, model.ID())
	return model, nil
}

// unload frees a model that is not used again, in the background: some servers have room for few.
func (t *trainer) unload(ctx context.Context, model *client.Model) {
	t.keepAlive.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, cleanUpPatience)
		defer cancel()
		if t.API.UnloadModel(ctx, model.ID()) == nil {
			t.forget(model.ID())
		}
	})
}

// forget removes a model from those that are left.
func (t *trainer) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.created = slices.DeleteFunc(t.created, func(created string) bool { return created == id })
}

// left returns the ids of the models that are not unloaded.
func (t *trainer) left() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.created)
}

// open creates a fresh model, or one with the saved state.
func (t *trainer) open(ctx context.Context, lora tinker.LoraConfig, fresh, optimizer bool) (*client.Model, error) {
	if fresh {
		return t.create(ctx, lora)
	}
	return t.load(ctx, lora, optimizer)
}

// load creates a model and loads the saved state into it, if there is one.
func (t *trainer) load(ctx context.Context, lora tinker.LoraConfig, optimizer bool) (*client.Model, error) {
	model, err := t.create(ctx, lora)
	if err != nil || t.state == "" {
		return model, err
	}
	loading, err := model.LoadState(ctx, t.state, optimizer)
	if _, err = await(ctx, loading, err); err != nil {
		return nil, fmt.Errorf("loading the state: %w", err)
	}
	return model, nil
}

// batch returns a datum of the loss of the check's steps.
func (t *trainer) batch(advantage float64) []tinker.Datum {
	return []tinker.Datum{datum(t.loss, t.initial, uniform(advantage))}
}

// errNoLogprobs says that a server returns no log-probabilities of training data.
var errNoLogprobs = errors.New("endpoint returns no log-probabilities of training data")

// measure returns the log-probabilities of the sequence.
func (t *trainer) measure(ctx context.Context, m *client.Model) ([]float64, error) {
	future, err := m.Forward(ctx, t.batch(1), tinker.Loss{Name: t.loss})
	result, err := await(ctx, future, err)
	if err != nil {
		return nil, fmt.Errorf("measuring log-probabilities: %w", err)
	}
	if len(result.LossFnOutputs) == 0 {
		return nil, errNoLogprobs
	}
	tensor, err := result.LossFnOutputs[0][tinker.InputLogprobs].Dense()
	if err != nil || len(tensor.Float) != len(sequence)-1 {
		return nil, errNoLogprobs
	}
	logprobs := make([]float64, len(tensor.Float))
	for i, v := range tensor.Float {
		logprobs[i] = float64(v)
	}
	if slices.ContainsFunc(logprobs, func(v float64) bool { return !finite.Is(v) }) {
		return nil, errNoLogprobs
	}
	return logprobs, nil
}

// steps takes optimizer steps one after the other, each with its advantage.
func (t *trainer) steps(ctx context.Context, m *client.Model, advantages ...float64) error {
	for _, advantage := range advantages {
		if err := step(ctx, m, t.batch(advantage), tinker.Loss{Name: t.loss}, adamParams); err != nil {
			return err
		}
	}
	return nil
}

// step submits a pass and an optimizer step back to back and waits for both.
func step(ctx context.Context, m *client.Model, data []tinker.Datum, loss tinker.Loss, adam tinker.AdamParams) error {
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
