// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// window gives the versions that the next steps sample: the one that was loaded and, with a lag, those
// before it. One that has neither sampler nor state is gone, and with it those before; the next newer one
// stands in, which the run has to say.
func (l *learner) window(ctx context.Context, sampler string) ([]leases.Version, error) {
	versions := []leases.Version{{Step: l.at.step, Lineage: l.at.lineage, Sampler: sampler}}
	oldest := max(0, l.at.step-int64(l.file.Fixed.Algorithm.Lag))
	for step := l.at.step - 1; step >= oldest; step-- {
		version, err := l.revive(ctx, step)
		if errors.Is(err, errVersionLost) {
			lost := int32(step - oldest + 1)
			l.status.update(func(p *contract.Progress) { p.LostVersions += lost })
			l.config.Logger.Warn("version of the lag's window is gone: the run is no longer reproducible", "step", step, "err", err)
			break
		}
		if err != nil {
			return nil, err
		}
		versions = append(versions, version)
	}
	slices.Reverse(versions)
	return versions, nil
}

// errVersionLost says that a version can never be sampled again.
var errVersionLost = errors.New("neither sampler weights nor state are left")

// revive finds the sampler weights of an earlier version of the chain, or makes them again, bit for bit, from
// its state.
func (l *learner) revive(ctx context.Context, step int64) (leases.Version, error) {
	short, ok := l.lineageAt(step)
	if !ok {
		return leases.Version{}, fmt.Errorf("step %d: %w: its lineage is not known", step, errVersionLost)
	}
	lineage, err := rl.LineageFromShort(short)
	if err != nil {
		return leases.Version{}, err
	}
	version := leases.Version{Step: step, Lineage: lineage}
	for _, e := range l.find(checkpoints.Version{Step: step, Lineage: short}, true) {
		if e.Listed && !l.isExpired(e) {
			version.Sampler = e.Path
			return version, nil
		}
	}
	version.Sampler, err = l.remake(ctx, checkpoints.Version{Step: step, Lineage: short})
	return version, err
}

// remake makes sampler weights of a version from its state: load, save, unload.
func (l *learner) remake(ctx context.Context, v checkpoints.Version) (string, error) {
	states := l.find(v, false)
	if len(states) == 0 {
		return "", fmt.Errorf("step %d: %w", v.Step, errVersionLost)
	}
	model, state, err := l.opener.Restore(ctx, states)
	if errors.Is(err, trainee.ErrNoUsableState) {
		return "", fmt.Errorf("step %d: %w: %w", v.Step, errVersionLost, err)
	}
	if err != nil {
		return "", err
	}
	defer model.Abandon(ctx)
	name := state.Name
	name.Attempt, name.Model = l.file.Attempt, model.Number
	path, err := model.SaveSampler(ctx, name.String())
	if err != nil {
		return "", err
	}
	l.enter(path, name, true)
	return path, nil
}

// lineageAt is the lineage of an earlier version, as names or rows tell.
func (l *learner) lineageAt(step int64) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	short, ok := l.chain[step]
	return short, ok
}

// completeChain fills in from the rows what no name tells any more.
func (l *learner) completeChain() {
	if l.store == nil {
		return
	}
	l.store.Chain(l.at.step, l.at.lineage.String(), func(row store.Row) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(row.Parent) < shortLineage {
			return false
		}
		l.chain[row.Step-1] = row.Parent[:shortLineage]
		return true
	})
}

func (l *learner) find(v checkpoints.Version, sampler bool) []checkpoints.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ledger.Find(v, sampler)
}

func (l *learner) isExpired(e checkpoints.Entry) bool {
	if e.ExpirationTime == "" {
		return false
	}
	at, err := time.Parse(time.RFC3339, e.ExpirationTime)
	return err == nil && !l.config.Now().Before(at)
}
