// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/broker/meter"
	"github.com/tinker-operator/tinker-operator/internal/broker/share"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/version"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const (
	// lookEvery is how often keys, settings and the state of the broker are looked at.
	lookEvery = time.Second
	// checkEvery is how often a broker checks a Tinker endpoint that fails, and checkPatience how long a check may take.
	checkEvery    = 10 * time.Second
	checkPatience = 20 * time.Second
	// drainPatience is how long requests may take that are in progress when the process ends. Polls end at once.
	drainPatience = 4 * time.Second
	// sweepEvery is the interval at which the broker forgets records that no longer count.
	sweepEvery = time.Minute
	// lockEvery is how often the lock of the records is tried.
	lockEvery = 100 * time.Millisecond
)

// lockFile is the file in the folder of the records that keeps two processes on one machine from opening the records
// at once.
const lockFile = "lock"

// errLeaseLost ends a process, so that the next one begins as a standby.
var errLeaseLost = errors.New("the Lease was lost")

// term is the time in which a process holds the Lease.
type term struct {
	process  *process
	broker   *broker.Broker
	meter    *meter.Meter
	reports  *reporter
	accounts *accounts
	// applied are the settings and keys in force.
	applied  *endpoint.Settings
	keys     keys
	checked  time.Time
	swept    time.Time
	reported string
}

// lead opens the broker and serves until ending or held ends. The end of ending is no error; the end of held means
// that the Lease is lost.
func (p *process) lead(ending, held context.Context) error {
	ctx, cancel := context.WithCancel(held)
	defer cancel()
	defer context.AfterFunc(ending, cancel)()
	p.log.Info("holding the Lease")
	t := &term{process: p, reports: newReporter(p.options, p.core, p.lease.Identity())}
	unlock, err := t.lock(ctx)
	if err != nil {
		return t.ended(ending, err)
	}
	defer unlock()
	if err := t.open(); err != nil {
		return err
	}
	defer t.close()
	if err := t.restore(ctx); err != nil {
		return t.ended(ending, err)
	}
	go t.broker.Count(ctx)
	go t.followBill(ctx)
	p.ready.Store(true)
	p.log.Info("serving", "generation", t.applied.Generation, "runs", len(t.applied.Runs))
	err = t.follow(ctx)
	t.drain(held)
	return t.ended(ending, err)
}

// ended returns the error with which a term ends: nil if the process was asked to end.
func (t *term) ended(ending context.Context, err error) error {
	if ending.Err() != nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return errLeaseLost
	}
	return err
}

// lock waits until no other process on this machine has the records open.
func (t *term) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(t.process.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the records: %w", err)
	}
	lock := flock.New(filepath.Join(t.process.dir, lockFile))
	if _, err := lock.TryLockContext(ctx, lockEvery); err != nil {
		return nil, fmt.Errorf("locking the records: %w", err)
	}
	return func() { _ = lock.Close() }, nil
}

// open opens the broker with the newest settings. Settings and keys that cannot be used end the process, which begins
// again later.
func (t *term) open() error {
	k, err := readKeys(t.process.keyDir)
	if err != nil {
		return err
	}
	settings := t.process.settings.get()
	client, err := t.process.clientFor(settings.ProxyURL)
	if err != nil {
		return err
	}
	if t.meter, err = meter.Open(meter.Config{Dir: t.process.dir}); err != nil {
		return err
	}
	t.accounts = newAccounts(t.process.options, t.process.core, t.meter)
	t.broker, err = broker.Open(broker.Config{
		Endpoint: t.process.endpoint, BaseURL: settings.BaseURL, APIKey: k.api, TokenKey: k.token, Dir: t.process.dir,
		HTTP: client, Namespace: t.process.namespace, ClientVersion: version.String(),
		Meter: t.meter, Gate: share.New(share.Config{Limits: settings.Limits}),
		Lease: t.process.holds, Observe: t.process.metrics.observe, Logger: t.process.log,
	})
	if err != nil {
		t.meter.Close()
		return err
	}
	if err := t.broker.Apply(*settings, k.api, k.token, client); err != nil {
		t.close()
		return err
	}
	t.applied, t.keys = settings, k
	t.process.current.Store(t.broker)
	return nil
}

// close ends the recording.
func (t *term) close() {
	t.broker.Close()
	t.meter.Close()
}

// restore restores lost records of models. No run is served until the Tinker endpoint has listed the models: a run
// would find that its checkpoints are gone.
func (t *term) restore(ctx context.Context) error {
	// Usage comes first: a report without it would say that nothing of the budgets is used.
	for t.broker.IsEmpty() {
		err := t.accounts.restore(ctx, time.Now())
		if err == nil {
			break
		}
		t.process.log.Warn("waiting for the API server, to restore the usage", "err", err)
		if err := wait.Sleep(ctx, lookEvery); err != nil {
			return err
		}
	}
	for t.broker.IsEmpty() {
		err := t.check(ctx)
		if err == nil {
			var n int
			if n, err = t.broker.Restore(ctx); err == nil {
				t.process.log.Info("restored the owners of models", "models", n)
				return nil
			}
		}
		t.process.log.Warn("waiting for the Tinker endpoint, to restore the owners of models", "err", err)
		t.look(ctx)
		if err := wait.Sleep(ctx, lookEvery); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// follow keeps the broker up to date until ctx ends or the broker fails.
func (t *term) follow(ctx context.Context) error {
	for {
		t.look(ctx)
		if err := t.broker.Failed(); err != nil {
			return fmt.Errorf("recording: %w", err)
		}
		if report := t.broker.Report(); report.KeyRefused+report.Unreachable != "" && time.Since(t.checked) >= checkEvery {
			go func() { _ = t.check(ctx) }() // the report says what it finds
			t.checked = time.Now()
		}
		if time.Since(t.swept) >= sweepEvery {
			t.broker.Sweep()
			t.swept = time.Now()
		}
		if err := wait.Sleep(ctx, lookEvery); err != nil {
			return err
		}
	}
}

func (t *term) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	return t.broker.Check(ctx)
}

// look puts changes of settings and keys in force, and writes the report.
func (t *term) look(ctx context.Context) {
	if err := t.apply(); err != nil && err.Error() != t.reported {
		t.process.log.Error("keeping the earlier settings", "err", err)
		t.reported = err.Error()
	}
	report := t.broker.Report()
	report.Generation = t.applied.Generation
	if err := t.reports.write(ctx, report, time.Now()); err != nil && ctx.Err() == nil {
		t.process.log.Warn("the report is late", "err", err)
	}
	if err := t.accounts.write(ctx, time.Now()); err != nil && ctx.Err() == nil {
		t.process.log.Warn("the usage is late", "err", err)
	}
}

// apply puts settings and keys in force that have changed.
func (t *term) apply() error {
	settings := t.process.settings.get()
	k, err := readKeys(t.process.keyDir)
	if err != nil {
		return err
	}
	if settings == t.applied && k.equal(t.keys) {
		return nil
	}
	client, err := t.process.clientFor(settings.ProxyURL)
	if err != nil {
		return err
	}
	if err := t.broker.Apply(*settings, k.api, k.token, client); err != nil {
		return err
	}
	t.process.log.Info("applied settings", "generation", settings.Generation, "runs", len(settings.Runs))
	t.applied, t.keys, t.reported = settings, k, ""
	return nil
}

// drain admits nothing more, and waits for the requests in progress while the Lease is held.
func (t *term) drain(held context.Context) {
	t.process.draining.Store(true)
	t.broker.Drain()
	t.process.log.Info("draining", "requests", t.process.inProgress.Load())
	ctx, cancel := context.WithTimeout(held, drainPatience)
	defer cancel()
	for t.process.inProgress.Load() > 0 {
		if wait.Sleep(ctx, lockEvery) != nil {
			return // a request that is still in progress is refused when its reply would be recorded
		}
	}
}
