// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/ledger"
)

// The cost of each request of the model, in tokens. A group has members that make one request each.
const (
	requestTokens = 10
	members       = 2
)

// TestUsageAgreesWithTheBillInAnyOrder takes random walks through the possible actions of workers, learners and the
// network. The table and the ledger are real; the workers and the endpoint are models. A walk may end anywhere. The
// usage is never more than the bill; at the end, the usage with the unconfirmed tokens is not less than the bill.
func TestUsageAgreesWithTheBillInAnyOrder(t *testing.T) {
	t.Parallel()
	const walks, length = 500, 80
	for seed := range uint64(walks) {
		w := newWalk(t, seed)
		for range w.random.IntN(length) {
			w.act()
			w.check(false)
		}
		w.end()
		w.check(true)
		if t.Failed() {
			t.Fatalf("walk %d:\n%s", seed, strings.Join(w.log, "\n"))
		}
	}
}

// walk is the state of one random walk through a run.
type walk struct {
	t      *testing.T
	random *rand.Rand
	now    time.Time
	log    []string
	// bill counts the tokens that the endpoint has executed, and requests has the executed requests. remembers says
	// whether the endpoint executes a repeated request only once.
	bill      int64
	requests  map[string]bool
	remembers bool
	// table and ledger belong to the learner of the current attempt, record is its last record, and granted is the number
	// of leases that it has granted since that record.
	table    *fixture
	ledger   *ledger.Ledger
	attempt  int
	record   artifacts.Spending
	granted  int
	demanded []int64
	covered  int64
	workers  []*player
	names    int
}

func newWalk(t *testing.T, seed uint64) *walk {
	w := &walk{t: t, random: rand.New(rand.NewPCG(seed, 25)), now: time.Unix(1000, 0), requests: map[string]bool{}}
	w.remembers = w.random.IntN(2) > 0
	w.start()
	w.join()
	w.join()
	return w
}

func (w *walk) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// start starts a learner with the record of the one before.
func (w *walk) start() {
	w.attempt++
	store := func(_ context.Context, record artifacts.Spending) error {
		w.record, w.granted = record, 0
		return nil
	}
	w.ledger = ledger.New(ledger.Config{
		Own: func() spending.Usage { return spending.Usage{} }, Durable: func() bool { return true }, Write: store,
		Insist: store,
	})
	barrier := time.Minute
	if w.attempt == 1 {
		barrier = 0
	}
	w.ledger.Restore(w.record)
	w.table = newFixture(w.config(barrier))
	w.table.Cover(w.covered)
	names := []string{}
	for _, p := range w.workers {
		names = append(names, p.name)
	}
	w.table.Expect(names)
	w.table.Open()
	w.demand()
}

func (w *walk) config(barrier time.Duration) Config {
	return Config{
		Concurrency: 4 * members, Silence: 30 * time.Second, Barrier: barrier, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return w.now }, Spending: w.ledger, Request: map[string]int64{"e": requestTokens},
		LargestGroup: members * requestTokens,
	}
}

// demand demands some slots.
func (w *walk) demand() {
	w.demanded = nil
	var list []exchange.Lease
	for slot := w.covered; slot < w.covered+4; slot++ {
		if w.random.IntN(3) > 0 {
			w.demanded = append(w.demanded, slot)
			l := lease(slot)
			l.GroupSize, l.MinMembers, l.Sampler = members, 1, fmt.Sprint(w.attempt)
			list = append(list, l)
		}
	}
	w.note("learner %d demands %v", w.attempt, w.demanded)
	w.table.Demand("train", list)
}

// join starts a worker.
func (w *walk) join() {
	w.names++
	name := fmt.Sprint("w", w.names%3) // may be another process of an earlier name
	if slices.ContainsFunc(w.workers, func(p *player) bool { return p.name == name }) {
		return
	}
	w.workers = append(w.workers, newPlayer(w, name, fmt.Sprint("p", w.names)))
}

// act performs one random action.
func (w *walk) act() {
	if n := w.random.IntN(24); n < 6 || len(w.workers) == 0 {
		w.actAsLearner(n)
		return
	}
	w.workers[w.random.IntN(len(w.workers))].act()
}

// actAsLearner performs one action of the learner, or starts a worker.
func (w *walk) actAsLearner(n int) {
	switch {
	case n == 0:
		w.demand()
	case n == 1:
		w.cover()
	case n == 2:
		for _, p := range w.workers {
			p.receive() // no message takes as long as renewPatience
			for len(p.renewals) > 0 {
				p.deliverRenewal()
			}
		}
		w.now = w.now.Add(time.Duration(w.random.IntN(12)) * time.Second)
		w.note("it is %s, and the learner looks for lost workers", w.now.Format("04:05"))
		w.table.Tick()
	case n == 3 && w.attempt < 3 && w.random.IntN(3) == 0:
		w.note("learner %d dies", w.attempt)
		for _, p := range w.workers {
			p.disconnect(true)
		}
		w.start()
	case n == 4:
		w.write()
	case len(w.workers) < 2:
		w.join()
	}
}

// cover covers the groups that the learner has.
func (w *walk) cover() {
	for {
		if _, _, known := w.table.Group(key(w.covered)); !known {
			break
		}
		w.covered++
	}
	w.note("slots below %d are covered", w.covered)
	w.table.Cover(w.covered)
}

// write records the spending.
func (w *walk) write() {
	w.note("learner %d records", w.attempt)
	if err := w.ledger.Write(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// end ends the run after the barrier.
func (w *walk) end() {
	w.note("the run ends")
	w.now = w.now.Add(2 * time.Minute)
	w.table.ticked = w.now // the learner has not stopped
	w.table.settle()
	w.ledger.End()
}

// check compares the usage with the bill.
func (w *walk) check(ended bool) {
	w.t.Helper()
	used := w.ledger.Spent().Usage
	if used.SampledTokens > w.bill {
		w.t.Errorf("%d tokens are used, more than the %d that were billed", used.SampledTokens, w.bill)
	}
	if ended && used.Total() < w.bill {
		w.t.Errorf("%d tokens are used and %d unconfirmed, less than the %d that were billed", used.SampledTokens,
			used.UnconfirmedTokens, w.bill)
	}
}

// execute executes a request unless the endpoint already has its samples. The endpoint forgets no request of a process
// that is alive.
func (w *walk) execute(request, process string) {
	if !w.requests[request+process] && (!w.requests[request] || !w.remembers) {
		w.bill += requestTokens
	}
	w.requests[request], w.requests[request+process] = true, true
}
