// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Config configures a learner.
type Config struct {
	File        contract.RunFile
	Credentials contract.Credentials
	APIKey      string
	// Endpoint is the name of the TinkerEndpoint whose broker the learner calls; empty for a run with a key of its own.
	Endpoint string
	// UserAgent identifies the program to the endpoint.
	UserAgent string
	// Identity distinguishes this process from any other that claims the same attempt.
	Identity string
	// Exchange and Heartbeat are the listeners for workers and for the manager; the learner closes both. The
	// latter may be nil.
	Exchange, Heartbeat net.Listener
	Logger              *slog.Logger
	// Drain is closed when the learner is to stop at a saved state.
	Drain <-chan struct{}
	// HTTP calls the endpoint. If it is nil, the client uses its own.
	HTTP *http.Client
	// Hub fetches tokenizers; only runs whose model has a tokenizer of its own need it.
	Hub *fetch.Fetcher
	// Data reads the rows of a supervised run; only such runs need it.
	Data *source.Loader
	// OpenBucket opens the URL at which a run keeps its artifacts; only such runs need it.
	OpenBucket artifacts.OpenBucket
	// Unattended ends the learner after Timing.KeyPatience if the endpoint lacks a feature. Otherwise the learner waits
	// for a repair.
	Unattended bool
	// Now is the clock. Defaults to time.Now.
	Now    func() time.Time
	Timing Timing
	// Fault is nil except in tests.
	Fault Fault
}

// Fault is called at each of FaultPoints with the step that is being made, or -1 while no state is loaded. An error
// ends the learner immediately.
type Fault func(ctx context.Context, point string, step int64) error

// Timing has the times of a learner. Zero values mean the defaults.
type Timing struct {
	// Barrier is the time after a restart in which nothing is leased, so that workers can report their stored groups.
	// Defaults to 10 s.
	Barrier time.Duration
	// Silence is the time without a message after which a worker's leases are given to others. Defaults to 30 s.
	Silence time.Duration
	// Tick is the interval at which leases are checked. Defaults to 1 s.
	Tick time.Duration
	// Pause is the first pause after a model was discarded without progress. Further pauses double, up to 30 s. Defaults
	// to 0.5 s.
	Pause time.Duration
	// KeyPatience is the time for which the learner retries a refused API key, or an address at which there is no Tinker
	// API, before it ends so that a new pod reads spec and Secret again. Defaults to 30 s, which leaves the manager time
	// to make the next pod 45 s after this one.
	KeyPatience time.Duration
	// SkipAfter is the time for which an environment has to be unavailable before its groups are dropped, in a run that
	// drops them. Defaults to 30 s, since a server that is being replaced is soon available again.
	SkipAfter time.Duration
	// Question is the interval at which the endpoint is asked whether the newest version has diverged, while workers
	// report that samples fail. Defaults to 30 s.
	Question time.Duration
	// Tracking is the interval at which the services that show the run's curves receive steps. Defaults to 15 s.
	Tracking time.Duration
	// TrackingPatience is the time for which a learner that ends tries to send the last steps. Defaults to 60 s.
	TrackingPatience time.Duration
	// StorePause is the pause between calls of an artifact store that does not answer. Defaults to 1 s.
	StorePause time.Duration
	// StoreSlow is the time after which the run reports a call of the artifact store that has not returned. Defaults to
	// 20 s.
	StoreSlow time.Duration
	// DrainPatience is the time for which a draining learner waits for an artifact store that does not answer. Defaults
	// to 45 s, which leaves enough of the pod's grace period for the rest.
	DrainPatience time.Duration
}

// longestPause bounds the pause before the next try.
const longestPause = 30 * time.Second

// wait waits before the next try, the longer the more tries have failed without progress.
func (t Timing) wait(ctx context.Context, failures int) error {
	return t.waitAtMost(ctx, failures, longestPause)
}

func (t Timing) waitAtMost(ctx context.Context, failures int, longest time.Duration) error {
	if failures == 0 {
		return nil
	}
	return wait.Sleep(ctx, wait.Backoff{First: t.Pause, Longest: longest}.After(failures))
}

// ErrKilled is returned by a Fault to end the learner as SIGKILL would: nothing is cleaned up.
var ErrKilled = errors.New("killed at a fault point")

// errDrained ends a learner that was asked to stop at a saved state.
var errDrained = errors.New("drained")

// errNoProgress ends a learner that has discarded model after model.
var errNoProgress = errors.New("no progress")

// withDefaults fills in defaults.
func (c Config) withDefaults() Config {
	c.Timing.Barrier = cmp.Or(c.Timing.Barrier, 10*time.Second)
	c.Timing.Silence = cmp.Or(c.Timing.Silence, 30*time.Second)
	c.Timing.Tick = cmp.Or(c.Timing.Tick, time.Second)
	c.Timing.Pause = cmp.Or(c.Timing.Pause, 500*time.Millisecond)
	c.Timing.KeyPatience = cmp.Or(c.Timing.KeyPatience, 30*time.Second)
	c.Timing.SkipAfter = cmp.Or(c.Timing.SkipAfter, 30*time.Second)
	c.Timing.Question = cmp.Or(c.Timing.Question, 30*time.Second)
	c.Timing.Tracking = cmp.Or(c.Timing.Tracking, 15*time.Second)
	c.Timing.TrackingPatience = cmp.Or(c.Timing.TrackingPatience, time.Minute)
	c.Timing.StorePause = cmp.Or(c.Timing.StorePause, time.Second)
	c.Timing.StoreSlow = cmp.Or(c.Timing.StoreSlow, 20*time.Second)
	c.Timing.DrainPatience = cmp.Or(c.Timing.DrainPatience, 45*time.Second)
	c.Hub = cmp.Or(c.Hub, &fetch.Fetcher{})
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}
