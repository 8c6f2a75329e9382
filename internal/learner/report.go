// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/store"
)

// usage is what the run has paid for: what rows told at the start, and what came since.
type usage struct {
	base    store.Usage
	trained int64
	seconds float64
}

// usageNow adds up what was paid for, as far as this learner knows.
func (l *learner) usageNow() store.Usage {
	counted := l.board.Counters()
	return store.Usage{
		PromptTokens:      l.usage.base.PromptTokens + counted.PromptTokens,
		SampledTokens:     l.usage.base.SampledTokens + counted.SampledTokens,
		TrainedTokens:     l.usage.base.TrainedTokens + l.usage.trained,
		BoughtTwiceTokens: l.usage.base.BoughtTwiceTokens + counted.BoughtTwiceTokens,
	}
}

// restoreUsage takes up what the row of the loaded version says, once: what this process did stays counted
// when an older state is loaded.
func (l *learner) restoreUsage() {
	if l.begun || l.store == nil || l.at.step == 0 {
		return
	}
	row, err := l.store.Row(l.at.step, l.at.lineage.String())
	if err != nil {
		l.config.Logger.Warn("usage so far is not known", "err", err)
		return
	}
	l.usage.base, l.usage.seconds = row.Usage, row.TrainingSeconds
}

// report changes what the heartbeat says, and brings the rest of it up to date.
func (l *learner) report(change func(*contract.Progress)) {
	used := l.usageNow()
	checkpoints, best := l.checkpoints()
	l.status.update(func(p *contract.Progress) {
		p.Step, p.Cursor, p.Lineage = l.saved.step, l.saved.cursor, l.saved.lineage.String()
		if l.file.Fixed.Algorithm != nil {
			p.Steps = l.file.Fixed.Algorithm.Steps
		}
		p.Usage = contract.Usage(used)
		p.TrainingSeconds = l.usage.seconds
		p.Checkpoints, p.Best = checkpoints, best
		p.WorkersSeen = l.board.Alive()
		change(p)
		p.Environments = environmentsOf(l.file, p.Metrics)
	})
}

// checkpoints lists the newest states of the chain with their samplers, and the best.
func (l *learner) checkpoints() ([]contract.Checkpoint, *contract.Checkpoint) {
	const most = 16
	l.mu.Lock()
	defer l.mu.Unlock()
	samplers := map[checkpoints.Version]string{}
	for _, e := range l.ledger.Samplers() {
		if samplers[e.VersionOf()] == "" {
			samplers[e.VersionOf()] = e.Path
		}
	}
	var list []contract.Checkpoint
	var best *contract.Checkpoint
	for _, e := range l.ledger.States() {
		if e.Name.Step > l.saved.step || l.chain[e.Name.Step] != e.Name.Lineage || !e.Listed {
			continue
		}
		c := contract.Checkpoint{
			Step: e.Name.Step, State: e.Path, Sampler: samplers[e.VersionOf()], Lineage: e.Name.Lineage,
			Attempt: e.Name.Attempt, SaveTime: e.SaveTime, ExpirationTime: e.ExpirationTime,
		}
		if len(list) < most {
			list = append(list, c)
		}
		if best == nil && len(l.best) > 0 && l.best[0].version == e.VersionOf() {
			value := l.best[0].value
			c.Metric, c.Value = l.file.Checkpoints.KeepBestMetric, &value
			best = &c
		}
	}
	return list, best
}

// measureEvaluation puts the metrics of an evaluation beside those of the newest step.
func (l *learner) measureEvaluation(metrics map[string]float64) {
	l.status.update(func(p *contract.Progress) {
		merged := maps.Clone(p.Metrics)
		if merged == nil {
			merged = map[string]float64{}
		}
		maps.DeleteFunc(merged, func(name string, _ float64) bool { return isTest(name) })
		maps.Copy(merged, metrics)
		p.Metrics = merged
		p.Environments = environmentsOf(l.file, merged)
	})
}

// withEvaluation adds the newest evaluation's metrics to a step's.
func withEvaluation(step, before map[string]float64) map[string]float64 {
	merged := maps.Clone(step)
	for name, value := range before {
		if isTest(name) {
			merged[name] = value
		}
	}
	return merged
}

// environmentsOf picks the metrics of each environment.
func environmentsOf(file contract.RunFile, metrics map[string]float64) []contract.EnvironmentMetrics {
	const most = 32
	names := map[string]bool{}
	for _, env := range file.Fixed.Environments {
		names[env.Name] = true
	}
	if file.Evaluation != nil {
		for _, env := range file.Evaluation.Environments {
			names[env.Name] = true
		}
	}
	pick := func(name string) *float64 {
		if value, ok := metrics[name]; ok {
			return &value
		}
		return nil
	}
	var list []contract.EnvironmentMetrics
	for _, name := range slices.Sorted(maps.Keys(names)) {
		list = append(list, contract.EnvironmentMetrics{
			Name: name, Reward: pick("env/" + name + "/reward/total"),
			PassAt1: pick("test/" + name + "/pass@1"), FaultRatio: pick("env/" + name + "/fault_ratio"),
		})
	}
	return list[:min(len(list), most)]
}
