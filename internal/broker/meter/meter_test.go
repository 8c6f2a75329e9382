// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/broker/journal"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// bench is a meter with a folder and a clock of its own.
type bench struct {
	*testing.T
	*Meter
	config   Config
	settings endpoint.Settings

	mu  sync.Mutex
	now time.Time
}

// midnight is the first second of a day that begins a month.
var midnight = time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)

func newBench(t *testing.T) *bench {
	b := &bench{T: t, now: midnight.Add(12 * time.Hour), settings: endpoint.Settings{
		Prices: map[string]spending.Price{"priced": {Prompt: 1, CachedPrompt: 0.25, Sampled: 2, Trained: 3}},
		Runs: []endpoint.Run{
			{UID: "a", Namespace: "team", Name: "first", Model: "priced", Weight: 3, User: "ann",
				Labels: map[string]string{"l": "v"}, Budgets: []string{"team"}},
			{UID: "b", Namespace: "else", Name: "second", Model: "free"},
		},
	}}
	b.config = Config{Dir: t.TempDir(), Now: b.clock}
	b.open()
	return b
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) advance(by time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(by)
}

// open opens the meter from its folder, as another process does.
func (b *bench) open() {
	b.Helper()
	opened, err := Open(b.config)
	if err != nil {
		b.Fatal(err)
	}
	b.Meter = opened
	b.Cleanup(opened.journal.Close)
	b.SetSettings(b.settings)
}

// die ends the process without an orderly end: its successor finds the files that were on the disk.
func (b *bench) die() {
	b.Helper()
	left := b.TempDir()
	if err := os.CopyFS(left, os.DirFS(b.config.Dir)); err != nil {
		b.Fatal(err)
	}
	b.journal.Close()
	b.config.Dir = left
	b.open()
}

// flush waits until everything that was recorded is in force.
func (b *bench) flush() {
	b.Helper()
	if err := b.journal.Append(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) reserve(r Request) *Ticket {
	b.Helper()
	ticket, err := b.Reserve(b.Context(), r)
	if err != nil {
		b.Fatal(err)
	}
	return ticket
}

// accept makes a request whose future has the id.
func (b *bench) accept(id string, r Request) {
	b.Helper()
	b.reserve(r).Accept(id)
}

// checkUsed checks the tokens of a run and model on the present day.
func (b *bench) checkUsed(uid, model string, want endpoint.Tokens) {
	b.Helper()
	b.flush()
	if got := b.row(uid, model).Tokens; got != want {
		b.Errorf("%s has used %+v of %s, want %+v", uid, got, model, want)
	}
}

func (b *bench) row(uid, model string) endpoint.Usage {
	for _, row := range b.Usage(b.clock()) {
		if row.UID == uid && row.Model == model {
			return row
		}
	}
	return endpoint.Usage{}
}

func sampleOf(prompt, samples int64) Request {
	return Request{Run: "a", Model: "priced", Tokens: endpoint.Tokens{Prefill: prompt}, Sampling: true, Samples: samples}
}

func TestAFutureCountsOnceAtItsFirstDelivery(t *testing.T) {
	b := newBench(t)
	b.accept("f1", sampleOf(100, 50))
	b.checkUsed("a", "priced", endpoint.Tokens{})
	b.accept("f1", sampleOf(100, 50)) // the run has sent the request again
	b.Settle("f1", Delivered, 20, 40)
	b.Settle("f1", Delivered, 20, 40)
	once := endpoint.Tokens{Prefill: 100, CachedPrefill: 40, Sample: 20}
	b.checkUsed("a", "priced", once)
	b.accept("f1", sampleOf(100, 50))
	b.Settle("f1", Delivered, 20, 40)
	b.checkUsed("a", "priced", once)
	b.accept("f2", sampleOf(100, 50)) // the server samples again
	b.Settle("f2", Delivered, 21, 0)
	b.checkUsed("a", "priced", endpoint.Tokens{Prefill: 200, CachedPrefill: 40, Sample: 41})
	b.Settle("never made", Delivered, 1, 1)

	b.accept("t", Request{Run: "a", Model: "priced", Tokens: endpoint.Tokens{Train: 1000}})
	b.Settle("t", Delivered, 0, 0)
	b.accept("u", Request{Run: "b", Model: "free", Tokens: endpoint.Tokens{Forward: 7}})
	b.Settle("u", Delivered, 0, 0)
	b.flush()
	want := []endpoint.Usage{
		{Day: midnight, UID: "b", Namespace: "else", Run: "second", Model: "free", Tokens: endpoint.Tokens{Forward: 7},
			Unpriced: 7},
		{Day: midnight, UID: "a", Namespace: "team", Run: "first", Model: "priced", User: "ann",
			Labels: map[string]string{"l": "v"},
			Tokens: endpoint.Tokens{Prefill: 200, CachedPrefill: 40, Sample: 41, Train: 1000},
			USD:    (160*1 + 40*0.25 + 41*2 + 1000*3) / 1e6},
	}
	for range 3 { // the records are read again
		rows := b.Usage(b.clock())
		for i := range rows {
			if i < len(want) && math.Abs(rows[i].USD-want[i].USD) < 1e-12 {
				rows[i].USD = want[i].USD
			}
		}
		if diff := cmp.Diff(want, rows); diff != "" {
			t.Errorf("usage (-want +got):\n%s", diff)
		}
		b.Close()
		b.open()
		b.flush()
	}
}

func TestFailedFuturesCountByTheRule(t *testing.T) {
	for _, counts := range []bool{false, true} {
		b := newBench(t)
		b.config.CountFailed = counts
		b.Close()
		b.open()
		b.accept("failed", sampleOf(100, 50))
		b.accept("lost", sampleOf(1000, 50))
		b.Settle("failed", Failed, 9, 9)
		b.Settle("lost", Lost, 9, 9)
		want := endpoint.Tokens{}
		if counts {
			want.Prefill = 1100
		}
		b.checkUsed("a", "priced", want)
	}
}

func TestPricesAreThoseOfTheDelivery(t *testing.T) {
	b := newBench(t)
	b.accept("f", sampleOf(1e6, 1))
	b.settings.Prices = map[string]spending.Price{"priced": {Prompt: 7}}
	b.SetSettings(b.settings)
	b.advance(13 * time.Hour) // the result is delivered on the next day
	b.Settle("f", Delivered, 0, 0)
	b.flush()
	if got := b.row("a", "priced"); got.USD != 7 || got.Day != midnight.AddDate(0, 0, 1) {
		t.Errorf("row = %+v, want 7 dollars on 2 February", got)
	}
	if days := b.Days(); len(days) != 1 || days[0] != midnight.AddDate(0, 0, 1) {
		t.Errorf("days = %v", days)
	}
}

func TestResultsOfADeadProcessCountOnce(t *testing.T) {
	b := newBench(t)
	b.accept("settled", sampleOf(100, 50))
	b.accept("open", sampleOf(1000, 50))
	b.accept("gone", sampleOf(10000, 50))
	b.Settle("settled", Delivered, 5, 0)
	b.flush()
	b.advance(2 * time.Second)
	b.Tick() // the grants are corrected
	b.flush()
	b.die()
	b.checkUsed("a", "priced", endpoint.Tokens{Prefill: 100, Sample: 5})
	b.Settle("settled", Delivered, 5, 0)
	b.Settle("open", Delivered, 7, 0)
	b.checkUsed("a", "priced", endpoint.Tokens{Prefill: 1100, Sample: 12})
	b.Settle("gone", Lost, 0, 0) // the dead process may have delivered the result
	b.checkUsed("a", "priced", endpoint.Tokens{Prefill: 11100, Sample: 62})
}

func TestRequestsWithoutAFutureCountAfterADeath(t *testing.T) {
	b := newBench(t)
	b.reserve(sampleOf(100, 50)).Release()
	b.advance(5 * time.Second)
	b.Tick()
	b.flush()
	b.reserve(sampleOf(100, 50))
	b.die()
	b.checkUsed("a", "priced", endpoint.Tokens{Prefill: 200, Sample: 100}) // as much again for the rest of the second
	b.die()
	b.checkUsed("a", "priced", endpoint.Tokens{Prefill: 200, Sample: 100}) // once
	b.reserve(sampleOf(100, 50)).Release()
	b.Close()
	b.open()
	b.checkUsed("a", "priced", endpoint.Tokens{Prefill: 200, Sample: 100}) // an orderly end leaves no grant
}

func TestNothingIsReservedBeforeTheSettings(t *testing.T) {
	m, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Reserve(t.Context(), sampleOf(1, 1)); err == nil {
		t.Error("a request is reserved without settings, want an error")
	}
}

// TestADeathCountsOneSecondTooMuchAtMost makes random requests. Each process dies while requests are in progress.
func TestADeathCountsOneSecondTooMuchAtMost(t *testing.T) {
	for seed := range uint64(10) {
		b, random := newBench(t), rand.New(rand.NewPCG(seed, 1))
		billed, bound, n := int64(0), int64(0), 0
		for range 4 {
			var spent [4]endpoint.Tokens // in this second and in the three before
			for range 1 + random.IntN(60) {
				n++
				r := sampleOf(int64(1+random.IntN(1000)), int64(random.IntN(500)))
				ticket, id := b.reserve(r), fmt.Sprint("f", n)
				spent[0] = add(spent[0], ticket.cost)
				switch random.IntN(4) {
				case 0:
					billed += r.Tokens.Prefill + r.Samples // the server may bill the request
				case 1:
					ticket.Release()
				default:
					ticket.Accept(id)
					if random.IntN(2) == 0 {
						b.flush() // otherwise both records may be lost with the process
					}
					b.Settle(id, Delivered, r.Samples, 0)
					billed += r.Tokens.Prefill + r.Samples
				}
				if random.IntN(8) == 0 {
					b.advance(time.Second)
					b.Tick()
					spent = [4]endpoint.Tokens{{}, spent[0], spent[1], spent[2]}
				}
			}
			// The grant has no record of its own: it covers the requests in progress, which may be billed, and as much
			// as one of the last seconds. A request that was released or has a future may be in both.
			bound += 2 * total(most(most(spent[0], spent[1]), most(spent[2], spent[3])))
			b.die()
			b.flush()
			used := b.row("a", "priced").Tokens
			if got := used.Prefill + used.Sample; got < billed || got > billed+bound {
				t.Fatalf("seed %d: %d tokens are counted of %d billed, want at most %d more", seed, got, billed, bound)
			}
		}
	}
}

func TestMostRequestsWaitForNoRecord(t *testing.T) {
	b := newBench(t)
	grants := func() (n int) {
		names, _ := filepath.Glob(filepath.Join(b.config.Dir, "*"))
		for _, name := range names {
			n += countLines(t, name, `{"grant"`)
		}
		return n
	}
	for range 20 {
		for range 100 {
			b.reserve(sampleOf(1000, 100)).Release()
			b.advance(10 * time.Millisecond)
		}
		b.Tick()
	}
	b.flush()
	if got := grants(); got > 80 {
		t.Errorf("2,000 requests in 20 seconds took %d grants, want at most 80", got)
	}
}

func TestOldSegmentsKeepWhatCounts(t *testing.T) {
	b := newBench(t)
	b.journal.Limit = 2 << 10
	b.settings.Budgets = []endpoint.Budget{{Name: "team", Tokens: 1 << 40, Period: endpoint.PeriodMonth}}
	b.SetSettings(b.settings)
	b.accept("open", sampleOf(1000, 50))
	b.reserve(sampleOf(5, 0))
	for i := range 300 {
		id := fmt.Sprint("f", i)
		b.accept(id, sampleOf(10, 1))
		b.Settle(id, Delivered, 1, 0)
	}
	b.advance(2 * time.Second)
	b.Tick()
	b.flush()
	names, err := filepath.Glob(filepath.Join(b.config.Dir, "*"))
	if err != nil || len(names) > journal.MaxSegments+2 {
		t.Errorf("there are %d segments (%v), want at most %d", len(names), err, journal.MaxSegments+2)
	}
	want := endpoint.Tokens{Prefill: 3000, Sample: 300}
	b.checkUsed("a", "priced", want)
	before := b.Usage(b.clock())
	b.die()
	b.flush()
	want.Prefill += 5 // the request that was in progress
	b.checkUsed("a", "priced", want)
	if got := b.Usage(b.clock()); got[0].Run != before[0].Run || got[0].User != "ann" {
		t.Errorf("the row is %+v, want the names of %+v", got[0], before[0])
	}
	if got := b.Budgets(b.clock())[0]; got.Tokens != 3305 {
		t.Errorf("the budget has %d tokens, want 3305", got.Tokens)
	}
	b.Settle("open", Delivered, 50, 0)
	b.checkUsed("a", "priced", endpoint.Tokens{Prefill: 4005, Sample: 350})
}

func TestUnpolledFutures(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"polled", "waiting", "asking", "settled"} {
		b.accept(id, sampleOf(1, 1))
	}
	done := b.Poll("asking")
	b.advance(4 * time.Minute)
	b.Poll("polled")()
	b.Settle("settled", Delivered, 1, 0)
	b.Poll("never made")()
	b.advance(time.Minute)
	if got := b.Unpolled(5 * time.Minute); len(got) != 1 || got[0].ID != "waiting" || !got[0].Sampling ||
		!got[0].Made.Equal(midnight.Add(12*time.Hour)) {
		t.Errorf("unpolled = %v, want the one that waits", got)
	}
	done()
	if len(b.Unfinished()) != 3 || b.Unfinished()["waiting"] != "a" {
		t.Errorf("unfinished samples = %v, want three of a", b.Unfinished())
	}
	b.flush()
	b.die()
	if got := b.Unpolled(5 * time.Minute); len(got) != 0 {
		t.Errorf("unpolled = %v at once after the start, want none", got)
	}
	b.advance(5 * time.Minute)
	if got := b.Unpolled(5 * time.Minute); len(got) != 3 {
		t.Errorf("unpolled = %v, want three", got)
	}
}
