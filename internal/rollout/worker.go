// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/groupstore"
)

// Learner is what a worker needs of the exchange: the methods of exchange.Client.
type Learner interface {
	Run(ctx context.Context, attendant exchange.Worker) error
	Acquire(ctx context.Context, free int) ([]exchange.Lease, error)
	Submit(ctx context.Context, group exchange.EncodedGroup) (exchange.SubmitReply, error)
	Release(ctx context.Context, keys []rl.Key, reason string) error
	Attempt() int32
}

// Config is what a Worker needs.
type Config struct {
	Learner  Learner
	Endpoint Endpoint
	// Groups keeps what is finished; the worker flushes it when it ends.
	Groups *groupstore.Store
	// Renderer is that of the run's model; nil for the one of a model whose tokenizer is built in.
	Renderer *load.Renderer
	// Pressure is what the endpoint's client observes.
	Pressure *Pressure
	// Grace is how long the worker offers what it holds after it was told to end.
	Grace  time.Duration
	Logger *slog.Logger
}

// Worker plays groups for a learner.
type Worker struct {
	config   Config
	held     *groupstore.Store
	sessions *sessions
	outbox   outbox
	// episodes bounds the members under way, samples the requests to the endpoint; both by the learner's
	// credits.
	episodes, samples gate
	built             environments
	repertoire        atomic.Pointer[repertoire]
	ready             atomic.Bool
	// changed is raised when there may be room for more, or less to hold.
	changed signal
	// players play groups, releases give leases back in the background.
	players, releases sync.WaitGroup
	// serving bounds calls to the learner. It is set before anything starts.
	serving context.Context

	mu      sync.Mutex
	playing map[rl.Key]*playing
}

// New makes a worker. Run starts it.
func New(config Config) *Worker {
	return &Worker{
		config:   config,
		held:     config.Groups,
		sessions: &sessions{endpoint: config.Endpoint, logger: config.Logger},
		playing:  map[rl.Key]*playing{},
	}
}

// Ready says whether a learner has answered.
func (w *Worker) Ready() bool { return w.ready.Load() }

// Run works until ctx ends: then it acquires nothing more, gives its leases back, offers what it holds for
// the grace, leaves that in files and returns nil. An error is final: the run is not this worker's, or what
// it is to play is beyond this program. Run is called once.
func (w *Worker) Run(ctx context.Context) error {
	// What is said to the learner outlives ctx by the grace.
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	serve, serving := errgroup.WithContext(lasting)
	w.serving = serving
	serve.Go(func() error { return w.attend(serving) })
	serve.Go(func() error { return w.submitAll(serving) })
	serve.Go(func() error {
		w.sessions.keepAlive(serving)
		return nil
	})
	serve.Go(func() error {
		defer stop()
		return w.work(ctx)
	})
	err := serve.Wait()
	w.releases.Wait()
	return errors.Join(err, w.held.Flush())
}

// attend speaks with learners, one after the other. An error is final.
func (w *Worker) attend(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	err := w.config.Learner.Run(ctx, &attendant{worker: w, fail: fail})
	var unplayable *ConfigError
	if errors.As(context.Cause(ctx), &unplayable) {
		return unplayable
	}
	if exchange.IsFinal(err) {
		return fmt.Errorf("attending the learner: %w", err)
	}
	return nil
}

// work plays until ctx ends, or until the worker is over, then gives leases back and offers what is held.
func (w *Worker) work(ctx context.Context) error {
	working, stop := context.WithCancel(w.serving)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	err := w.acquireAll(working)
	stop()
	left := slices.DeleteFunc(w.stop(w.playingKeys()), w.isHeld)
	w.players.Wait()
	if err != nil || w.serving.Err() != nil {
		return err
	}
	w.config.Logger.Info("ending", "leases", len(left), "held", w.held.Len())
	over, cancel := context.WithTimeout(w.serving, w.config.Grace)
	defer cancel()
	if len(left) > 0 {
		w.giveBack(over, left, reasonDrain)
	}
	w.offer(over)
	return nil
}

// offer waits until nothing is held any more, or ctx ends.
func (w *Worker) offer(ctx context.Context) {
	for {
		changed := w.changed.next()
		if w.held.Len() == 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// release gives leases back without waiting for it.
func (w *Worker) release(keys []rl.Key, reason string) {
	w.releases.Go(func() { w.giveBack(w.serving, keys, reason) })
}

// giveBack gives leases back. Where that fails the next Hello says the same: they are not played.
func (w *Worker) giveBack(ctx context.Context, keys []rl.Key, reason string) {
	if err := w.config.Learner.Release(ctx, keys, reason); err != nil && ctx.Err() == nil {
		w.config.Logger.Warn("giving leases back", "count", len(keys), "reason", reason, "error", err)
	}
}

func (w *Worker) isHeld(key rl.Key) bool {
	_, ok := w.held.Lookup(key)
	return ok
}
