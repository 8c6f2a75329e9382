// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/groupstore"
	"github.com/tinker-operator/tinker-operator/internal/rollout/health"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// answering is a learner that is only asked for its attempt.
type answering struct{ Learner }

func (answering) Attempt() int32 { return 1 }

// TestHelloLeavesFinishedGroupsOfKeptLeasesInTheOutbox says Hello to a learner that keeps the lease of one finished
// group in the outbox and wants no other group. The group of that lease must still be sent, since the learner waits
// for it; the other group must not.
func TestHelloLeavesFinishedGroupsOfKeptLeasesInTheOutbox(t *testing.T) {
	store, err := groupstore.Open(groupstore.Config{
		Dir: t.TempDir(), Version: contract.FormatVersion, MemoryBytes: 1 << 20, DiskBytes: 1 << 20,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	spending := NewSpending(client.NewMeter(client.MeterConfig{}))
	w := New(Config{Learner: answering{}, Groups: store, Spending: spending, Logger: slog.New(slog.DiscardHandler)})
	kept, dropped := trainKey(1), trainKey(2)
	for _, key := range []rl.Key{kept, dropped} {
		w.submitter.store(rl.Group{Key: key, Environment: "sums", Outcome: rl.EnvironmentFault, Reason: "no server"})
	}
	w.active.add(newActiveGroup(exchange.Lease{Key: kept}, func() {}), 0)
	play, err := contract.EncodePlay(contract.Play{Version: contract.FormatVersion,
		Model: contract.Model{Name: "tinkersim/byte-136k"}})
	if err != nil {
		t.Fatal(err)
	}
	side := &exchangeWorker{worker: w, fail: func(err error) { t.Error(err) }}
	request := side.Hello()
	if len(request.Stored) != 2 || !slices.Equal(request.Playing, []rl.Key{kept}) {
		t.Fatalf("Hello = %+v, want two stored groups, and one in progress", request)
	}
	other := NewSpending(client.NewMeter(client.MeterConfig{})).Spent()
	if got := request.Spent.Process; got == "" || got != spending.Spent().Process || got == other.Process {
		t.Errorf("Hello names the process %q, want %q, which no other process has", got, spending.Spent().Process)
	}
	side.HandleHello(exchange.HelloReply{Keep: []exchange.Lease{{Key: kept}}, Play: play})
	if key, ok := w.submitter.outbox.take(); !ok || key != kept {
		t.Errorf("the outbox = %v, %v, want the group of the lease that was kept", key, ok)
	}
	if key, ok := w.submitter.outbox.take(); ok {
		t.Errorf("the outbox still has %v, which the learner does not want", key)
	}
}

// pausing is a log handler that runs a function for each record, such as the record of a changed session.
type pausing struct {
	slog.Handler
	pause func()
}

func (p pausing) Handle(context.Context, slog.Record) error {
	p.pause()
	return nil
}

func (p pausing) Enabled(context.Context, slog.Level) bool { return true }

// TestCoverIsNoticed waits until the store is empty. A directive or a Hello covers the last group after its other
// changes, when everything that those changes have woken waits again.
func TestCoverIsNoticed(t *testing.T) {
	for name, cover := range map[string]func(*exchangeWorker){
		"directive": func(a *exchangeWorker) {
			a.HandleDirective(exchange.Directive{Credits: 1, Session: "session-1", CoveredIndex: 6})
		},
		"hello": func(a *exchangeWorker) {
			a.HandleHello(exchange.HelloReply{Play: a.worker.play.Load().encoded, Session: "session-1", CoveredIndex: 6})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, err := groupstore.Open(groupstore.Config{MemoryBytes: 1 << 20})
				if err != nil {
					t.Fatal(err)
				}
				if err := store.Add(rl.Group{Key: trainKey(5)}.Tombstone(rl.Constant, "")); err != nil {
					t.Fatal(err)
				}
				logger := slog.New(pausing{slog.DiscardHandler, synctest.Wait})
				w := New(Config{Learner: answering{}, Endpoint: newEndpoint(), Pressure: &Pressure{}, Groups: store,
					Logger: logger})
				w.health = health.NewMonitor(t.Context(), w.config.Logger, nil)
				encoded, err := contract.EncodePlay(play())
				if err != nil {
					t.Fatal(err)
				}
				if err := w.setPlay(encoded); err != nil {
					t.Fatal(err)
				}
				var empty atomic.Bool
				go func() {
					_, err := wait.For(t.Context(), &w.changes, func() (int, bool) { return 0, w.groups.Len() == 0 })
					empty.Store(err == nil)
				}()
				synctest.Wait()
				cover(&exchangeWorker{worker: w})
				synctest.Wait()
				if !empty.Load() {
					t.Error("nobody noticed that the store is empty")
				}
			})
		})
	}
}
