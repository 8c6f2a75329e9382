// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/groupstore"
	"github.com/tinker-operator/tinker-operator/internal/rollout/health"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Learner has the methods of exchange.Client that a worker needs.
type Learner interface {
	Run(ctx context.Context, worker exchange.Worker) error
	Acquire(ctx context.Context, free int) ([]exchange.Lease, error)
	Submit(ctx context.Context, group exchange.EncodedGroup) (*exchange.SubmitReply, error)
	Release(ctx context.Context, keys []rl.Key, reason string) error
	Attempt() int32
}

// Config has the parts and settings of a Worker.
type Config struct {
	Learner  Learner
	Endpoint Endpoint
	// Groups stores finished groups; the worker flushes it when it ends.
	Groups *groupstore.Store
	// Renderer loads the renderer of the run's model, as the learner sent it. It is nil for a model whose tokenizer is
	// built in. After an error that is not a *load.Error, Renderer is called again.
	Renderer func(ctx context.Context, model contract.Model) (*load.Renderer, error)
	// Environments builds the environments of leases. Defaults to the zero registry.Builder.
	Environments Builder
	// Data is the worker's progress in reading its data sets; nil if no download waits for a permit.
	Data *Data
	// Judges are the judges of the environments; nil if no judge samples at the endpoint.
	Judges *Judges
	// Spending counts the worker's tokens at the endpoint, and at judges on other servers; nil counts none.
	Spending *Spending
	// Pressure collects the observations of the endpoint's client.
	Pressure *Pressure
	// Grace is how long the worker continues to submit its groups after Run was asked to end.
	Grace time.Duration
	// KeyPatience is how long the endpoint may refuse the API key before Run ends with ErrKeyRefused. Defaults to
	// DefaultKeyPatience.
	KeyPatience time.Duration
	Logger      *slog.Logger
}

// Builder builds environments by their definitions.
type Builder interface {
	// Build returns errors as registry.Builder does.
	Build(ctx context.Context, definition contract.Definition) (environment.Environment, error)
}

// Worker plays groups for a learner.
type Worker struct {
	config   Config
	groups   *groupstore.Store
	key      *keyWatch
	sessions *sessions
	// active are the groups in progress, and submitter submits them once they are finished.
	active    *activeGroups
	submitter *submitter
	// episodes bounds the members in progress, and samples the requests to the endpoint; both follow the
	// learner's credits.
	episodes, samples gate
	built             environments
	format            format
	play              atomic.Pointer[playConfig]
	// prepared is the play whose tokenizer and data sets have been read.
	prepared atomic.Pointer[playConfig]
	formats  formats
	// health watches the environments that servers provide. It is set before anything starts.
	health *health.Monitor
	ready  atomic.Bool
	// canaries tell refused requests from an endpoint that is out of order.
	canaries *canaries
	// scoresWholePrompts says that the endpoint refuses requests for the log-probabilities of a part of a prompt.
	scoresWholePrompts atomic.Bool
	// changes is notified when there may be room for more groups, or fewer groups in the store.
	changes wait.Signal
	// players play groups, and releases release leases in the background.
	players, releases sync.WaitGroup
	// serving bounds calls to the learner. It is set before anything starts.
	serving context.Context
}

// New makes a worker. Run starts it.
func New(config Config) *Worker {
	config.Data = cmp.Or(config.Data, &Data{})
	key := watchKey(config.Endpoint, config.KeyPatience)
	config.Endpoint = key
	w := &Worker{
		config:   config,
		key:      key,
		groups:   config.Groups,
		sessions: &sessions{endpoint: config.Endpoint, logger: config.Logger, pressure: config.Pressure},
		built:    environments{builder: config.Environments, calls: &environment.Calls{Logger: config.Logger}},
		format:   format{load: config.Renderer},
	}
	w.canaries = newCanaries(w.sessions, config.Endpoint)
	if config.Judges == nil {
		w.config.Judges = &Judges{}
	}
	w.config.Judges.worker.Store(w)
	if config.Environments == nil {
		w.built.builder = registry.Builder{}
	}
	w.active = newActiveGroups(&w.changes)
	w.submitter = &submitter{learner: config.Learner, groups: config.Groups, active: w.active, logger: config.Logger}
	return w
}

// Ready reports whether a learner has answered, and the endpoint does not refuse the API key.
func (w *Worker) Ready() bool { return w.ready.Load() && !w.key.refused() }

// Run works until ctx ends: then it acquires nothing more, releases its leases, continues to submit its groups for the
// grace, leaves the rest in files and returns nil. It does the same and returns ErrKeyRefused when the endpoint refuses
// the API key. Another error is final: the run is not this worker's, or this program cannot play it. Run is called
// once.
func (w *Worker) Run(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer w.key.start(end)()
	// Calls to the learner may outlast ctx by the grace.
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	serve, serving := errgroup.WithContext(lasting)
	w.serving = serving
	w.health = health.NewMonitor(serving, w.config.Logger, w.built.calls)
	serve.Go(func() error { return w.connect(serving) })
	serve.Go(func() error { return w.submitter.run(serving) })
	serve.Go(func() error { return w.prepareAll(serving) })
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
	w.health.Wait()
	if errors.Is(context.Cause(ctx), ErrKeyRefused) {
		err = errors.Join(ErrKeyRefused, err)
	}
	return errors.Join(err, w.groups.Flush())
}

// connect stays connected to learners, one after the other. An error is final.
func (w *Worker) connect(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	err := w.config.Learner.Run(ctx, &exchangeWorker{worker: w, fail: fail})
	if unplayable, ok := errors.AsType[*ConfigError](context.Cause(ctx)); ok {
		return unplayable
	}
	if exchange.IsFinal(err) {
		return fmt.Errorf("connecting to the learner: %w", err)
	}
	return nil
}

// work plays until ctx ends, then releases leases and waits for the submission of the stored groups. It returns early
// if the worker has failed.
func (w *Worker) work(ctx context.Context) error {
	working, stop := context.WithCancel(w.serving)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	err := w.acquireAll(working)
	stop()
	left := slices.DeleteFunc(w.active.stop(w.active.keys()), w.isStored)
	w.players.Wait()
	if err != nil || w.serving.Err() != nil {
		return err
	}
	w.config.Logger.Info("ending", "leases", len(left), "stored", w.groups.Len())
	over, cancel := context.WithTimeout(w.serving, w.config.Grace)
	defer cancel()
	if len(left) > 0 {
		w.releaseNow(over, left, exchange.Drained)
	}
	// The grace ends the wait.
	_, _ = wait.For(over, &w.changes, func() (int, bool) { return 0, w.groups.Len() == 0 })
	return nil
}

// release releases leases in the background.
func (w *Worker) release(keys []rl.Key, reason string) {
	w.releases.Go(func() { w.releaseNow(w.serving, keys, reason) })
}

// releaseNow releases leases. If the call fails, the next Hello reports the same: the groups are not played.
func (w *Worker) releaseNow(ctx context.Context, keys []rl.Key, reason string) {
	if err := w.config.Learner.Release(ctx, keys, reason); err != nil && ctx.Err() == nil {
		w.config.Logger.Warn("releasing leases", "count", len(keys), "reason", reason, "err", err)
	}
}

// cover drops groups that a state or a row of an evaluation covers.
func (w *Worker) cover(index int64, evaluations []exchange.Evaluation) {
	w.groups.Cover(index, evaluations)
	w.config.Spending.cover(index, evaluations)
	w.changes.Notify()
}

func (w *Worker) isStored(key rl.Key) bool {
	_, ok := w.groups.Lookup(key)
	return ok
}
