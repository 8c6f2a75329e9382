// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/evaluation"
	"github.com/tinker-operator/tinker-operator/internal/learner/examples"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rl/measure"
)

// readRows reads the rows of a supervised run, and decides how many steps it has.
func (b *beginning) readRows(ctx context.Context) error {
	if b.examples == nil {
		return nil
	}
	context, err := preflight.ContextOf(ctx, b.client, b.file.Fixed.Model.Name)
	if err != nil {
		return err
	}
	reader, err := examples.Open(ctx, examples.Config{
		File: b.file, Data: b.config.Data, Hub: b.config.Hub, Logger: b.config.Logger, Pause: b.config.Timing.wait,
		Blocked: func(why string) { b.status.Block(problem.RowsBlocked, why) },
	}, b.status.Progress().TokenizerSHA256, context)
	if err != nil {
		return err
	}
	b.reader = reader
	b.examples.SetReader(reader)
	if alg := b.file.Fixed.Algorithm; alg.Steps == 0 {
		alg.Steps = reader.Steps(alg.Epochs)
		b.evaluator.Schedule = evaluation.NewSchedule(b.file)
	}
	b.status.Update(func(p *contract.Progress) {
		p.Contents, p.Steps = reader.Contents(), b.file.Fixed.Algorithm.Steps
	})
	return nil
}

// needsSampler reports whether the sampler weights of a version are saved. A supervised run samples only what it
// evaluates; those of lasting checkpoints and of the last version are for its users.
func (l *learner) needsSampler(step int64) bool {
	return l.examples == nil || step == l.file.Fixed.Algorithm.Steps ||
		step > 0 && isMultiple(step, l.file.Checkpoints.EverySteps) || l.evaluator.Schedule.IsDue(step)
}

// heldOut measures the negative log-likelihood of held-out rows.
type heldOut struct{ *learner }

// digest digests what is measured; empty where nothing is.
func (l heldOut) digest() string {
	if l.examples == nil || l.file.Evaluation == nil || len(l.file.Evaluation.HeldOut) == 0 {
		return ""
	}
	encoded, err := json.Marshal(struct {
		Splits     []contract.HeldOut
		Supervised *contract.Supervised
	}{l.file.Evaluation.HeldOut, l.file.Fixed.Supervised})
	if err != nil {
		return "" // plain data always encode
	}
	sum := sha256.Sum256(encoded)
	return "heldout-" + hex.EncodeToString(sum[:4])
}

// evaluate measures the version that the model holds if that is due and was not done.
func (l heldOut) evaluate(ctx, soft context.Context) error {
	digest, v := l.digest(), l.loop.at.Version
	if digest == "" || !evaluation.IsDue(*l.file.Evaluation, v.Step, l.file.Fixed.Algorithm.Steps) {
		return nil
	}
	if err := committer(l).complete(ctx); err != nil {
		return err
	}
	if result, known := l.result(v, digest); known {
		l.report(result)
		return nil
	}
	before := l.meter.Used().TrainedTokens
	metrics, err := l.measure(soft)
	if err != nil {
		return fmt.Errorf("evaluating step %d: %w", v.Step, err)
	}
	spent(l).record(ctx)
	result := artifacts.Evaluation{Version: v, Digest: digest, Attempt: l.file.Attempt}
	result.Metrics, _ = measure.Finite(metrics)
	result.Trained = l.meter.Used().TrainedTokens - before
	l.ledger.Measured(v)
	l.config.Logger.Info("held-out rows are measured", "step", v.Step, "metrics", result.Metrics)
	if err := l.journal.WriteEvaluation(ctx, result, nil); err != nil {
		return err
	}
	l.loop.heldOut = &result
	l.report(result)
	return nil
}

// withMeasured adds the tokens by which a version was measured to those that led to it, if these are known.
func (l heldOut) withMeasured(v rl.Version, trained *int64) *int64 {
	result, known := l.journal.Evaluation(v, l.digest())
	switch {
	case !known:
		return trained
	case trained != nil:
		return new(*trained + result.Trained)
	case v.Step == 0:
		return &result.Trained
	default:
		return nil
	}
}

// result returns the result of a version that is known.
func (l heldOut) result(v rl.Version, digest string) (artifacts.Evaluation, bool) {
	if last := l.loop.heldOut; last != nil && last.Version == v {
		return *last, true
	}
	return l.journal.Evaluation(v, digest)
}

func (l heldOut) report(result artifacts.Evaluation) {
	if value, ok := result.Metrics[l.file.Checkpoints.KeepBestMetric]; ok {
		l.book.Score(result.Version, value)
	}
	l.tracker.Evaluated(result)
	l.status.SetEvaluation(l.file, result.Step, result.Metrics)
	recorder(l).evaluation(result.Step, result.Metrics)
}

// measure asks the endpoint for the log-probabilities of the held-out rows.
func (l heldOut) measure(ctx context.Context) (map[string]float64, error) {
	metrics := map[string]float64{"test/rows": 0, "test/rows_left_out": 0}
	var all examples.HeldOut
	for _, split := range l.file.Evaluation.HeldOut {
		found, err := l.reader.HeldOut(ctx, split, l.loop.model.Logprobs)
		if err != nil {
			return nil, err
		}
		metrics["test/rows"] += float64(found.Rows)
		metrics["test/rows_left_out"] += float64(found.LeftOut)
		if mean, ok := found.Mean(); ok {
			metrics["test/"+split.Name+"/nll"] = mean
		}
		all.Join(found.NLL)
	}
	mean, ok := all.Mean()
	if !ok {
		return metrics, errors.New("no held-out row can be measured")
	}
	metrics[contract.MetricHeldOutNLL] = mean
	return metrics, nil
}
