// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/workers"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// pools returns r.Pools as an interface that is nil if the manager may not make claims.
func (r *Reconciler) pools() workers.Pools {
	if r.Pools == nil {
		return nil
	}
	return r.Pools
}

// fillPools fills the environments of a run that is to start from the templates of their warm pools. If a pool cannot
// be used, checkPools or the environment's own condition says so.
func (r *Reconciler) fillPools(ctx context.Context, seen observe.State) error {
	for name, env := range seen.Environments {
		if _, err := r.Pools.Fill(ctx, r.Live, env); err != nil {
			return fmt.Errorf("reading the warm pool of environment %s: %w", name, err)
		}
	}
	return nil
}

// checkPools returns the problem of a warm pool that a run needs and that cannot be used; nil if there is none.
func (r *Reconciler) checkPools(ctx context.Context, run *v1alpha1.TrainingRun,
	pins desired.Pins) (*problem.Problem, error) {
	for _, pool := range pins.Pools() {
		if unusable, err := r.Pools.Check(ctx, r.Live, run.Namespace, pool); unusable != nil || err != nil {
			return unusable, err
		}
	}
	return nil, nil
}
