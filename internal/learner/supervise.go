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
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/evaluation"
	"github.com/tinker-operator/tinker-operator/internal/learner/examples"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/learner/report"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rl/measure"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// readRows reads the rows of a supervised run, and decides its number of steps.
func (b *beginning) readRows(ctx context.Context) error {
	if b.learner.examples == nil {
		return nil
	}
	context, err := preflight.ContextOf(ctx, b.learner.client, b.learner.file.Fixed.Model.Name)
	if err != nil {
		return err
	}
	reader, err := examples.Open(ctx, examples.Config{
		File: b.learner.file, Data: b.learner.config.Data, Hub: b.learner.config.Hub, Logger: b.learner.config.Logger,
		Pause:   b.learner.config.Timing.wait,
		Blocked: func(err error) { b.learner.status.BlockBy(problem.RowsBlocked, err) },
	}, b.learner.status.Progress().TokenizerSHA256, context)
	if err != nil {
		return err
	}
	b.learner.reader = reader
	b.learner.examples.SetReader(reader)
	if alg := b.learner.file.Fixed.Algorithm; alg.Steps == 0 {
		alg.Steps = reader.Steps(alg.Epochs)
		b.learner.evaluator.Schedule = evaluation.NewSchedule(b.learner.file)
	}
	b.learner.status.Update(func(p *contract.Progress) {
		p.Contents, p.Steps = reader.Contents(), b.learner.file.Fixed.Algorithm.Steps
	})
	return nil
}

// needsSampler reports whether the sampler weights of a version are saved. A supervised run samples only for
// evaluations; the sampler weights of lasting checkpoints and of the last version are for its users.
func (l *learner) needsSampler(step int64) bool {
	return l.examples == nil || step == l.file.Fixed.Algorithm.Steps ||
		step > 0 && isMultiple(step, l.file.Checkpoints.EverySteps) || l.evaluator.Schedule.IsDue(step)
}

// heldOut measures the negative log-likelihood of held-out rows.
type heldOut struct {
	file      contract.RunFile
	digest    string // of the measured rows; empty if none are measured
	book      *checkpoints.Book
	journal   *artifacts.Journal
	meter     *client.Meter
	spendings *spendings
	status    *report.Status
	recorder  *recorder
	// last is the newest result.
	last *artifacts.Evaluation
}

// digestOf digests the rows that a run holds out, and how they are read; empty if it holds none out.
func digestOf(file contract.RunFile) string {
	if file.Fixed.Supervised == nil || file.Evaluation == nil || len(file.Evaluation.HeldOut) == 0 {
		return ""
	}
	encoded, err := json.Marshal(struct {
		Splits     []contract.HeldOut
		Supervised *contract.Supervised
	}{file.Evaluation.HeldOut, file.Fixed.Supervised})
	if err != nil {
		return "" // plain data always encode
	}
	sum := sha256.Sum256(encoded)
	return "heldout-" + hex.EncodeToString(sum[:4])
}

// isDue reports whether a version is to be measured.
func (h *heldOut) isDue(v rl.Version) bool {
	return h.digest != "" && evaluation.IsDue(*h.file.Evaluation, v.Step, h.file.Fixed.Algorithm.Steps)
}

// evaluate measures the version that a model holds, unless its result is known.
func (h *heldOut) evaluate(ctx, soft context.Context, v rl.Version, reader *examples.Reader,
	model *trainee.Model) error {
	if result, known := h.result(v); known {
		h.report(result)
		return nil
	}
	before := h.meter.Used().TrainedTokens
	metrics, err := h.measure(soft, reader, model)
	if err != nil {
		return fmt.Errorf("evaluating step %d: %w", v.Step, err)
	}
	h.spendings.record(ctx)
	result := artifacts.Evaluation{Version: v, Digest: h.digest, Attempt: h.file.Attempt}
	result.Metrics, _ = measure.Finite(metrics)
	result.Trained = h.meter.Used().TrainedTokens - before
	h.spendings.ledger.Measured(v)
	h.spendings.logger.Info("held-out rows are measured", "step", v.Step, "metrics", result.Metrics)
	if err := h.journal.WriteEvaluation(ctx, result, nil); err != nil {
		return err
	}
	h.last = &result
	h.report(result)
	return nil
}

// withMeasured adds the tokens with which a version was measured to the tokens that led to it, if these are known.
func (h *heldOut) withMeasured(v rl.Version, trained *int64) *int64 {
	result, known := h.journal.Evaluation(v, h.digest)
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

// result returns the result of a version, and whether it is known.
func (h *heldOut) result(v rl.Version) (artifacts.Evaluation, bool) {
	if h.last != nil && h.last.Version == v {
		return *h.last, true
	}
	return h.journal.Evaluation(v, h.digest)
}

func (h *heldOut) report(result artifacts.Evaluation) {
	if value, ok := result.Metrics[h.file.Checkpoints.KeepBestMetric]; ok {
		h.book.Score(result.Version, value)
	}
	h.recorder.tracker.Evaluated(result)
	h.status.SetEvaluation(h.file, result.Step, result.Metrics)
	h.recorder.evaluation(result.Step, result.Metrics)
}

// measure asks the endpoint for the log-probabilities of the held-out rows.
func (h *heldOut) measure(ctx context.Context, reader *examples.Reader,
	model *trainee.Model) (map[string]float64, error) {
	metrics := map[string]float64{"test/rows": 0, "test/rows_left_out": 0}
	var all examples.HeldOut
	for _, split := range h.file.Evaluation.HeldOut {
		found, err := reader.HeldOut(ctx, split, model.Logprobs)
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
