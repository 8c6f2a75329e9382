// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// repeats posts a forward pass twice.
func (t trainingCheck) repeats(ctx context.Context) error {
	if !t.findings.wants(Repeats) {
		return nil
	}
	recognised, err := retryFor(ctx, func(ctx context.Context) (bool, error) {
		model, err := t.trainer.create(ctx, t.trainer.Lora)
		if err != nil {
			return false, err
		}
		return model.RecognisesRepeats(ctx, t.trainer.batch(1), tinker.Loss{Name: t.trainer.loss})
	})
	switch {
	case err != nil:
		t.findings.record(Repeats, Unknown, err.Error())
		return fatal(ctx, err)
	case recognised:
		t.findings.record(Repeats, Supported, "")
	default:
		t.findings.record(Repeats, Unsupported, "what is posted twice is executed twice")
	}
	return nil
}

// early is a check that began before the others. err is the error of its function.
type early struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// beginSnapshot begins to check snapshots while the first model is trained and saved, since both take several steps
// in sequence. It does nothing at a server that reads JSON, since such servers have room for few models.
func (k *check) beginSnapshot(ctx context.Context) {
	if k.noLogprobs || k.trainer.API.SendsJSON() {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	e := &early{cancel: cancel, done: make(chan struct{})}
	k.early = e
	go func() {
		defer close(e.done)
		e.err = newTrainingCheck(k).checkSnapshot(ctx)
	}()
}

// endSnapshot ends the check that beginSnapshot began. The result of the check does not count.
func (k *check) endSnapshot() {
	if k.early != nil {
		k.early.cancel()
		<-k.early.done
		k.early = nil
	}
}

// snapshot checks snapshots, or waits for the check that began early.
func (t trainingCheck) snapshot(ctx context.Context) error {
	if t.check.early == nil {
		return t.checkSnapshot(ctx)
	}
	<-t.check.early.done // its context is part of ctx
	t.check.early.cancel()
	return t.check.early.err
}

// checkSnapshot samples from weights that were saved, trains their model further, and samples from them again.
func (t trainingCheck) checkSnapshot(ctx context.Context) error {
	if !t.findings.wants(SamplerSnapshot) {
		return nil
	}
	found, err := retryFor(ctx, t.compareSnapshots)
	if err != nil {
		if err := fatal(ctx, err); err != nil {
			return err
		}
		found = Finding{Unknown, err.Error()}
	}
	t.findings.record(SamplerSnapshot, found.Support, found.Note)
	return nil
}

func (t trainingCheck) compareSnapshots(ctx context.Context) (Finding, error) {
	model, err := t.trainer.create(ctx, t.trainer.Lora)
	if err != nil {
		return Finding{}, err
	}
	request := t.check.saveRequest("probe-snapshot")
	saving, err := model.SaveSampler(ctx, request)
	if _, err := t.check.waitForSave(ctx, request, saving, err); err != nil {
		return Finding{}, err
	}
	path := tinker.Path{Run: model.ID(), Kind: tinker.KindSampler, Name: "probe-snapshot"}.String()
	t.check.snapshotPath = path
	// The check of sampling has session 0.
	number := 1 + t.trainer.samplingSessions.Add(1)
	session, err := t.trainer.API.CreateSamplingSession(ctx, t.trainer.session, number, path, "")
	if err != nil {
		return Finding{}, err
	}
	before, err := t.read(ctx, session, 0)
	if err != nil {
		return Finding{}, err
	}
	if err := t.trainer.steps(ctx, model, 1, 1, 1); err != nil {
		return Finding{}, err
	}
	moved, err := t.trainer.measure(ctx, model)
	if err != nil {
		return Finding{}, err
	}
	after, err := t.read(ctx, session, 1)
	switch training := distance(moved, t.trainer.initial); {
	case err != nil:
		return Finding{}, err
	case training < minMotion || len(before) != len(after):
		return Finding{Unknown, "training moves nothing"}, nil
	case distance(before, after) > training/4:
		return Finding{Unsupported, "sampler weights change when their model is trained"}, nil
	}
	return Finding{Support: Supported}, nil
}

// read returns the log-probabilities of the sequence in a sampling session: of its tokens as a prompt or, if the
// server returns none for prompts, of the tokens that are sampled greedily after each of its beginnings.
func (t trainingCheck) read(ctx context.Context, session string, turn int64) ([]float64, error) {
	const requests = 100
	all, err := t.trainer.API.ComputeLogprobs(ctx, session, requests*turn, sequence)
	var logprobs []float64
	if err == nil {
		for _, v := range all[1:] {
			logprobs = append(logprobs, float64(v))
		}
		return logprobs, nil
	}
	if client.CategoryFrom(err) != tinker.CategoryProtocol && !isRejected(err) {
		return nil, err
	}
	params := tinker.DefaultSampling()
	params.MaxTokens, params.TopK, params.Seed = new(1), 1, new(int64(1))
	for i := 1; i < len(sequence); i++ {
		result, err := t.trainer.API.Sample(ctx, tinker.SampleRequest{
			NumSamples: 1, Prompt: tinker.Text(sequence[:i]), SamplingParams: params, SamplingSession: session,
			SeqID: new(requests*turn + int64(i)),
		})
		if err != nil {
			return nil, err
		}
		if sampled := result.Sequences[0].Logprobs; len(sampled) > 0 {
			logprobs = append(logprobs, float64(sampled[0]))
		}
	}
	return logprobs, nil
}
