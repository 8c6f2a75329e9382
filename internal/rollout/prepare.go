// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// dataPauses are the pauses before a tokenizer or data sets that could not be read are read again. A run continues
// within half a minute of a repair, even if the reading takes some seconds.
var dataPauses = wait.Backoff{First: time.Second, Longest: 20 * time.Second}

// maxDataProblem bounds the report of a problem, in bytes.
const maxDataProblem = 1024

// Data is the progress of a worker in reading its data sets. The loader and the worker share it. Its zero value is
// ready.
type Data struct {
	mu    sync.Mutex
	state exchange.DataState
	// problems are the reasons why data or tokenizer cannot be read; empty if there are none.
	problems []*exchange.Problem
	// permitted is the learner's last answer.
	permitted bool
	changes   wait.Signal
}

// Permit waits until the learner permits a download. The caller calls done when it has ended.
func (d *Data) Permit(ctx context.Context) (done func(), err error) {
	d.set(exchange.DataWaiting)
	_, err = wait.For(ctx, &d.changes, func() (struct{}, bool) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return struct{}{}, d.permitted
	})
	if err != nil {
		d.set(exchange.DataSettled)
		return nil, err
	}
	d.set(exchange.DataDownloading)
	return func() { d.set(exchange.DataSettled) }, nil
}

// set changes the state. A permit counts for one download: the learner's next answer decides about another.
func (d *Data) set(state exchange.DataState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = state
	if state != exchange.DataDownloading {
		d.permitted = false
	}
}

// permit takes over the learner's answer.
func (d *Data) permit(permitted bool) {
	d.mu.Lock()
	d.permitted = permitted && d.state != exchange.DataSettled
	d.mu.Unlock()
	d.changes.Notify()
}

func (d *Data) setProblem(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problems = nil
	if err != nil {
		code := problem.DataBlocked
		if _, ok := errors.AsType[*tokenizerError](err); ok {
			code = problem.TokenizerBlocked
		}
		d.problems = []*exchange.Problem{{Code: string(transport.Refine(code, err)),
			Evidence: contract.Truncate(err.Error(), maxDataProblem)}}
	}
}

func (d *Data) report(to *exchange.WorkerState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	to.DataState, to.Problems = d.state, slices.Clone(d.problems)
}

// prepareAll reads the tokenizer and the data sets of the learner's environments, each time these change, until ctx
// ends. The worker acquires leases once they are read. A failed read is repeated: the learner reports the problem,
// and a user may repair it. An error is a *ConfigError.
func (w *Worker) prepareAll(ctx context.Context) error {
	for ctx.Err() == nil {
		play, err := wait.For(ctx, &w.changes, func() (*playConfig, bool) {
			play := w.play.Load()
			return play, play != nil && play != w.prepared.Load()
		})
		if err != nil {
			return nil
		}
		prepared, err := w.readUntilDone(ctx, play)
		if err != nil {
			return err
		}
		if prepared {
			w.prepared.Store(play)
			w.changes.Notify()
		}
	}
	return nil
}

// readUntilDone reads the tokenizer and the data sets. It returns false when ctx ended first, or when something else is
// to be played. An error is a *ConfigError.
func (w *Worker) readUntilDone(ctx context.Context, play *playConfig) (bool, error) {
	for pauses := (wait.Pauses{Backoff: dataPauses}); ; {
		err := w.read(ctx, play)
		if ctx.Err() != nil {
			return false, nil
		}
		if _, ok := errors.AsType[*ConfigError](err); ok {
			return false, err
		}
		w.config.Data.setProblem(err)
		if err == nil {
			return true, nil
		}
		pause := pauses.Next()
		w.config.Logger.Warn("what is to be played cannot be read and is read again", "pause", pause.String(), "err", err)
		if wait.Sleep(ctx, pause) != nil || w.play.Load() != play {
			return false, nil
		}
	}
}

func (w *Worker) read(ctx context.Context, play *playConfig) error {
	if err := play.readRenderer(ctx, &w.format); err != nil {
		if _, ok := errors.AsType[*ConfigError](err); ok {
			return err
		}
		return &tokenizerError{err}
	}
	return play.readData(ctx)
}

// tokenizerError reports that the tokenizer cannot be read now.
type tokenizerError struct{ err error }

// Error implements error.
func (e *tokenizerError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *tokenizerError) Unwrap() error { return e.err }

// readData builds each environment that is played and counts its tasks, for which the environment reads its data.
func (c *playConfig) readData(ctx context.Context) error {
	lists := [][]contract.Environment{c.play.Environments}
	for _, evaluation := range c.play.Evaluations {
		lists = append(lists, evaluation)
	}
	for _, list := range lists {
		for _, e := range list {
			env, err := c.built.get(ctx, e.Definition)
			if err != nil {
				return err
			}
			if e.Definition.ORS != nil {
				continue // The environment has no data here, and may be unavailable while other environments can be played.
			}
			if _, err := environment.Call(ctx, c.built.calls, "reading the data of environment "+e.Name,
				env.Splits); err != nil {
				return err
			}
		}
	}
	return nil
}
