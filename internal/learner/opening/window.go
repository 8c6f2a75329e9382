// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package opening

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Window returns the versions that the next steps sample, the oldest first: the loaded version, whose sampler weights
// are given, and with a lag the versions before it. A version that has neither sampler weights nor a state is lost, and
// so are the versions before it. The next newer version replaces them. lost is the number of versions that are newly
// lost.
func (o *Opener) Window(ctx context.Context, at checkpoints.Position,
	sampler string) (versions []leases.Version, lost int32, err error) {
	versions = []leases.Version{{Step: at.Step, Lineage: at.Lineage, Sampler: sampler}}
	oldest := max(0, at.Step-int64(o.File.Fixed.Algorithm.Lag))
	for step := at.Step - 1; step >= oldest; step-- {
		version, err := o.earlier(ctx, step)
		if errors.Is(err, checkpoints.ErrVersionLost) {
			lost = o.lose(oldest, step)
			o.Logger.Warn("version of the lag's window is lost: the run is no longer reproducible", "step", step, "err", err)
			break
		}
		if err != nil {
			return nil, 0, err
		}
		versions = append(versions, version)
	}
	slices.Reverse(versions)
	return versions, lost, nil
}

// lose notes that the versions of some steps are lost, and returns the number of newly lost ones.
func (o *Opener) lose(oldest, newest int64) (more int32) {
	if o.lost == nil {
		o.lost = map[int64]bool{}
	}
	for step := oldest; step <= newest; step++ {
		if !o.lost[step] {
			o.lost[step] = true
			more++
		}
	}
	return more
}

func (o *Opener) earlier(ctx context.Context, step int64) (leases.Version, error) {
	v, ok := o.Book.Version(step)
	if !ok {
		return leases.Version{}, fmt.Errorf("step %d: %w: its lineage is not known", step, checkpoints.ErrVersionLost)
	}
	return o.Find(ctx, v)
}

// Find finds sampler weights of an earlier version of the chain that no worker has missed, or makes them again, bit for
// bit, from its state.
func (o *Opener) Find(ctx context.Context, v rl.Version) (leases.Version, error) {
	version := leases.Version{Step: v.Step, Lineage: v.Lineage}
	for _, e := range o.Book.Find(v, true) {
		if e.Listed && !e.IsExpired(o.Now()) && !o.IsMissing(e.Path) {
			version.Sampler = e.Path
			return version, nil
		}
	}
	path, err := o.Remake(ctx, v)
	version.Sampler = path
	return version, err
}

// Remake makes sampler weights of a version again, from its state, and returns their path.
func (o *Opener) Remake(ctx context.Context, v rl.Version) (string, error) {
	states := o.Book.Find(v, false)
	if len(states) == 0 {
		return "", fmt.Errorf("step %d: %w", v.Step, checkpoints.ErrVersionLost)
	}
	path, name, err := o.Models.RemakeSampler(ctx, states)
	if failure.CodeOf(err) == problem.NoUsableCheckpoint {
		return "", fmt.Errorf("step %d: %w: %w", v.Step, checkpoints.ErrVersionLost, err)
	}
	if err != nil {
		return "", err
	}
	o.Saved(path, name, true)
	return path, nil
}
