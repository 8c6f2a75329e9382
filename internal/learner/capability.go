// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// checkCapabilities finds out whether the endpoint honours what the run sets, before anything is bought for
// it. What an earlier attempt found stands; only what is not known is tried, with models that are the
// probe's own. See package capability for what that costs.
func (l *learner) checkCapabilities(ctx context.Context) error {
	needs := needsOf(l.file)
	features := featuresOf(l.file, needs)
	report := knownCapabilities(l.file)
	// What cannot be told after so many rounds is left open.
	const rounds = 2
	for round := 0; round < rounds && len(report.Missing(features)) > 0; round++ {
		found, err := l.insistOnProbe(ctx, report.Missing(features))
		if err != nil {
			return err
		}
		report = report.With(found)
	}
	l.publish(report)
	l.capabilities = report
	return refusal(l.file, needs, report)
}

// insistOnProbe waits for an endpoint that fails, however long it takes, as the loop does.
func (l *learner) insistOnProbe(ctx context.Context, features []capability.Feature) (capability.Report, error) {
	for failures := 1; ; failures++ {
		report, err := l.probe(ctx, features)
		if err == nil || ctx.Err() != nil || isTerminal(err) {
			return report, err
		}
		l.config.Logger.Warn("endpoint is not probed", "err", err)
		if err := l.pause(ctx, failures); err != nil {
			return report, err
		}
	}
}

// prober tries the endpoint with models like the run's. Those that it should leave behind are unloaded with
// those of earlier attempts.
func (l *learner) prober(features []capability.Feature) capability.Checker {
	m := l.file.Fixed.Model
	return capability.Checker{
		API: l.client, BaseURL: l.file.Fixed.BaseURL, Model: m.Name, Features: features,
		Lora: tinker.LoraConfig{Rank: m.LoraRank, TrainAttn: m.TrainAttention, TrainMLP: m.TrainMLP, TrainUnembed: m.TrainUnembed},
		UserMetadata: tinker.Metadata{
			trainee.MetadataRun: l.file.Run.UID, trainee.MetadataAttempt: strconv.Itoa(int(l.file.Attempt)), "purpose": "probe",
		},
	}
}

func (l *learner) probe(ctx context.Context, features []capability.Feature) (capability.Report, error) {
	began := l.config.Now()
	report, err := l.prober(features).Run(ctx)
	if client.CategoryFrom(err) == tinker.CategoryUser {
		return report, &trainee.SettingsError{Err: err}
	}
	if err == nil {
		l.config.Logger.Info("endpoint is probed", "seconds", l.config.Now().Sub(began).Seconds(),
			"ignored", report.List(capability.Ignored), "unsupported", report.List(capability.Unsupported),
			"unknown", report.List(capability.Unknown))
	}
	return report, err
}

// publish tells the manager what is known of the endpoint.
func (l *learner) publish(report capability.Report) {
	if len(report.Findings) == 0 {
		return
	}
	l.status.update(func(p *contract.Progress) {
		p.Capabilities = &contract.Capabilities{
			BaseURL: report.BaseURL, Model: report.Model, Supported: report.List(capability.Supported),
			Ignored: report.List(capability.Ignored), Unsupported: report.List(capability.Unsupported),
		}
	})
}

// knownCapabilities is what the run file says of the endpoint, if it is this one.
func knownCapabilities(file contract.RunFile) capability.Report {
	report := capability.Report{
		BaseURL: file.Fixed.BaseURL, Model: file.Fixed.Model.Name, Findings: map[capability.Feature]capability.Finding{},
	}
	known := file.Capabilities
	if known == nil || known.BaseURL != report.BaseURL || known.Model != report.Model {
		return report
	}
	for support, names := range map[capability.Support][]string{
		capability.Supported: known.Supported, capability.Ignored: known.Ignored, capability.Unsupported: known.Unsupported,
	} {
		for _, name := range names {
			report.Findings[capability.Feature(name)] = capability.Finding{Support: support}
		}
	}
	return report
}

// checkOptimizer says whether a model that was loaded from a state to go on with has the optimizer's state:
// an endpoint may keep that for most states and lose it for one. Before the first optimizer step there is none,
// so it looks only where one is sure to have been taken.
func (l *learner) checkOptimizer(ctx context.Context, state checkpoints.Entry, model *client.Model) (bool, error) {
	if state.Name.Step == 0 || l.capabilities.Lacks(capability.OptimizerRestore) || !l.surelyTrained(state) {
		return true, nil
	}
	return l.prober(nil).Restored(ctx, model)
}

// surelyTrained says that optimizer steps led to a state: batches may have been empty all along.
func (l *learner) surelyTrained(state checkpoints.Entry) bool {
	if l.store == nil {
		return l.file.Fixed.InitFrom == nil
	}
	at, err := positionOf(state.Name)
	if err != nil {
		return false
	}
	row, err := l.store.Row(at.step, at.lineage.String())
	return err == nil && row.Usage.TrainedTokens > 0
}
