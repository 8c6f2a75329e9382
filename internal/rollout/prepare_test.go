// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
)

func TestPermitWaitsForTheLearner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Data{}
		state := func() exchange.DataState {
			var reported exchange.WorkerState
			d.report(&reported)
			return reported.DataState
		}
		d.permit(true)
		permitted := make(chan func())
		go func() {
			done, err := d.Permit(t.Context())
			if err != nil {
				t.Error(err)
			}
			permitted <- done
		}()
		synctest.Wait()
		if got := state(); got != exchange.DataWaiting {
			t.Fatalf("the state is %v, want waiting: a permit that was not asked for must not count", got)
		}
		d.permit(false)
		synctest.Wait()
		d.permit(true)
		done := <-permitted
		if got := state(); got != exchange.DataDownloading {
			t.Errorf("the state is %v, want downloading", got)
		}
		done()
		if got := state(); got != exchange.DataSettled {
			t.Errorf("the state is %v, want settled", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.Permit(ctx); !errors.Is(err, context.Canceled) || state() != exchange.DataSettled {
			t.Errorf("Permit = %v, state %v, want the context's error and nothing that is waited for", err, state())
		}
	})
}

// failingBuilder fails until it is repaired.
type failingBuilder struct {
	builds   atomic.Int64
	repaired atomic.Bool
}

func (b *failingBuilder) Build(context.Context, contract.Definition) (environment.Environment, error) {
	b.builds.Add(1)
	if !b.repaired.Load() {
		return nil, errors.New("the server of the environment refuses connections")
	}
	return emptyEnvironment{}, nil
}

type emptyEnvironment struct{ environment.Environment }

func (emptyEnvironment) Splits(context.Context) ([]environment.Split, error) { return nil, nil }

// TestAnEnvironmentThatCannotBeBuiltIsReported checks that a worker which cannot build an environment reports that,
// pauses longer after each failure, and has no room for leases before it can.
func TestAnEnvironmentThatCannotBeBuiltIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		builder := &failingBuilder{}
		w := &Worker{config: Config{Data: &Data{}, Logger: slog.New(slog.DiscardHandler)}, active: newActiveGroups(nil)}
		w.setCredits(4)
		w.play.Store(&playConfig{
			play:  contract.Play{Environments: []contract.Environment{{Name: "sums", GroupSize: 2}}},
			built: &environments{builder: builder},
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.prepareAll(ctx)
		problem := func() string {
			var reported exchange.WorkerState
			w.config.Data.report(&reported)
			return evidenceOf(&reported)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if !strings.Contains(problem(), "refuses connections") || w.room() != 0 {
			t.Errorf("the problem is %q and there is room for %d episodes, want the builder's error and none", problem(),
				w.room())
		}
		// Pauses of 1, 2, 4, 8 and 16 seconds, then of 20 seconds.
		if builds := builder.builds.Load(); builds < 30 || builds > 40 {
			t.Errorf("%d builds within ten minutes, want one every 20 seconds in the end", builds)
		}
		builder.repaired.Store(true)
		time.Sleep(dataPauses.Longest + time.Second)
		synctest.Wait()
		if problem() != "" || w.room() != 4 {
			t.Errorf("after the repair the problem is %q and there is room for %d episodes, want none and 4", problem(),
				w.room())
		}
	})
}

// TestPrepareEndsBeforeDataAreRead checks that a worker that cannot read its data still ends when it should.
func TestPrepareEndsBeforeDataAreRead(t *testing.T) {
	w := &Worker{config: Config{Data: &Data{}, Logger: slog.New(slog.DiscardHandler)}, active: newActiveGroups(nil)}
	w.play.Store(&playConfig{
		play:  contract.Play{Environments: []contract.Environment{{Name: "sums", GroupSize: 2}}},
		built: &environments{builder: &failingBuilder{}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.prepareAll(ctx); err != nil || w.prepared.Load() != nil {
		t.Errorf("prepareAll = %v, and something is prepared: %t", err, w.prepared.Load() != nil)
	}
}

// panickingBuilder panics, or builds an environment that panics when its data are read.
type panickingBuilder struct{ builds bool }

func (b panickingBuilder) Build(context.Context, contract.Definition) (environment.Environment, error) {
	if b.builds {
		return panickingEnvironment{}, nil
	}
	panic("a nil schema")
}

type panickingEnvironment struct{ environment.Environment }

func (panickingEnvironment) Splits(context.Context) ([]environment.Split, error) { panic("a nil page") }

// TestPanicsOfPreparationAreReported checks that a worker outlives an environment that panics when it is built, or when
// its data are read, and reports the panic.
func TestPanicsOfPreparationAreReported(t *testing.T) {
	for want, builder := range map[string]panickingBuilder{
		"building an environment panicked: a nil schema":            {},
		"reading the data of environment sums panicked: a nil page": {builds: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			quiet := slog.New(slog.DiscardHandler)
			w := &Worker{config: Config{Data: &Data{}, Logger: quiet}, active: newActiveGroups(nil)}
			w.play.Store(&playConfig{
				play:  contract.Play{Environments: []contract.Environment{{Name: "sums", GroupSize: 2}}},
				built: &environments{builder: builder, calls: &environment.Calls{Logger: quiet}},
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go w.prepareAll(ctx)
			synctest.Wait()
			var reported exchange.WorkerState
			w.config.Data.report(&reported)
			if got := evidenceOf(&reported); got != want {
				t.Errorf("the problem is %q, want %q", got, want)
			}
		})
	}
}

// evidenceOf returns the evidence of the only problem that a worker reports, or "" if there is none.
func evidenceOf(state *exchange.WorkerState) string {
	if len(state.GetProblems()) != 1 {
		return ""
	}
	return state.GetProblems()[0].GetEvidence()
}
