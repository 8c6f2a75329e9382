// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/learner/report"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Run trains until the run is complete or something ends the attempt, and returns the verdict. When ctx ends, the
// learner stops immediately, as if it were killed.
func Run(ctx context.Context, config Config) contract.Verdict {
	config = config.withDefaults()
	l := &learner{config: config, file: config.File, drain: make(chan struct{}), giveUp: make(chan struct{})}
	l.file.Fixed.Algorithm = config.File.Algorithm()
	l.status = report.NewStatus(l.file.Run.UID, l.file.Attempt, config.Now)
	l.repairs = preflight.RepairWait{Status: l.status, Patience: config.Timing.KeyPatience, Unattended: config.Unattended,
		Now: config.Now}
	err := l.run(ctx)
	verdict := verdictOf(err)
	if verdict.Cause == contract.CauseDrained && verdict.Reason == "" && l.wasAskedToDrain() {
		verdict.Reason = problem.StopRequested
	}
	verdict.Attempt, verdict.Progress = l.file.Attempt, l.status.Progress().Finite()
	config.Logger.Info("learner ends", "cause", verdict.Cause, "reason", verdict.Reason,
		"message", verdict.Message, "step", verdict.Progress.Step)
	return verdict
}

func (l *learner) run(ctx context.Context) error {
	ctx, l.cancel = context.WithCancelCause(ctx)
	completed := false
	defer func() {
		if completed { // Nothing uses the sessions any longer.
			l.finishSessions(ctx)
		}
	}()
	defer l.tasks.Wait()
	defer l.tracks.wait()
	defer l.cancel(nil)
	l.background = func(task func(context.Context)) { l.tasks.Go(func() { task(ctx) }) }
	if err := l.prepare(ctx); err != nil {
		l.closeListeners()
		return err
	}
	l.serve(ctx)
	soft, drain := context.WithCancelCause(ctx)
	defer drain(nil)
	l.tasks.Go(func() {
		select {
		case <-l.config.Drain:
		case <-l.drain:
		case <-soft.Done():
			return
		}
		l.status.Update(func(p *contract.Progress) { p.Phase = contract.PhaseDraining })
		drain(errDrained)
		if wait.Sleep(ctx, l.config.Timing.DrainPatience) == nil {
			close(l.giveUp)
		}
	})
	err := l.train(ctx, soft)
	// The cause of the context's end explains failed calls.
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, ErrKilled) {
		return cause
	}
	if err == nil {
		l.status.Update(func(p *contract.Progress) { p.Phase = contract.PhaseDone })
	}
	l.tracks.end(ctx, err)
	completed = err == nil
	if err == nil || errors.Is(err, errDrained) {
		l.status.AwaitRecords(ctx, historyPatience)
	}
	return err
}

// serve starts the work beside the loop.
func (l *learner) serve(ctx context.Context) {
	context.AfterFunc(ctx, l.table.Close)
	l.tasks.Go(func() {
		if err := l.server.Serve(ctx, l.config.Exchange); err != nil && ctx.Err() == nil {
			l.cancel(fmt.Errorf("serving workers: %w", err))
		}
	})
	if l.config.Heartbeat != nil {
		heartbeats := report.Server{
			RunUID: l.file.Run.UID, Credentials: l.config.Credentials, Status: l.status, Beat: l.answer, Logger: l.config.Logger,
		}
		l.tasks.Go(func() {
			if err := heartbeats.Serve(ctx, l.config.Heartbeat); err != nil {
				l.cancel(err)
			}
		})
	}
	l.background(l.tick)
	l.tracks.run(ctx)
	if l.batches != nil {
		l.background(l.batches.Run)
	}
}

// tick expires leases, and watches the workers' reports.
func (l *learner) tick(ctx context.Context) {
	ticker := time.NewTicker(l.config.Timing.Tick)
	defer ticker.Stop()
	var accepted int64
	for {
		select {
		case <-ticker.C:
			l.table.Tick()
			if now := l.table.Counters().Accepted; now != accepted {
				accepted = now
				l.status.Touch()
				l.status.SetFaults(l.table.Faults())
			}
			if p := l.table.Problem(); p.Code != "" {
				l.status.AddWorkersProblem(client.Problem{
					Code: problem.Code(p.Code), Op: p.Op, Status: int(p.Status), Evidence: p.Evidence,
				})
			}
		case <-ctx.Done():
			return
		}
	}
}

// answer answers a heartbeat and follows its orders.
func (l *learner) answer(request contract.HeartbeatRequest) contract.HeartbeatReply {
	if request.Attempt > l.file.Attempt {
		l.server.Fence()
		l.fence(request.Attempt)
	}
	if request.Desired == contract.DesiredDrain && request.Attempt <= l.file.Attempt {
		l.drainOnce.Do(func() { close(l.drain) })
	}
	reply := l.status.Reply(l.waiting(), l.workersProblems()...)
	reply.Records, reply.MoreRecords = l.status.Records(request)
	reply.Progress.WorkersSeen = len(l.table.Workers())
	reply.Unavailable = l.table.Unavailable()
	return reply
}

// workersProblems returns the problems of workers other than problems of the endpoint.
func (l *learner) workersProblems() []problem.Problem {
	found := l.table.Problems()
	for _, e := range l.table.Unavailable() {
		if !e.Skipped {
			found = append(found, problem.Problem{Code: cmp.Or(e.Code, problem.EnvironmentUnavailable),
				Evidence: strconv.Quote(e.Name)})
		}
	}
	return found
}

// waiting describes the groups that the loop waits for; empty if there are none.
func (l *learner) waiting() string {
	if l.batches == nil {
		return ""
	}
	if known, all := l.batches.Progress(); known < all {
		sampling := fmt.Sprintf("sampling: %d of %d groups", known, all)
		return strings.Join(append([]string{sampling}, l.table.Remarks()...), "; ")
	}
	return ""
}

func (l *learner) closeListeners() {
	_ = l.config.Exchange.Close()
	if l.config.Heartbeat != nil {
		_ = l.config.Heartbeat.Close()
	}
}
