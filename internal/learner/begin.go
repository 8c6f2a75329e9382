// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/evaluation"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// beginning does the work that an attempt does once: it claims its number, finds out whether the endpoint can serve the
// run, and makes the session in which groups are sampled.
type beginning struct{ learner *learner }

func (*beginning) number() int64 { return -1 }

func (b *beginning) claim(ctx context.Context) error {
	err := b.learner.journal.Claim(ctx)
	if err == nil {
		err = b.adopt(ctx)
	}
	if err == nil {
		if record, known := b.learner.journal.Spending(); known {
			b.learner.ledger.Restore(record)
		}
		b.learner.tracks.tracker.Start()
	}
	return err
}

// pinTokenizer decides the file of the run's tokenizer and the text of its chat template. It sends the digest of the
// file and the whole text to the workers.
func (b *beginning) pinTokenizer(ctx context.Context) error {
	digest, err := b.learner.preflight.PinTokenizer(ctx)
	if err != nil {
		return err
	}
	template, rendersBy, err := b.learner.preflight.PinTemplate(ctx, digest)
	if err != nil || digest == "" && template == nil {
		return err
	}
	// The settings were digested before the template was read: the digest covers the template's source.
	b.learner.file.Fixed.Model.Template = template
	play, err := encodePlay(b.learner.file, digest, false)
	if err != nil {
		return err
	}
	b.learner.table.SetPlay(play)
	b.learner.status.Update(func(p *contract.Progress) { p.TokenizerSHA256, p.TemplateSHA256 = digest, rendersBy })
	return nil
}

// check finds out whether the endpoint can serve the run.
func (b *beginning) check(ctx context.Context) error {
	if err := b.learner.preflight.CheckModel(ctx); err != nil {
		return err
	}
	if b.learner.preflight.Known().Lacks(capability.Protobuf) {
		b.learner.client.UseJSON() // an earlier attempt found the encoding
	}
	found, err := b.learner.preflight.CheckFeatures(ctx)
	b.learner.spendings.record(ctx)
	if known := b.learner.preflight.Capabilities(found); known != nil {
		b.learner.status.Update(func(p *contract.Progress) { p.Capabilities = known })
	}
	b.learner.loop.capabilities = preflight.Assumed(found)
	b.learner.features.known = b.learner.loop.capabilities
	return errors.Join(err, b.adapt(b.learner.loop.capabilities))
}

// adapt compensates for differences of the endpoint.
func (b *beginning) adapt(found capability.Report) error {
	if found.Lacks(capability.Repeats) {
		b.learner.client.NeverRepeatSteps()
	}
	b.learner.factory.Averages.Store(found.Of(capability.GradientSum) == capability.Ignored)
	if found.Of(capability.Seed) != capability.Unsupported {
		return nil
	}
	play, err := encodePlay(b.learner.file, b.learner.status.Progress().TokenizerSHA256, true)
	if err == nil {
		b.learner.table.SetPlay(play)
	}
	return err
}

// connect makes the session in which groups are sampled, or takes over the session of the attempt before.
func (b *beginning) connect(ctx context.Context) error {
	b.learner.rollouts.Adopt(ctx, b.learner.journal.Session())
	if _, err := b.learner.rollouts.Get(ctx); err != nil {
		return err
	}
	if b.learner.journal.HasStore() {
		b.learner.table.Expect(b.learner.journal.Workers())
		b.learner.background(func(ctx context.Context) {
			recordWorkers(ctx, b.learner.table, b.learner.journal, b.learner.config.Timing.wait)
		})
	}
	b.learner.background(b.learner.spendings.keepRecording)
	b.learner.background(func(ctx context.Context) { b.learner.rollouts.Keep(ctx, b.learner.config.Timing.Tick) })
	return nil
}

// workerList lists the workers for which the next attempt waits.
type workerList interface {
	Expected() []string
	Changed() <-chan struct{}
}

// workerRecord records workers, and reports whether that succeeded.
type workerRecord interface {
	SetWorkers(names []string) bool
}

// recordWorkers records the workers for which the next attempt waits, whenever they change, until ctx ends. If the
// store does not answer, recordWorkers tries again after a pause.
func recordWorkers(ctx context.Context, table workerList, journal workerRecord,
	pause func(context.Context, int) error) {
	var recorded []string
	for failures := 0; ctx.Err() == nil; {
		changed := table.Changed()
		names := table.Expected()
		if len(names) > 0 && !slices.Equal(names, recorded) {
			if !journal.SetWorkers(names) {
				failures++
				_ = pause(ctx, failures)
				continue
			}
			recorded, failures = names, 0
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// encodePlay encodes the settings that workers need. digest is the digest of the tokenizer's file; while it is empty,
// workers require the digest of the run file. shortSeeds says that the endpoint refuses seeds of more than 31 bits.
func encodePlay(file contract.RunFile, digest string, shortSeeds bool) ([]byte, error) {
	play := contract.Play{
		Version: file.Version, Model: file.Fixed.Model, Environments: file.Fixed.Environments,
		Concurrency: file.Concurrency, Evaluations: evaluation.NewSchedule(file).Environments(),
		ShortSeeds: shortSeeds,
	}
	if t := play.Model.Tokenizer; t != nil {
		pinned := *t
		pinned.SHA256 = cmp.Or(digest, t.SHA256, file.TokenizerSHA256)
		play.Model.Tokenizer = &pinned
	}
	if alg := file.Fixed.Algorithm; alg != nil {
		play.StepRewards = alg.Grouping == algorithm.GroupingStep
		if alg.KL != nil {
			play.Reference = alg.KL.Reference
		}
	}
	return contract.EncodePlay(play)
}
