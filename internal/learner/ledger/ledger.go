// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger adds up the spending of a run: the requests of its learners and workers to the endpoint, and the
// answers, whether they were used or not. All counters are monotone.
//
// The sum is never above the tokens of executed requests, and together with the unconfirmed tokens never below. The
// maximum of a learner's next requests is durable before it sends them, so that the next attempt knows the unconfirmed
// tokens. Since its last report, a worker has sent at most two further requests for each member of its open leases. A
// lease is open from its grant until a message arrives that the worker made after the end of the group. Open leases
// are unconfirmed once the worker is lost, and at the end of the run. A learner that is drained does not count them,
// since its workers play on and report to the next one, which knows them from the record.
//
// A worker that plays the group of another makes the same requests, which the endpoint may answer without executing
// them again. If a group is given to another process, the usage of the former process for this group is therefore held:
// it counts as unconfirmed. A process that has not said Hello to this learner may have lost any of its groups to
// others, so that all of them are held until it reports the usage of each. Only the groups of a process that never
// returns stay held without such a report.
package ledger

import (
	"context"
	"math"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Config configures a Ledger.
type Config struct {
	// Own returns the usage of this learner.
	Own func() spending.Usage
	// Durable reports whether there is an artifact store. Write writes a record to it. Insist also writes a record, and
	// waits until the store has accepted it.
	Durable func() bool
	Write   func(ctx context.Context, record artifacts.Spending) error
	Insist  func(ctx context.Context, record artifacts.Spending) error
	// Prices are the prices of this attempt; nil if one is not known.
	Prices *spending.Prices
}

// Ledger is safe for concurrent use.
type Ledger struct {
	config Config
	joined chan struct{}

	// writing is held while a record is written. It guards granted.
	writing sync.Mutex
	granted int64

	mu sync.Mutex
	// earlier, held, shown, checked and seconds are as in artifacts.Spending.
	earlier, held, shown spending.Usage
	checked              int64
	seconds              float64
	// known are the tokens that had a price when this attempt began, and priced the tokens that have a price now. known
	// is nil if no token had a price.
	known  *spending.Priced
	priced spending.Priced
	// workers by the names of their processes.
	workers map[string]*worker
	claims  claims
	// trained is the number of tokens that were trained on in the steps that led to a version, and lost the number in
	// other steps.
	trained map[rl.Version]int64
	lost    int64
	// before is the number of tokens that were trained on when this attempt began. opened is set once it has opened a
	// version.
	before           int64
	restored, opened bool
	// ended is set once the run is complete.
	ended bool
}

// End notes that the run is complete and no more groups are leased. The workers' next reports are not awaited, so
// their possible requests since the last reports are unconfirmed. If another attempt continues the run, the record
// has all leases that were given to workers.
func (l *Ledger) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// New returns a ledger of a run that has spent nothing.
func New(config Config) *Ledger {
	return &Ledger{
		config: config, joined: make(chan struct{}, 1), workers: map[string]*worker{}, claims: newClaims(),
		trained: map[rl.Version]int64{},
	}
}

// Joined returns a channel that receives a value once a process has reported that is not in the last record, or is
// lost there. Without a new record, the next attempt would not know that leases were given to the process.
func (l *Ledger) Joined() <-chan struct{} { return l.joined }

// Spent returns the spending of the run.
func (l *Ledger) Spent() Spent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spent()
}

// spent adds up the spending, and prices the growth of the counters. The lock is held.
func (l *Ledger) spent() Spent {
	spent := Spent{Usage: l.usage(), Seconds: l.seconds}
	if prices := l.config.Prices; prices != nil {
		// The prices of an attempt do not change, so that all its tokens are priced at once: sums of small costs would drift.
		priced := l.baseline().Grow(l.shown, *prices)
		priced.USD = max(priced.USD, l.priced.USD)
		l.priced = priced
		unconfirmed := prices.USD(spending.Usage{UnconfirmedTokens: spent.Usage.UnconfirmedTokens})
		spent.Cost = &spending.Cost{Answered: priced.USD, Unconfirmed: unconfirmed}
	}
	return spent
}

// baseline returns the tokens that had a price when this attempt began.
func (l *Ledger) baseline() spending.Priced {
	if l.known == nil {
		return spending.Priced{}
	}
	return *l.known
}

// usage adds up the usage. The lock is held.
func (l *Ledger) usage() spending.Usage {
	all, held := l.earlier.Add(l.config.Own()), l.held
	contested := l.claims.contested()
	for process, w := range l.workers {
		all, held = all.Add(w.used), held.Add(w.held(contested[process]))
		if w.away || w.lost || l.ended {
			all.UnconfirmedTokens += w.mostNext()
		}
	}
	all.BoughtTwiceTokens = l.lost
	l.shown = l.shown.Max(all.Sub(held))
	used := l.shown
	used.UnconfirmedTokens = all.UnconfirmedTokens + all.Spent() - l.shown.Spent()
	return used
}

// Restore takes over the record of the attempt before. It is called before the first request to the endpoint, and
// does nothing when it is called again.
func (l *Ledger) Restore(record artifacts.Spending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.restored {
		return
	}
	l.restored = true
	l.earlier = record.Earlier.Add(record.Own)
	l.earlier.UnconfirmedTokens = record.Earlier.UnconfirmedTokens + max(0, record.Granted-record.Own.Spent())
	l.held, l.shown, l.seconds = record.Held, record.Shown, record.Seconds
	l.known = record.Priced
	l.lost, l.checked, l.before = record.Shown.BoughtTwiceTokens, record.Checked, l.earlier.TrainedTokens
	for process, w := range record.Workers {
		l.workers[process] = &worker{
			name: w.Name, used: w.Used, leases: map[rl.Key]int64{}, recorded: w, next: w.Next, away: true,
		}
	}
}

// Restored reports whether the spending before this attempt is known.
func (l *Ledger) Restored() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restored
}

// RestoreRow takes over the usage in a row, for a run without a record of spending. priced has the tokens that have a
// price, with their cost; nil if no token has a price. RestoreRow does nothing if there is a record, or once a
// version was opened.
func (l *Ledger) RestoreRow(used spending.Usage, priced *spending.Priced, seconds float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.restored || l.opened {
		return
	}
	l.restored, l.earlier, l.lost, l.seconds = true, used, used.BoughtTwiceTokens, seconds
	l.known = priced
	l.before = used.TrainedTokens
}

// Open notes that a version was loaded: all training besides the steps that led to the version is lost. trained is
// the number of tokens that were trained on in these steps, as the row says; nil if it is not known.
func (l *Ledger) Open(v rl.Version, trained *int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.usage().TrainedTokens
	if !l.opened {
		l.opened, l.checked = true, l.checked+all-l.before
	}
	all -= l.checked
	if _, known := l.trained[v]; !known {
		switch {
		case trained != nil:
			l.trained[v] = *trained
		case v.Step == 0:
			l.trained[v] = 0
		default:
			l.trained[v] = all - l.lost
		}
	}
	l.lost = max(l.lost, all-l.trained[v])
}

// Spent is the spending of a run, until now or until a version was made.
type Spent struct {
	// Usage is the usage of the run by then, and Seconds the seconds of training.
	Usage   spending.Usage
	Seconds float64
	// Cost is the cost of Usage; nil if a price is not known.
	Cost *spending.Cost
	// Trained is the number of tokens that were trained on in the steps that led to the version; 0 if there is none.
	Trained int64
}

// Step notes that a version was made in the given seconds, and returns the spending by then.
func (l *Ledger) Step(v rl.Version, seconds float64) Spent {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seconds += seconds
	spent := l.spent()
	spent.Trained = spent.Usage.TrainedTokens - l.checked - l.lost
	l.trained[v] = spent.Trained
	return spent
}

// Measured notes that passes over held-out rows have measured a version: the passes are not lost if the version is
// loaded again.
func (l *Ledger) Measured(v rl.Version) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trained[v] = l.usage().TrainedTokens - l.checked - l.lost
}

// AddSeconds adds to the seconds of training.
func (l *Ledger) AddSeconds(seconds float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seconds += seconds
}

// slack is the number of tokens that are granted in addition to the requested ones, so that small requests need no
// record each.
const slack = 1 << 14

// Grant records the given maximum of this learner's tokens, unless it is already recorded. It has the form of
// client.MeterConfig.Grant.
func (l *Ledger) Grant(ctx context.Context, tokens int64) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if tokens <= l.granted {
		return nil
	}
	if !l.config.Durable() {
		l.granted = math.MaxInt64
		return nil
	}
	if err := l.config.Insist(ctx, l.record(tokens+slack)); err != nil {
		return err
	}
	l.granted = tokens + slack
	return nil
}

// Write makes the spending durable, and grants no further tokens.
func (l *Ledger) Write(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if !l.config.Durable() {
		return nil
	}
	record := l.record(0)
	l.granted = record.Granted // requests that were not sent yet wait for a record of their own
	return l.config.Write(ctx, record)
}

// record returns the record for the given number of granted tokens.
func (l *Ledger) record(granted int64) artifacts.Spending {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spent()
	own := l.config.Own()
	record := artifacts.Spending{
		Earlier: l.earlier, Own: own, Granted: max(granted, own.Total()), Workers: map[string]artifacts.WorkerSpending{},
		Held: l.held, Shown: l.shown, Priced: l.known, Seconds: l.seconds,
	}
	if l.config.Prices != nil {
		priced := l.priced
		record.Priced = &priced
	}
	record.Shown.BoughtTwiceTokens, record.Checked = l.lost, l.checked
	if !l.opened {
		record.Checked += l.shown.TrainedTokens - l.before
	}
	contested, open := l.claims.contested(), l.claims.open()
	for process, w := range l.workers {
		known := w.record(contested[process], !open[process], l.claims.gave)
		known.Lost = known.Lost || l.ended
		if known.Among = w.recorded.Among; !w.away {
			known.Among = l.reporting()
		}
		record.Workers[process] = known
	}
	return record
}

// reporting returns the number of workers that have reported to this learner and are expected to continue.
func (l *Ledger) reporting() (workers int64) {
	for _, w := range l.workers {
		if !w.away && !w.lost {
			workers++
		}
	}
	return workers
}
