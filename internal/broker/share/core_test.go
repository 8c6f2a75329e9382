// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// play is a simulation of runs at a server, in simulated time.
type play struct {
	t      *testing.T
	core   *core
	random *rand.Rand
	now    time.Time
	events events
	runs   map[string]*player
	// server refuses requests beyond its rate; nil refuses nothing.
	server *bucket
	// granted are the turns.
	granted []turn
	refused int
	// ready are the requests that were decided.
	ready []func()
}

type turn struct {
	run  string
	at   time.Duration
	took time.Duration
	op   bool
}

// player is a run that keeps a number of requests in progress, each for as long as a sample takes.
type player struct {
	uid     string
	clients int
	takes   func() time.Duration
	ops     bool
	// from and to bound the time in which it plays; no end if to is 0.
	from, to time.Duration
}

type event struct {
	at time.Time
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// bucket is the rate limit of a server.
type bucket struct {
	rate, credit float64
	filled       time.Time
}

func (b *bucket) take(now time.Time) bool {
	if b == nil {
		return true
	}
	b.credit = min(b.rate, b.credit+now.Sub(b.filled).Seconds()*b.rate)
	b.filled = now
	if b.credit < 1 {
		return false
	}
	b.credit--
	return true
}

var beginning = time.Unix(1_800_000_000, 0)

func newPlay(t *testing.T, limits endpoint.Limits) *play {
	return &play{t: t, core: newCore(limits, defaultPatience), now: beginning, runs: map[string]*player{},
		random: rand.New(rand.NewPCG(1, 2))}
}

func (p *play) after(d time.Duration, do func()) { heap.Push(&p.events, event{p.now.Add(d), do}) }

func (p *play) elapsed() time.Duration { return p.now.Sub(beginning) }

// add starts the clients of a run. They begin at different times.
func (p *play) add(of player) {
	p.runs[of.uid] = &of
	for range of.clients {
		p.after(of.from+time.Duration(p.random.IntN(1000))*time.Millisecond, func() { p.send(&of) })
	}
}

// send asks for a turn as a client, and asks again once the client has its result.
func (p *play) send(of *player) {
	if of.to > 0 && p.elapsed() >= of.to {
		return
	}
	w := p.core.ask(p.now, Request{Run: of.uid, Sample: !of.ops})
	w.decided = func() { p.ready = append(p.ready, func() { p.take(of, w) }) }
	if w.retryAfter > 0 {
		w.decided()
	}
}

// settle continues the requests that were decided.
func (p *play) settle() {
	ready := p.ready
	p.ready = nil
	for _, do := range ready {
		do()
	}
}

func (p *play) take(of *player, w *waiter) {
	again := func() { p.send(of) }
	if w.retryAfter > 0 {
		p.refused++
		p.after(w.retryAfter, again)
		return
	}
	if !p.server.take(p.now) {
		p.core.pace.answer(true)
		if w.Sample {
			p.core.finish(of.uid)
		}
		p.after(time.Second, again)
		return
	}
	p.core.pace.answer(false)
	p.granted = append(p.granted, turn{of.uid, p.elapsed(), p.now.Sub(w.since), of.ops})
	p.after(of.takes(), func() {
		if w.Sample {
			p.core.finish(of.uid)
		}
		p.send(of)
	})
}

// run plays for a time.
func (p *play) run(d time.Duration) {
	end := beginning.Add(d)
	for p.now.Before(end) {
		wake := p.core.next(p.now)
		p.settle()
		next := end
		if len(p.events) > 0 && p.events[0].at.Before(next) {
			next = p.events[0].at
		}
		if !wake.IsZero() && wake.Before(next) {
			next = wake
		}
		if next.After(p.now) {
			p.now = next
		}
		for len(p.events) > 0 && !p.events[0].at.After(p.now) {
			heap.Pop(&p.events).(event).do()
		}
	}
}

// count returns the number of turns of a run between two times, or of all runs if uid is empty.
func (p *play) count(uid string, from, to time.Duration) (n int) {
	for _, each := range p.granted {
		if (uid == "" || each.run == uid) && each.at >= from && each.at < to {
			n++
		}
	}
	return n
}

// checkShares checks each minute of a time: each run gets at least half of its share, and all together get nine tenths
// of the rate.
func (p *play) checkShares(rate float64, weights map[string]float64, from, to time.Duration) {
	p.t.Helper()
	total := 0.0
	for _, weight := range weights {
		total += weight
	}
	for ; from+time.Minute <= to; from += 10 * time.Second {
		until := from + time.Minute
		for uid, weight := range weights {
			fair := rate * 60 * weight / total
			if got := float64(p.count(uid, from, until)); got < fair/2 {
				p.t.Errorf("%s has %v turns from %s to %s, want at least half of %.1f", uid, got, from, until, fair)
			}
		}
		if got := float64(p.count("", from, until)); got < 0.9*rate*60 || got > 1.01*rate*60+rate {
			p.t.Errorf("all have %v turns from %s to %s, want about %.0f", got, from, until, rate*60)
		}
	}
}

// steady returns a function that returns times between half of a mean and one and a half of it.
func (p *play) steady(mean time.Duration) func() time.Duration {
	return func() time.Duration { return mean/2 + time.Duration(p.random.Int64N(int64(mean))) }
}

func names(n int, weight float64) map[string]float64 {
	weights := map[string]float64{}
	for i := range n {
		weights[fmt.Sprint("run", i)] = weight
	}
	return weights
}

func TestTwentyRunsShareARate(t *testing.T) {
	for _, rate := range []float64{4, 20, 100} {
		p := newPlay(t, endpoint.Limits{RequestsPerSecond: rate})
		for i := range 20 {
			// Some runs have a few clients and some have very many, of samples that are short or long.
			clients := max(5, int(rate)) * (1 + 4*(i%3))
			takes := p.steady(time.Duration(200+300*(i%5)) * time.Millisecond)
			p.add(player{uid: fmt.Sprint("run", i), clients: clients, takes: takes})
		}
		p.run(5 * time.Minute)
		p.checkShares(rate, names(20, 1), time.Minute, 5*time.Minute)
	}
}

func TestWeightsAreKept(t *testing.T) {
	const rate = 40
	p := newPlay(t, endpoint.Limits{RequestsPerSecond: rate})
	weights, given := map[string]float64{}, map[string]int{}
	for i := range 20 {
		uid := fmt.Sprint("run", i)
		weights[uid], given[uid] = float64(1+i%4), 1+i%4
		p.add(player{uid: uid, clients: 60, takes: p.steady(time.Second)})
	}
	p.core.setWeights(given)
	p.run(3 * time.Minute)
	p.checkShares(rate, weights, time.Minute, 3*time.Minute)
	for uid, weight := range weights {
		want := rate * 120 * weight / 50
		if got := float64(p.count(uid, time.Minute, 3*time.Minute)); math.Abs(got-want) > 0.05*want {
			t.Errorf("%s of weight %v has %v turns in two minutes, want %v within 5%%", uid, weight, got, want)
		}
	}
}

func TestTheShareOfAnIdleRunIsThatOfTheOthers(t *testing.T) {
	const rate = 20
	p := newPlay(t, endpoint.Limits{RequestsPerSecond: rate})
	p.add(player{uid: "always", clients: 100, takes: p.steady(100 * time.Millisecond)})
	p.add(player{uid: "first minutes", clients: 100, takes: p.steady(100 * time.Millisecond), to: 2 * time.Minute})
	p.add(player{uid: "later", clients: 100, takes: p.steady(100 * time.Millisecond), from: 4 * time.Minute})
	p.run(6 * time.Minute)
	check := func(uid string, from, to time.Duration, want float64) {
		t.Helper()
		if got := float64(p.count(uid, from, to)) / (to - from).Seconds(); math.Abs(got-want) > 0.05*rate {
			t.Errorf("%s has %.1f turns a second from %s to %s, want %.1f", uid, got, from, to, want)
		}
	}
	check("always", 10*time.Second, 2*time.Minute, 10)
	check("first minutes", 10*time.Second, 2*time.Minute, 10)
	check("always", 3*time.Minute, 4*time.Minute, 20)
	check("always", 4*time.Minute+2*time.Second, 6*time.Minute, 10) // what it had before counts for nothing
	check("later", 4*time.Minute+2*time.Second, 6*time.Minute, 10)
}

func TestUnfinishedSamplesAreShared(t *testing.T) {
	const places = 100
	p := newPlay(t, endpoint.Limits{UnfinishedSamples: places})
	held := map[string]int{}
	for i := range 10 {
		uid := fmt.Sprint("run", i)
		takes := p.steady(time.Duration(1+i%3) * time.Second)
		p.add(player{uid: uid, clients: 5 + 20*(i%5), takes: takes})
	}
	p.add(player{uid: "late", clients: 50, takes: p.steady(time.Second), from: 2 * time.Minute})
	most := 0
	for i := range 240 { // look each second
		p.after(time.Duration(i)*time.Second, func() {
			most = max(most, p.core.unfinished)
			if p.elapsed() < 2*time.Minute+10*time.Second {
				return
			}
			for uid, r := range p.core.runs {
				held[uid] += r.unfinished
			}
		})
	}
	p.run(4 * time.Minute)
	if most != places {
		t.Errorf("at most %d samples were unfinished, want %d", most, places)
	}
	for uid, r := range p.runs {
		// The share is 9.09 places. Two runs have only five clients.
		want := min(float64(r.clients), places/11.0)
		if got := float64(held[uid]) / 110; got < 0.5*want {
			t.Errorf("%s had %.1f unfinished samples on average, want at least half of %.1f", uid, got, want)
		}
	}
}

func TestOperationsDoNotWaitBehindSamples(t *testing.T) {
	p := newPlay(t, endpoint.Limits{RequestsPerSecond: 20, UnfinishedSamples: 200})
	for i := range 20 {
		uid := fmt.Sprint("run", i)
		p.add(player{uid: uid, clients: 100, takes: p.steady(30 * time.Second)})
		p.add(player{uid: uid, clients: 1, ops: true, takes: p.steady(4 * time.Second)})
	}
	p.run(4 * time.Minute)
	var waits []time.Duration
	for _, each := range p.granted {
		if each.op && each.at > 10*time.Second {
			waits = append(waits, each.took)
		}
	}
	slices.Sort(waits)
	if len(waits) < 400 || waits[len(waits)*99/100] > 2*time.Second {
		t.Errorf("99%% of %d operations waited %s at most, want 2s", len(waits), waits[len(waits)*99/100])
	}
}

func TestOperationsTakeNoMoreThanTheShareOfTheirRun(t *testing.T) {
	const rate = 20
	p := newPlay(t, endpoint.Limits{RequestsPerSecond: rate})
	p.add(player{uid: "operations", clients: 200, ops: true, takes: p.steady(10 * time.Millisecond)})
	p.add(player{uid: "samples", clients: 200, takes: p.steady(10 * time.Millisecond)})
	p.run(3 * time.Minute)
	p.checkShares(rate, map[string]float64{"operations": 1, "samples": 1}, time.Minute, 3*time.Minute)
	if got := float64(p.count("samples", time.Minute, 3*time.Minute)); got < 0.95*rate*60 {
		t.Errorf("samples had %v turns in two minutes, want about %v", got, rate*60)
	}
}

func TestOperationsOfARunKeepTheirOrder(t *testing.T) {
	c := newCore(endpoint.Limits{RequestsPerSecond: 10}, defaultPatience)
	now := beginning
	var waiting []*waiter
	for range 20 {
		c.ask(now, Request{Run: "a", Sample: true})
		waiting = append(waiting, c.ask(now, Request{Run: "a"}))
	}
	for range 300 {
		c.next(now)
		for i := 1; i < len(waiting); i++ {
			if isReady(waiting[i]) && !isReady(waiting[i-1]) {
				t.Fatalf("operation %d has its turn before the one before it", i)
			}
		}
		now = now.Add(10 * time.Millisecond)
	}
	if !isReady(waiting[19]) {
		t.Error("20 operations had no turn in three seconds at 10 requests a second")
	}
}

func isReady(w *waiter) bool {
	select {
	case <-w.ready:
		return true
	default:
		return false
	}
}

func TestARequestIsRefusedAfterItsPatience(t *testing.T) {
	c := newCore(endpoint.Limits{RequestsPerSecond: 1}, defaultPatience)
	var waiting []*waiter
	for range 60 {
		waiting = append(waiting, c.ask(beginning, Request{Run: "a", Sample: true}))
	}
	for now := beginning; !now.After(beginning.Add(defaultPatience)); now = now.Add(100 * time.Millisecond) {
		c.next(now)
	}
	granted, refused := 0, 0
	for _, w := range waiting {
		switch {
		case !isReady(w):
			t.Error("a request waits longer than 20 s")
		case w.retryAfter > 0:
			refused++
			if w.retryAfter < time.Second || w.retryAfter > 30*time.Second {
				t.Errorf("retry after %s", w.retryAfter)
			}
		default:
			granted++
		}
	}
	if granted < 19 || granted > 22 {
		t.Errorf("%d requests had a turn in 20 s at one a second, %d were refused", granted, refused)
	}
	if got := c.throttled(beginning.Add(defaultPatience)); len(got) != 1 || got[0].Share != 1 || got[0].UID != "a" {
		t.Errorf("throttled = %+v, want run a with all of the rate", got)
	}
	if got := c.throttled(beginning.Add(defaultPatience + 2*time.Minute)); len(got) != 0 {
		t.Errorf("throttled = %+v two minutes later, want none", got)
	}
}

func TestARunHoldsABoundedNumberOfRequests(t *testing.T) {
	c := newCore(endpoint.Limits{RequestsPerSecond: 1}, defaultPatience)
	for range mostWaiting {
		c.ask(beginning, Request{Run: "many", Sample: true})
	}
	if w := c.ask(beginning, Request{Run: "many"}); w.retryAfter == 0 {
		t.Error("a run may have more requests wait than the bound")
	}
	first := c.ask(beginning, Request{Run: "large", Bytes: 60 << 20})
	if w := c.ask(beginning, Request{Run: "large", Bytes: 1}); w.retryAfter == 0 || first.retryAfter != 0 {
		t.Errorf("retry after %v of a second body and %v of one large body, want more than 0 and 0",
			w.retryAfter, first.retryAfter)
	}
}

func TestTheServersLimitSlowsAllByTheirWeights(t *testing.T) {
	for name, limit := range map[string]float64{"configured": 40, "not configured": 0} {
		t.Run(name, func(t *testing.T) {
			const allowed = 20
			p := newPlay(t, endpoint.Limits{RequestsPerSecond: limit})
			p.server = &bucket{rate: allowed, filled: beginning}
			weights, given := map[string]float64{}, map[string]int{}
			for i := range 10 {
				uid := fmt.Sprint("run", i)
				weights[uid], given[uid] = float64(1+i%2), 1+i%2
				p.add(player{uid: uid, clients: 60, takes: p.steady(time.Second)})
			}
			p.core.setWeights(given)
			p.run(5 * time.Minute)
			p.checkShares(allowed, weights, time.Minute, 5*time.Minute)
		})
	}
}

func TestWithoutLimitsNothingWaits(t *testing.T) {
	c := newCore(endpoint.Limits{}, defaultPatience)
	for range 1000 {
		w := c.ask(beginning, Request{Run: "a", Sample: true})
		if c.next(beginning); !isReady(w) {
			t.Fatal("a request waits without limits")
		}
	}
	if got := c.throttled(beginning); len(got) != 0 {
		t.Errorf("throttled = %v, want none", got)
	}
}
