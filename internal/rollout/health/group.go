// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Group is the health of an environment for the episodes of one group.
type Group struct {
	monitor *Monitor
	breaker *breaker
	slot    int64
	maySkip bool
}

// Admit waits until an episode may begin. The error is a permanent *environment.Fault if the learner skips the
// environment, and otherwise the context's.
func (g *Group) Admit(ctx context.Context) error {
	fault, err := wait.For(ctx, &g.monitor.changes, func() (*environment.Fault, bool) {
		g.monitor.mu.Lock()
		defer g.monitor.mu.Unlock()
		b := g.breaker
		switch {
		case !b.open:
			return nil, true
		case g.maySkip && g.monitor.skipped[b.name]:
			err := fmt.Errorf("the environment is unavailable and onUnavailable is Skip: %s", b.problem)
			return &environment.Fault{Permanent: true, Err: err}, true
		}
		return nil, false
	})
	switch {
	case err != nil:
		return err
	case fault != nil:
		return fault
	}
	return nil
}

// Begun notes that an episode has begun. Ended follows.
func (g *Group) Begun() {
	g.monitor.mu.Lock()
	defer g.monitor.mu.Unlock()
	g.breaker.running++
}

// Ended notes how a try ended: with a *environment.Fault, without an error, or with another error, which says nothing
// about the environment. begun says whether the try has begun.
func (g *Group) Ended(begun bool, err error) {
	g.monitor.mu.Lock()
	defer g.monitor.mu.Unlock()
	if begun {
		g.breaker.running--
	}
	var fault *environment.Fault
	switch {
	case err == nil:
		g.breaker.succeed()
	case errors.As(err, &fault) && g.breaker.fail(fault, g.slot):
		g.monitor.open(g.breaker, fault)
	}
}
