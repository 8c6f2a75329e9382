// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// deathRun is a run whose learners die again and again at points drawn from a seed.
type deathRun struct {
	*fixture
	random          *rand.Rand
	deaths          int
	workers         []*fakeWorker
	added           int
	attempt         int32
	stoppedAttempts []*attempt
	stoppers        []*stopper
}

func (c *deathRun) addWorker() {
	c.added++
	c.workers = append(c.workers, c.startWorker(fmt.Sprintf("w%d", c.added), behavior{room: 8 << c.random.IntN(3)}))
}

// killAfterSomePoints kills at the n-th point that is passed.
func (c *deathRun) killAfterSomePoints() hook {
	left := int64(1 + c.random.IntN(30))
	var passed atomic.Int64
	return func(_ context.Context, kill func() error, _ string, _ int64) error {
		if passed.Add(1) == left {
			return kill()
		}
		return nil
	}
}

// disturb adds a random fault to the death of a process.
func (c *deathRun) disturb() {
	if c.random.IntN(3) == 0 {
		i := c.random.IntN(len(c.workers))
		c.workers[i].kill()
		c.workers = append(c.workers[:i], c.workers[i+1:]...)
		c.addWorker()
	}
	if c.random.IntN(6) == 0 {
		if err := c.sim.Restart(); err != nil {
			c.t.Fatal(err)
		}
	}
	if len(c.stoppers) > 0 && c.random.IntN(2) == 0 {
		close(c.stoppers[0].resume)
		c.stoppers = c.stoppers[1:]
	}
}

// runUntilCompleted runs attempts until one completes; most are killed, some are stopped and resume later.
func (c *deathRun) runUntilCompleted() contract.Verdict {
	for {
		c.attempt++
		if c.random.IntN(8) == 0 && c.attempt > 1 {
			c.stopOne()
			continue
		}
		a := c.startLearner(c.attempt, c.killAfterSomePoints())
		<-a.done
		if a.verdict.Cause == contract.CauseCompleted {
			return a.verdict
		}
		if a.verdict.Cause != contract.CauseCrashed {
			c.t.Fatalf("attempt %d ended with %s (%s: %s)", c.attempt, a.verdict.Cause, a.verdict.Reason, a.verdict.Message)
		}
		c.deaths++
		c.disturb()
	}
}

// stopOne stops an attempt at one of the points that every attempt passes.
func (c *deathRun) stopOne() {
	f := stopAt([]string{"open.listed", "open.loaded", "open.saved"}[c.random.IntN(3)], -1)
	a := c.startLearnerOn(c.attempt, f.hook, func(l net.Listener) net.Listener {
		f.listener = &cuttableListener{Listener: l}
		return f.listener
	})
	<-f.stopped
	c.stoppedAttempts, c.stoppers = append(c.stoppedAttempts, a), append(c.stoppers, f)
}

// resumeAll resumes all stopped learners: they end fenced.
func (c *deathRun) resumeAll() {
	for _, f := range c.stoppers {
		close(f.resume)
	}
	for _, first := range c.stoppedAttempts {
		_, _ = c.heartbeat(first, c.attempt+1, contract.DesiredRun)
		c.waitFor(first, contract.CauseFenced)
	}
}

// fromEnvironment returns a number that an environment variable gives, or the default.
func fromEnvironment(t *testing.T, name string, number int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return number
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q, want a number of at least 0", name, text)
	}
	return n
}

// liveHeap returns the size of the memory that the garbage collector cannot free.
func liveHeap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // frees the memory that finalizers kept in the first collection
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestRandomDeaths kills at least 200 learners, or SURVIVAL_DEATHS; another SURVIVAL_SEED gives other deaths. However
// many runs the process makes, its heap returns to the size that it had after the undisturbed run.
func TestRandomDeaths(t *testing.T) {
	const streams, mostLeft = 8, 16 << 20
	first, deaths := streams*fromEnvironment(t, "SURVIVAL_SEED", 0), fromEnvironment(t, "SURVIVAL_DEATHS", 208)
	want := baseline(t)
	before := liveHeap()
	var died, runs atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for seed := range streams {
			t.Run(fmt.Sprint(first+seed), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(uint64(first+seed), 1))
				own := 0
				for own < deaths/streams && !t.Failed() {
					n := runs.Add(1)
					// Each run is a test of its own, so that its simulator is freed at its end.
					t.Run(fmt.Sprint("run ", n), func(t *testing.T) { own += runUntilItSurvives(t, random, want) })
				}
				died.Add(int64(own))
			})
		}
	})
	left := liveHeap() - before
	t.Logf("%d deaths in %d runs, seeds %d to %d; the heap had %d KiB before and has %d KiB more",
		died.Load(), runs.Load(), first, first+streams-1, before>>10, left>>10)
	if left > mostLeft {
		t.Errorf("the runs left %d KiB in the heap, want %d KiB at most", left>>10, mostLeft>>10)
	}
}

// runUntilItSurvives makes a run whose learners die, compares it with the undisturbed one, and returns the number of
// deaths.
func runUntilItSurvives(t *testing.T, random *rand.Rand, want outcome) int {
	c := &deathRun{fixture: newFixture(t, nil), random: random}
	for range 1 + random.IntN(3) {
		c.addWorker()
	}
	c.compare(c.runUntilCompleted(), want)
	c.resumeAll()
	c.compareMetrics(want)
	for _, worker := range c.workers {
		worker.kill()
	}
	return c.deaths
}
