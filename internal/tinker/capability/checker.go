// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// Checker checks which features an endpoint supports.
type Checker struct {
	API *client.Client
	// BaseURL is copied into the report.
	BaseURL string
	// Model is the name of the base model.
	Model string
	// Lora is the adapter that the run trains. The check's own models train the same matrices. They have rank 1, or
	// this rank if the server rejects rank 1.
	Lora tinker.LoraConfig
	// UserMetadata is stored with the check's models, so that models that a check leaves behind can be found.
	UserMetadata tinker.Metadata
	// Features are the wanted features; the report may have others.
	Features []Feature
	// Patience limits the time for checks that training does not depend on: listings, TTLs, sampling. 0 means a
	// minute.
	Patience time.Duration
}

// Run checks the wanted features, and removes the models and checkpoints that it made. It returns an error if the
// context ended, if the server rejected the key or the base model, or if it failed three times at an operation that
// every server supports. A feature at which the server failed three times is Unknown.
func (c Checker) Run(ctx context.Context) (Report, error) {
	if c.Patience == 0 {
		c.Patience = time.Minute
	}
	ctx, stop := context.WithCancelCause(ctx)
	k := newCheck(c, stop)
	k.trainer.rank = 1
	k.ttl.Store(hour)
	defer k.trainer.keepAlive.Wait()
	defer stop(nil)
	defer k.cleanUp(ctx)
	if err := retry(ctx, k.prepare); err != nil {
		return Report{}, err
	}
	k.trySeed(ctx)
	var parts sync.WaitGroup
	for _, part := range []func(context.Context){k.checkTraining, k.checkSampling, k.checkListings} {
		parts.Go(func() { part(ctx) })
	}
	parts.Wait()
	k.checkWeightDecay(ctx)
	if err := context.Cause(ctx); err != nil {
		return Report{}, fmt.Errorf("checking the endpoint's capabilities: %w", err)
	}
	k.checkUnload(ctx)
	return k.findings.report, nil
}

// check is one run of a Checker.
type check struct {
	trainer  *trainer
	findings *findings

	// ttl is the TTL of saved checkpoints in seconds; 0 if the server rejects one.
	ttl atomic.Int64
	// first is the model that all others are compared with. saved holds its log-probabilities when its state was
	// saved, and thirdStep those after the step that followed. noLogprobs says that the server returns none.
	first      *client.Model
	saved      []float64
	thirdStep  outcome
	noLogprobs bool
	// sampler is the path of the first model's sampler weights, and snapshotPath the path of the weights of the model
	// that continues to train.
	sampler, snapshotPath string
	// early is the check of snapshots that began beside the first model's steps; nil if none did.
	early *early
	// samples is nil before the first model's initial weights are sampled.
	samples *samplingCheck
}

func newCheck(c Checker, stop context.CancelCauseFunc) *check {
	return &check{
		trainer: &trainer{Checker: c, loss: tinker.LossCrossEntropy},
		findings: &findings{
			features: c.Features, stop: stop,
			report: Report{BaseURL: c.BaseURL, Model: c.Model, Findings: map[Feature]Finding{}},
		},
	}
}

// prepare creates the first model in a new session, and trains, saves and measures it. It can be called again.
func (k *check) prepare(ctx context.Context) error {
	err := k.trainer.createSession(ctx)
	if err != nil {
		return err
	}
	k.first, err = k.trainer.create(ctx, k.trainer.Lora)
	if isRejected(err) && k.trainer.rank != k.trainer.Lora.Rank {
		k.trainer.rank = k.trainer.Lora.Rank
		k.first, err = k.trainer.create(ctx, k.trainer.Lora)
	}
	if err != nil {
		return err
	}
	if err := k.findEncoding(ctx); err != nil {
		return err
	}
	if k.findings.needsNoCheckpoint() {
		err = k.measureNew(ctx)
		k.saved = k.trainer.initial
		return err
	}
	request := k.saveRequest("probe-sampler")
	saving, err := k.first.SaveSampler(ctx, request)
	if k.sampler, err = k.waitForSave(ctx, request, saving, err); err != nil {
		return fmt.Errorf("saving sampler weights: %w", err)
	}
	err = k.train(ctx)
	if isRejected(err) {
		k.noLogprobs = true // the server rejects the check's steps; it may accept those of a run
		return nil
	}
	return err
}

func (k *check) saveRequest(name string) client.SaveRequest {
	return client.SaveRequest{Name: name, TTLSeconds: k.ttl.Load()}
}

// waitForSave returns the path of a save. If the server rejects the TTL, its error is temporary, and the next
// attempt saves another model without a TTL.
func (k *check) waitForSave(ctx context.Context, request client.SaveRequest, saving *client.Future[tinker.SaveResult],
	err error) (string, error) {
	saved, err := await(ctx, saving, err)
	if isRejected(err) && request.TTLSeconds > 0 {
		k.ttl.Store(0)
		return "", fmt.Errorf("%w: %s", errTTLRejected, err.Error())
	}
	return saved.Path, err
}

// errTTLRejected replaces the server's rejection, so that the check tries again.
var errTTLRejected = errors.New("server rejects a save with a TTL")

// train measures the first model and trains it. Sampler weights of another model are checked meanwhile.
func (k *check) train(ctx context.Context) error {
	if err := k.measureNew(ctx); err != nil {
		return err
	}
	k.beginSnapshot(ctx)
	err := k.trainFirst(ctx)
	if err != nil {
		k.endSnapshot()
	}
	return err
}

// trainFirst takes two steps with the first model, saves it, and takes the third step.
func (k *check) trainFirst(ctx context.Context) error {
	if err := k.trainer.steps(ctx, k.first, 1, 1); err != nil {
		return err
	}
	request := k.saveRequest("probe-state")
	saving, err := k.first.SaveState(ctx, request)
	if k.trainer.state, err = k.waitForSave(ctx, request, saving, err); err != nil {
		return fmt.Errorf("saving the state: %w", err)
	}
	if k.saved, err = k.measureFirst(ctx); err != nil {
		return err
	}
	if err := step(ctx, k.first, k.reverse(), tinker.Loss{Name: k.trainer.loss}, adamParams); err != nil {
		return err
	}
	after, err := k.measureFirst(ctx)
	k.thirdStep = outcome{logprobs: after}
	return err
}

// reverse returns the datum of the third step. Its sampled log-probabilities are from the saved weights, so that
// losses with a ratio have the gradient of cross entropy.
func (k *check) reverse() []tinker.Datum {
	return []tinker.Datum{datum(k.trainer.loss, k.saved, uniform(reverseAdvantage))}
}

// measureNew measures the new first model, and chooses the loss of the check's steps: the first that the server
// accepts. Cross entropy is the second, since some servers divide its gradient by the sum of the weights, which the
// third step makes negative. A model cannot be used any more after one of its operations was rejected.
func (k *check) measureNew(ctx context.Context) error {
	k.trainer.loss, k.trainer.initial, k.saved = tinker.LossImportanceSampling, uniform(0), uniform(0)
	initial, err := k.measureFirst(ctx)
	if isRejected(err) {
		if k.first, err = k.trainer.create(ctx, k.trainer.Lora); err != nil {
			return err
		}
		k.trainer.loss = tinker.LossCrossEntropy
		initial, err = k.measureFirst(ctx)
	}
	if err == nil {
		k.trainer.initial = initial
	}
	return err
}

// measureFirst measures the first model. If the server returns no log-probabilities, it sets noLogprobs and returns
// zeros.
func (k *check) measureFirst(ctx context.Context) ([]float64, error) {
	logprobs, err := k.trainer.measure(ctx, k.first)
	if errors.Is(err, errNoLogprobs) {
		k.noLogprobs = true
		return uniform(0), nil
	}
	return logprobs, err
}

// motion returns how far the first model's third step moved the log-probabilities.
func (k *check) motion() float64 { return distance(k.saved, k.thirdStep.logprobs) }

// same reports whether two outcomes of a step are equal, except for the noise of the server's arithmetic.
func (k *check) same(a, b outcome) bool { return distance(a.logprobs, b.logprobs) <= k.motion()/10 }

// cleanUpPatience limits the time for removing the objects that a check made.
const cleanUpPatience = 10 * time.Second

// cleanUp removes the objects that the check made, as far as the server allows it. Remaining objects expire within an
// hour or are idle.
func (k *check) cleanUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanUpPatience)
	defer cancel()
	for i, path := range []string{k.sampler, k.trainer.state, k.snapshotPath} {
		if path == "" {
			continue
		}
		err := k.trainer.API.DeleteCheckpoint(ctx, path)
		switch {
		case i != 1 || !k.findings.wants(DeleteCheckpoint):
		case err != nil:
			k.findings.recordError(DeleteCheckpoint, err)
		default:
			k.findings.record(DeleteCheckpoint, Supported, "")
		}
	}
	for _, id := range k.trainer.left() {
		if k.findings.support(UnloadModel) == Unsupported || ctx.Err() != nil {
			break
		}
		_ = k.trainer.API.UnloadModel(ctx, id)
	}
	for _, session := range k.trainer.sessions {
		_ = k.trainer.API.FinishSession(ctx, session) // It expires at a server that cannot finish it.
	}
}
