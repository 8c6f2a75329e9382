// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// learner is one attempt. What stands behind the empty line belongs to the goroutine of the loop, except
// for the ledger and best, which mu guards.
type learner struct {
	config Config
	file   contract.RunFile
	client *client.Client
	store  *store.Store // nil without artifacts
	board  *leases.Table
	train  *leases.BatchSource // nil for a run that only evaluates
	server *exchange.Server
	status *status
	opener *trainee.Opener
	// rollouts keeps the session that groups are sampled in.
	rollouts *keeper
	plan     evaluationPlan
	cancel   context.CancelCauseFunc
	// drain is closed when the manager wants it.
	drain     chan struct{}
	drainOnce sync.Once
	tasks     sync.WaitGroup
	// background runs a task beside the loop until the learner ends.
	background func(task func(context.Context))
	// retiring is full while checkpoints are being retired.
	retiring chan struct{}

	model *trainee.Model
	// at is the version in the model, saved the newest that is saved.
	at, saved position
	// rows are not durable yet, lines not in metrics.jsonl yet.
	rows, lines []store.Row
	usage       usage
	evaluations evaluations
	// suspect is a batch that the endpoint refused, refusals how often that led nowhere.
	suspect  *leases.Batch
	refusals int
	// capabilities are what is known of the endpoint.
	capabilities capability.Report
	// cold says that a model of this attempt went on from a state without its optimizer.
	cold bool
	// begun is set once a first model was opened.
	begun bool

	mu     sync.Mutex
	ledger checkpoints.Ledger
	chain  map[int64]string
	best   []scored
}

// Run trains until the run is done, or until something ends the attempt, and says which. When ctx ends the
// learner stops on the spot, as if killed.
func Run(ctx context.Context, config Config) contract.Verdict {
	config = config.withDefaults()
	l := &learner{config: config, file: config.File, ledger: checkpoints.Ledger{}, drain: make(chan struct{}), retiring: make(chan struct{}, 1)}
	l.status = newStatus(l.file.Run.UID, l.file.Attempt, config.Now)
	err := l.run(ctx)
	verdict := verdictOf(err)
	verdict.Attempt, verdict.Progress = l.file.Attempt, l.status.progress().Finite()
	config.Logger.Info("learner ends", "cause", verdict.Cause, "reason", verdict.Reason,
		"message", verdict.Message, "step", verdict.Progress.Step)
	return verdict
}

func (l *learner) run(ctx context.Context) error {
	ctx, l.cancel = context.WithCancelCause(ctx)
	defer l.tasks.Wait()
	defer l.cancel(nil)
	if err := l.prepare(); err != nil {
		l.closeListeners()
		return err
	}
	l.background = func(task func(context.Context)) { l.tasks.Go(func() { task(ctx) }) }
	l.prepareSessions(ctx)
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
		l.status.update(func(p *contract.Progress) { p.Phase = contract.PhaseDraining })
		drain(errDrained)
	})
	err := l.loop(ctx, soft)
	// What ended the context is why calls failed.
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, ErrKilled) {
		return cause
	}
	if err == nil {
		l.status.update(func(p *contract.Progress) { p.Phase = contract.PhaseDone })
	}
	return err
}

// prepare builds the parts; nothing of it calls the endpoint.
func (l *learner) prepare() error {
	if err := check(l.file); err != nil {
		return err
	}
	l.plan = planEvaluation(l.file)
	var err error
	l.client, err = client.New(client.Config{
		BaseURL: l.file.Fixed.BaseURL, APIKey: l.config.APIKey, UserAgent: l.config.UserAgent,
		HTTP: l.config.HTTP, Logger: l.config.Logger, Observe: l.status.observe,
	})
	if err != nil {
		return unsupported(reasonUnsupported, "setting the endpoint up: %v", err)
	}
	if err := l.prepareBoard(); err != nil {
		return err
	}
	l.server, err = exchange.NewServer(exchange.ServerConfig{
		Epoch:       exchange.Epoch{RunUID: l.file.Run.UID, SpecDigest: l.file.SpecDigest, Attempt: l.file.Attempt},
		Credentials: l.config.Link, Handler: l.board.Handler(), Logger: l.config.Logger,
		Fenced: func(higher int32) { l.fence(higher) },
	})
	if err != nil {
		return fmt.Errorf("setting the exchange up: %w", err)
	}
	return nil
}

// encodePlay says what workers must know; digest is that of the tokenizer's file, empty while it is not known.
func (l *learner) encodePlay(digest string) ([]byte, error) {
	play := contract.Play{
		Model: l.file.Fixed.Model, BaseURL: l.file.Fixed.BaseURL, Environments: l.file.Fixed.Environments,
		Concurrency: l.file.Concurrency, Evaluations: l.plan.environments(),
	}
	if t := play.Model.Tokenizer; t != nil {
		pinned := *t
		pinned.SHA256 = digest
		play.Model.Tokenizer = &pinned
	}
	if alg := l.file.Fixed.Algorithm; alg != nil {
		play.DropConstantGroups = alg.DropConstantGroups
	}
	encoded, err := json.Marshal(play)
	if err != nil {
		return nil, fmt.Errorf("encoding what workers must know: %w", err)
	}
	return encoded, nil
}

func (l *learner) prepareBoard() error {
	encoded, err := l.encodePlay("")
	if err != nil {
		return err
	}
	barrier := l.config.Timing.Barrier
	if l.file.Attempt == 1 {
		barrier = 0 // nobody can hold anything yet
	}
	l.board = leases.NewTable(leases.Config{
		Play: encoded, Concurrency: l.file.Concurrency, Silence: l.config.Timing.Silence, Barrier: barrier,
		Logger: l.config.Logger, Now: l.config.Now,
	})
	if l.file.Fixed.Algorithm == nil {
		return nil
	}
	train, err := trainConfig(l.file)
	if err != nil {
		return err
	}
	l.train = leases.NewBatchSource(l.board, train)
	return nil
}

// trainConfig says what the run's batches are made of.
func trainConfig(file contract.RunFile) (leases.BatchConfig, error) {
	alg := file.Fixed.Algorithm
	config := leases.BatchConfig{
		Rules: rl.Rules{TasksPerStep: alg.TasksPerStep, Refill: alg.Refill, Lag: alg.Lag, Steps: alg.Steps},
		Seed:  uint64(alg.Seed), Groups: map[string]leases.GroupShape{},
	}
	var sources []rl.Source
	for _, env := range file.Fixed.Environments {
		config.Groups[env.Name] = leases.GroupShape{Size: env.GroupSize, MinMembers: env.MinMembers}
		for _, split := range env.Splits {
			sources = append(sources, rl.Source{
				Environment: env.Name, Split: split.Name, Tasks: split.Tasks, Shuffle: split.Shuffle, Weight: env.Weight,
			})
		}
	}
	var err error
	if config.Stream, err = rl.NewStream(config.Seed, sources); err != nil {
		return config, unsupported("EnvironmentsRejected", "%v", err)
	}
	return config, nil
}

// serve starts what runs beside the loop.
func (l *learner) serve(ctx context.Context) {
	context.AfterFunc(ctx, l.board.Close)
	l.tasks.Go(func() {
		if err := l.server.Serve(ctx, l.config.Exchange); err != nil && ctx.Err() == nil {
			l.cancel(fmt.Errorf("serving workers: %w", err))
		}
	})
	if l.config.Heartbeat != nil {
		l.tasks.Go(func() { l.serveHeartbeat(ctx) })
	}
	l.tasks.Go(func() { l.tick(ctx) })
	if l.train != nil {
		l.tasks.Go(func() { l.train.Run(ctx) })
	}
}

// tick looks after leases.
func (l *learner) tick(ctx context.Context) {
	ticker := time.NewTicker(l.config.Timing.Tick)
	defer ticker.Stop()
	var accepted int64
	for {
		select {
		case <-ticker.C:
			l.board.Tick()
			if now := l.board.Counters().Accepted; now != accepted {
				accepted = now
				l.status.touch()
			}
			if kind := l.board.Problem(); kind != "" {
				l.status.throttle(kind)
			}
		case <-ctx.Done():
			return
		}
	}
}

// noteWorkers tells the attempt after this one whom to wait for.
func (l *learner) noteWorkers(ctx context.Context, artifacts *store.Store) {
	var noted []string
	for {
		changed := l.board.Changed()
		names := l.board.Workers()
		if len(names) > 0 && !slices.Equal(names, noted) && artifacts.SetWorkers(names) == nil {
			noted = names
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (l *learner) closeListeners() {
	_ = l.config.Exchange.Close()
	if l.config.Heartbeat != nil {
		_ = l.config.Heartbeat.Close()
	}
}

// fence stops the learner at once: a higher attempt has been started.
func (l *learner) fence(higher int32) {
	l.config.Logger.Warn("fenced by a higher attempt", "attempt", l.file.Attempt, "higher", higher)
	l.cancel(fmt.Errorf("attempt %d: %w: %d", l.file.Attempt, errFenced, higher))
}
