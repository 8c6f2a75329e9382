// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// crowd is a table with many workers. Each worker plays one group if there is room for it.
type crowd struct {
	*Table
	now    time.Time
	names  []string
	leases map[string][]exchange.Lease
	state  *exchange.WorkerState
}

func newCrowd(tb testing.TB, workers int) *crowd {
	c := &crowd{now: epoch, leases: map[string][]exchange.Lease{}}
	c.Table = NewTable(Config{
		Concurrency: 4096, Silence: 30 * time.Second, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return c.now },
	})
	c.Open()
	var train, evaluate []exchange.Lease
	lease := exchange.Lease{Environment: "e", GroupSize: 8, MinMembers: 1, Sampler: "tinker://x"}
	for i := range int64(2000) {
		if lease.Key = key(i); i < 256 {
			train = append(train, lease)
		}
		lease.Key = rl.Key{Kind: rl.Evaluate, Slot: i, Evaluation: "0123456789abcdef"}
		evaluate = append(evaluate, lease)
	}
	c.Demand("train", train)
	c.Demand("evaluation", evaluate)
	for i := range workers {
		name := fmt.Sprintf("run-rollout-%d-abcde", i)
		c.names = append(c.names, name)
		spent := exchange.Spent{Process: name}
		if _, err := c.Handler().Hello(tb.Context(), name, exchange.HelloRequest{Spent: spent}); err != nil {
			tb.Fatal(err)
		}
	}
	for _, name := range c.names {
		c.leases[name] = c.Handler().grant(name, 1)
	}
	return c
}

// renew renews the leases of a worker once, and receives two directives.
func (c *crowd) renew(name string) {
	h := c.Handler()
	renewal := exchange.Renewal{State: c.state}
	for _, lease := range c.leases[name] {
		renewal.Progress = append(renewal.Progress, exchange.Progress{Key: lease.Key})
	}
	h.Renew(name, renewal)
	h.Directive(name)
	h.Directive(name)
}

// TestWorkOfARenewalDoesNotGrow counts the workers and the groups that the table looks at when workers renew their
// leases, for 100 workers and for 1,000.
func TestWorkOfARenewalDoesNotGrow(t *testing.T) {
	const rounds, most = 10, 4
	for name, tc := range map[string]struct {
		state  *exchange.WorkerState
		before func(c *crowd)
	}{
		"all is well": {nil, func(*crowd) {}},
		"an environment is unavailable": {
			&exchange.WorkerState{Unavailable: map[string]string{"e": "down"}}, func(*crowd) {}},
		"a connection breaks": {nil, func(c *crowd) {
			c.Handler().Disconnected(c.names[0])
			c.Handler().Disconnected(c.names[1])
		}},
	} {
		for _, workers := range []int{100, 1000} {
			t.Run(fmt.Sprintf("%s, %d workers", name, workers), func(t *testing.T) {
				c := newCrowd(t, workers)
				c.state = tc.state
				for _, name := range c.names {
					c.renew(name) // its report is new
				}
				c.workers.census.looked, c.demands.looked = 0, 0
				for range rounds {
					c.now = c.now.Add(2 * time.Second)
					tc.before(c)
					for _, name := range c.names {
						c.renew(name)
					}
				}
				renewals := int64(rounds * workers)
				if looked := c.workers.census.looked; looked > most*renewals {
					t.Errorf("%d workers were looked at for %d renewals, want %d at most for each", looked, renewals, most)
				}
				if looked := c.demands.looked; looked > most*renewals {
					t.Errorf("%d groups were looked at for %d renewals, want %d at most for each", looked, renewals, most)
				}
				if got := len(c.Workers()); got != workers {
					t.Errorf("%d workers are alive, want %d", got, workers)
				}
			})
		}
	}
}

// BenchmarkWorkers renews the leases of 1,000 workers every 2 s and sends each a directive every second. core is the
// share of one core that this needs.
func BenchmarkWorkers(b *testing.B) {
	for _, workers := range []int{100, 1000} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			c := newCrowd(b, workers)
			before := processorTime(b)
			for b.Loop() {
				c.now = c.now.Add(2 * time.Second)
				c.Tick()
				c.Tick()
				for _, name := range c.names {
					c.renew(name)
				}
			}
			used := processorTime(b) - before
			b.ReportMetric(used.Seconds()/2/float64(b.N), "core")
		})
	}
}

// TestCensus compares the census with the state of each worker, while workers come, fall silent, lose their connections
// and return.
func TestCensus(t *testing.T) {
	ws := newWorkers(30 * time.Second)
	now := epoch
	for i := range 2000 {
		name := fmt.Sprint("w", i*7919%50)
		switch i * 31 % 11 {
		case 0, 1, 2, 3:
			ws.observe(name, now)
		case 4:
			ws.disconnect(name, now)
		case 5:
			if w := ws.byName[name]; w != nil {
				ws.observe(name, now).renew(exchange.Renewal{})
			}
		case 6:
			now = now.Add(time.Duration(i%9) * time.Second)
		case 7:
			ws.prune(now)
		case 8:
			now = now.Add(time.Duration(i%400) * time.Millisecond)
		}
		want := []string{}
		for _, name := range ws.names {
			if ws.isAlive(name, now) {
				want = append(want, name)
			}
		}
		expect(t, fmt.Sprint("alive after change ", i), want, ws.alive(now))
		expect(t, "known", len(ws.byName), len(ws.names))
	}
}
