// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	contracttracking "github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Config configures a Tracker.
type Config struct {
	Sinks []Sink
	// Uploads are the run's rollouts; nil if they are not sent.
	Uploads *Uploads
	// Rows are the rows of the run.
	Rows rows
	// Report receives the problems of all services whenever one has changed.
	Report func([]contracttracking.Problem)
	Logger *slog.Logger
	// Interval is the minimum time between two writes to a service that is up to date, Silence the maximum time without a
	// write, and Pause the first pause after a failure, which doubles up to a minute.
	Interval, Silence, Pause time.Duration
}

// maxLines bounds one write.
const maxLines = 256

// longestPause bounds the pause after failures.
const longestPause = time.Minute

// Tracker sends the lines of a run to the sinks, and its rollouts to OpenReward. It does nothing if there are neither
// sinks nor Uploads.
type Tracker struct {
	config Config
	series *series
	// started is closed once services may be connected to.
	started chan struct{}
	start   sync.Once
	// ending is closed when the run ends, with the outcome.
	ending  chan struct{}
	outcome Outcome

	mu       sync.Mutex
	problems map[string]contracttracking.Problem
	// sent is the newest step that each service has, by its name.
	sent map[string]int64
}

// errRewound says that the run has returned to an earlier version, so that a sink has to compare the steps of its
// service.
var errRewound = errors.New("the run has returned to an earlier version")

// NewTracker returns a tracker that sends nothing yet.
func NewTracker(config Config) *Tracker {
	return &Tracker{
		config: config, series: newSeries(config.Rows), started: make(chan struct{}), ending: make(chan struct{}),
		problems: map[string]contracttracking.Problem{}, sent: map[string]int64{},
	}
}

// Resume sets the series to a version that was loaded; chain has the rows that led to it, the newest first.
func (t *Tracker) Resume(at rl.Version, chain []artifacts.Row) {
	if len(t.config.Sinks) > 0 {
		t.series.resume(at, chain)
	}
	t.config.Uploads.resume(at, chain)
}

// Commit adds a step.
func (t *Tracker) Commit(row artifacts.Row) {
	if len(t.config.Sinks) > 0 {
		t.series.commit(row)
	}
	t.config.Uploads.commit(row.Version)
}

// Advance makes lines available up to a version that is saved. last says whether it is the last version of the run,
// and outstanding are the versions whose evaluation has no result yet.
func (t *Tracker) Advance(at rl.Version, last bool, outstanding []rl.Version) {
	t.series.advance(at, last, outstanding)
}

// Restore adds the result of an evaluation of an earlier attempt.
func (t *Tracker) Restore(result artifacts.Evaluation) {
	t.series.evaluated(result.Version, result.Metrics, false)
}

// Evaluated adds the result of an evaluation that has ended.
func (t *Tracker) Evaluated(result artifacts.Evaluation) {
	t.series.evaluated(result.Version, result.Metrics, true)
}

// Start makes Run connect to the services. It is called once the attempt is claimed.
func (t *Tracker) Start() { t.start.Do(func() { close(t.started) }) }

// Run sends all lines from Start on until the run has ended and everything is sent, or until ctx ends.
func (t *Tracker) Run(ctx context.Context) {
	var sinks sync.WaitGroup
	for _, service := range t.services() {
		t.report(service, &contracttracking.Problem{
			Service: service, Reason: problem.Connecting, Message: "The learner has not connected to the service yet",
		})
	}
	if !t.awaitStart(ctx) {
		return
	}
	for _, sink := range t.config.Sinks {
		sinks.Go(func() {
			t.send(ctx, sink.Service(), func(ctx context.Context) (bool, error) { return t.connect(ctx, sink) })
		})
	}
	if t.config.Uploads != nil {
		sinks.Go(func() { t.send(ctx, openRewardService, t.upload) })
	}
	sinks.Wait()
}

// awaitStart waits for Start, and reports whether it came before the end of the run and of ctx.
func (t *Tracker) awaitStart(ctx context.Context) bool {
	select {
	case <-t.started:
		return true
	case <-t.ending:
	case <-ctx.Done():
	}
	return wait.IsClosed(t.started) // It may have come at the same time.
}

// End makes Run send the remaining lines at once, and end.
func (t *Tracker) End(outcome Outcome) {
	t.outcome = outcome
	close(t.ending)
}

// openRewardService is the service that receives rollouts.
const openRewardService = "openreward"

// services returns the names of all services.
func (t *Tracker) services() []string {
	var names []string
	for _, sink := range t.config.Sinks {
		names = append(names, sink.Service())
	}
	if t.config.Uploads != nil {
		names = append(names, openRewardService)
	}
	return names
}

// upload sends rollouts until the run has ended; sent reports whether the service accepted any before a failure.
func (t *Tracker) upload(ctx context.Context) (sent bool, err error) {
	err = t.config.Uploads.send(ctx, t.hasEnded,
		func(changed <-chan struct{}) bool { return t.wait(ctx, changed, t.config.Silence) },
		func(received bool) {
			sent = sent || received
			t.report(openRewardService, nil)
		})
	return sent, err
}

// send calls connect, which sends to a service, until connect succeeds or ctx ends. It pauses after each failure.
func (t *Tracker) send(ctx context.Context, service string, connect func(context.Context) (sent bool, err error)) {
	for failures := 0; ; failures++ {
		sent, err := connect(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if errors.Is(err, errRewound) {
			failures = -1
			continue
		}
		if sent {
			failures = 0
		}
		t.config.Logger.Warn("tracking service does not record the run", "service", service, "err", err)
		t.report(service, problemOf(service, err))
		if !t.sleep(ctx, t.pause(failures+1, err)) {
			return
		}
	}
}

// connect opens a sink and sends until the run has ended; sent reports whether anything was sent before a failure.
func (t *Tracker) connect(ctx context.Context, sink Sink) (sent bool, err error) {
	rewinds := t.series.rewinds.Load()
	newest, err := sink.Open(ctx)
	if err != nil {
		return false, err
	}
	t.report(sink.Service(), nil)
	t.received(sink.Service(), newest)
	wrote := time.Time{}
	for {
		lines, changed, err := t.series.lines(newest, maxLines)
		if err != nil {
			return sent, err
		}
		if t.series.rewinds.Load() != rewinds {
			return sent, errRewound
		}
		wait := t.config.Silence - time.Since(wrote)
		if len(lines) > 0 {
			wait = t.config.Interval - time.Since(wrote)
		}
		if t.hasEnded() && len(lines) == 0 {
			return sent, sink.Close(ctx, t.outcome)
		}
		if wait > 0 && len(lines) < maxLines && !t.hasEnded() {
			if len(lines) > 0 {
				changed = nil
			}
			if !t.wait(ctx, changed, wait) {
				return sent, context.Cause(ctx)
			}
			continue
		}
		if err := sink.Write(ctx, lines); err != nil {
			return sent, err
		}
		wrote, sent = time.Now(), true
		if n := len(lines); n > 0 {
			newest = lines[n-1].Step
			t.received(sink.Service(), newest)
		}
	}
}

// hasEnded reports whether the run has ended.
func (t *Tracker) hasEnded() bool { return wait.IsClosed(t.ending) }

// wait waits until something has changed, the run has ended or a time is over, and reports whether ctx has not ended.
func (t *Tracker) wait(ctx context.Context, changed <-chan struct{}, longest time.Duration) bool {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-changed:
	case <-t.ending:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// pause returns the pause after a number of failures. err is the last failure.
func (t *Tracker) pause(failures int, err error) time.Duration {
	pause := wait.Backoff{First: t.config.Pause, Longest: longestPause}.After(failures)
	if p, ok := errors.AsType[*serviceError](err); ok && p.retryAfter > 0 {
		pause = min(p.retryAfter, longestPause)
	}
	return pause
}

// sleep waits after a failure, and reports whether ctx has not ended. Once the run has ended, it waits at most for
// the first pause.
func (t *Tracker) sleep(ctx context.Context, pause time.Duration) bool {
	first := min(pause, t.config.Pause)
	return t.wait(ctx, nil, pause) && (!t.hasEnded() || wait.Sleep(ctx, first) == nil)
}

// received records the newest step of a service. The series forgets steps that all services have.
func (t *Tracker) received(service string, newest int64) {
	t.mu.Lock()
	t.sent[service] = newest
	least := newest
	for _, sink := range t.config.Sinks {
		step, known := t.sent[sink.Service()]
		if !known {
			step = -1
		}
		least = min(least, step)
	}
	t.mu.Unlock()
	t.series.forget(least)
}

// report reports the problem of a service. found is nil if there is none.
func (t *Tracker) report(service string, found *contracttracking.Problem) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.problems, service)
	if found != nil {
		t.problems[service] = *found
	} else if service == openRewardService {
		if dropped := t.config.Uploads.dropped.Load(); dropped > 0 {
			t.problems[service] = contracttracking.Problem{Service: service, Reason: problem.RolloutsDropped,
				Message: fmt.Sprintf(
					"%d rollouts were dropped: the service refused them, or had not received them before there were too many",
					dropped)}
		}
	} else if dropped := t.series.dropped.Load(); dropped > 0 {
		t.problems[service] = contracttracking.Problem{Service: service, Reason: problem.StepsDropped, Message: fmt.Sprintf(
			"%d steps were dropped before the services received them: give the run spec.artifacts, which keep all of them",
			dropped)}
	}
	var list []contracttracking.Problem
	for _, name := range t.services() {
		if p, ok := t.problems[name]; ok {
			list = append(list, p)
		}
	}
	t.config.Report(slices.Clip(list))
}
