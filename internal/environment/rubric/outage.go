// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rubric

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// outage lets the calls of one grader find out together whether the judge is down, and wait until it answers again.
type outage struct {
	// trial holds a token while one of the calls tests the judge and the others wait.
	trial chan struct{}
	// ended counts the outages that are over.
	ended atomic.Int64
}

func newOutage() outage { return outage{trial: make(chan struct{}, 1)} }

// await decides why a call has failed permanently. If the judge answers another request, await returns false: the
// call itself is at fault. It also returns false if Options.Wait is false. Otherwise it waits until the judge
// answers, however long that takes, and returns true: nothing is scored without a judge, and no reply is the cause.
// The time limit of the episode does not run meanwhile. The error is the context's.
func (g *Grader) await(ctx context.Context, ended int64, calls *tally, failure error) (wasDown bool, err error) {
	defer calls.recorder.Pause()()
	select {
	case g.outage.trial <- struct{}{}:
		defer func() { <-g.outage.trial }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if g.outage.ended.Load() != ended {
		return true, nil
	}
	if !g.options.Wait || g.answers(ctx, calls) {
		return false, ctx.Err()
	}
	defer g.options.Report(nil)
	for between := (wait.Pauses{Backoff: pauses}); ; {
		g.options.Report(failure)
		if err := g.sleep(ctx, between.Next()); err != nil {
			return false, err
		}
		if g.answers(ctx, calls) {
			g.outage.ended.Add(1)
			return true, nil
		}
	}
}

// answers reports whether the judge answers a request that is certainly valid.
func (g *Grader) answers(ctx context.Context, calls *tally) bool {
	_, err := g.complete(ctx, Request{Messages: trialMessages()}, calls)
	var reply *ReplyError
	var fault *environment.Fault
	return err == nil || errors.As(err, &reply) || errors.As(err, &fault)
}

// rest is the time until which a judge that is busy wants no calls. All calls observe it.
type rest struct {
	now   func() time.Time
	mu    sync.Mutex
	until time.Time
}

// take prolongs the rest, up to a bound.
func (r *rest) take(d time.Duration) {
	if r.now == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if until := r.now().Add(min(d, longestAskedPause)); until.After(r.until) {
		r.until = until
	}
}

// left returns how long the rest lasts.
func (r *rest) left() time.Duration {
	if r.now == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until.Sub(r.now())
}
