// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func benchStream(envs int) []rl.Source {
	var s []rl.Source
	for e := range envs {
		src := rl.Source{Environment: fmt.Sprintf("e%02d", e), Split: "train", Tasks: 10000, Shuffle: true}
		if envs > 1 {
			src.Weight = float64(e + 1)
		}
		s = append(s, src)
	}
	return s
}

// groupEvery is the time between two groups, which come one by one.
const groupEvery = 4 * time.Millisecond

// BenchmarkBatch does the learner's work for one batch while workers wait for leases. cpu-ms is the processor time of
// this work. The processor time of waiting for groups is measured apart, as waiting-ms.
func BenchmarkBatch(b *testing.B) {
	for _, g := range []int{64, 512, 1024} {
		for _, workers := range []int{2, 32} {
			b.Run(fmt.Sprintf("groups=%d/workers=%d", g, workers), func(b *testing.B) {
				b.ReportAllocs()
				var all, waiting time.Duration
				for b.Loop() {
					before := processorTime(b)
					batch(b, g, 8, workers)
					after := processorTime(b)
					for range g {
						time.Sleep(groupEvery)
					}
					all, waiting = all+after-before, waiting+processorTime(b)-after
				}
				b.ReportMetric((all-waiting).Seconds()*1000/float64(b.N), "cpu-ms/op")
				b.ReportMetric(waiting.Seconds()*1000/float64(b.N), "waiting-ms/op")
			})
		}
	}
}

// processorTime is the processor time of the process.
func processorTime(tb testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func batch(tb testing.TB, g, envs, workers int) {
	board := newFixture(Config{Concurrency: g * 8, Silence: time.Hour, Logger: slog.New(slog.DiscardHandler),
		Now: time.Now})
	board.Open()
	stream, err := rl.NewStream(1, benchStream(envs))
	if err != nil {
		tb.Fatal(err)
	}
	groups := map[string]GroupShape{}
	for e := range envs {
		groups[fmt.Sprintf("e%02d", e)] = GroupShape{8, 1}
	}
	tr := NewBatchSource(board.Table, BatchConfig{Rules: rl.Rules{TasksPerStep: g, Refill: true, Steps: 5}, Stream: stream,
		Groups: groups})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	tr.Reset(rl.Position{}, []Version{{Lineage: lineage, Sampler: "s0"}})
	for i := range workers {
		_, _ = board.Hello(ctx, fmt.Sprint("w", i), exchange.HelloRequest{})
	}
	var leases []exchange.Lease
	var owner []string
	for i := range workers {
		got := board.grant(fmt.Sprint("w", i), 1<<20)
		for _, l := range got {
			leases, owner = append(leases, l), append(owner, fmt.Sprint("w", i))
		}
	}
	all.Go(func() { tr.Run(ctx) })
	done := make(chan struct{})
	all.Go(func() { _, _ = tr.Batch(ctx); close(done) })
	for i := range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				_, _ = board.Acquire(ctx, fmt.Sprint("w", i), 8)
			}
		})
	}
	for i, l := range leases {
		gr := rl.Group{Key: l.Key, Environment: l.Environment, SampledTokens: 10, Members: []rl.Member{
			{Reward: 1, Trajectories: []rl.Trajectory{{Reward: 1}}}, {Index: 1, Trajectories: []rl.Trajectory{{}}}}}
		board.Submit(owner[i], gr, gr.Digest())
		time.Sleep(groupEvery)
	}
	if len(leases) >= g {
		<-done
	}
	cancel()
	all.Wait()
}
