// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"cmp"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
)

// scored is a version with the value of the metric that the best are chosen by.
type scored struct {
	version checkpoints.Version
	value   float64
}

// retirements lists what is out of use by now.
func (l *learner) retirements() []checkpoints.Retirement {
	if l.train == nil {
		return nil
	}
	c := l.file.Checkpoints
	retention := checkpoints.Retention{
		Lag: int64(l.file.Fixed.Algorithm.Lag), EverySteps: c.EverySteps, TTLSeconds: c.TTLSeconds,
		RollingTTLSeconds: c.RollingTTLSeconds, KeepLast: c.KeepLast,
	}
	outstanding := l.evaluations.outstanding()
	l.mu.Lock()
	defer l.mu.Unlock()
	needed := map[checkpoints.Version]bool{}
	for _, v := range outstanding {
		needed[v] = true
	}
	for _, s := range l.best {
		needed[s.version] = true
	}
	return retention.Retire(l.ledger, checkpoints.Now{
		Step: l.saved.step, Attempt: l.file.Attempt, Chain: l.chain, Needed: needed,
	})
}

// expire notes a retirement that the server took. What goes soon is forgotten.
func (l *learner) expire(r checkpoints.Retirement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.TTLSeconds != l.file.Checkpoints.TTLSeconds {
		delete(l.ledger, r.Path)
		return
	}
	e := l.ledger[r.Path]
	e.Expires = true
	e.ExpirationTime = l.config.Now().Add(time.Duration(r.TTLSeconds) * time.Second).UTC().Format(time.RFC3339)
	l.ledger.Add(e)
}

// keepBest puts a version among the best if its value is.
func (l *learner) keepBest(v checkpoints.Version, value float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.best = slices.DeleteFunc(l.best, func(s scored) bool { return s.version == v })
	l.best = append(l.best, scored{version: v, value: value})
	// Of equal ones the earlier is kept, so that the best does not change for nothing.
	slices.SortStableFunc(l.best, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.version.Step, b.version.Step))
	})
	l.best = l.best[:min(len(l.best), l.file.Checkpoints.KeepBestCount)]
}

// judge scores a version by the metric of the step that led to it, should the best be chosen by one of those.
func (l *learner) judge(v checkpoints.Version) {
	if value, ok := l.status.progress().Metrics[l.file.Checkpoints.KeepBestMetric]; ok && !l.plan.measures(l.file.Checkpoints.KeepBestMetric) {
		l.keepBest(v, value)
	}
}

// restoreBest scores the evaluated versions of the chain again, as their rows say.
func (l *learner) restoreBest() {
	l.completeChain()
	l.mu.Lock()
	l.best = nil
	l.mu.Unlock()
	metric := l.file.Checkpoints.KeepBestMetric
	for step := range l.at.step + 1 {
		if !l.plan.isDue(step, l.file) {
			continue
		}
		result, ok := l.resultAt(step)
		if !ok {
			continue
		}
		if value, ok := result.Metrics[metric]; ok {
			l.keepBest(checkpoints.Version{Step: step, Lineage: result.Lineage[:shortLineage]}, value)
		}
	}
}
