// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// chaos is a run whose learners die again and again at points drawn from a seed.
type chaos struct {
	*world
	random  *rand.Rand
	deaths  int
	workers []*player
	named   int
	attempt int32
	zombies []*attempt
	ice     []*freezer
}

func (c *chaos) hire() {
	c.named++
	c.workers = append(c.workers, c.play(fmt.Sprintf("w%d", c.named), ways{room: 8 << c.random.IntN(3)}))
}

// strike kills at the n-th point that is passed.
func (c *chaos) strike() hook {
	left := int64(1 + c.random.IntN(30))
	var passed atomic.Int64
	return func(_ context.Context, kill func() error, _ string, _ int64) error {
		if passed.Add(1) == left {
			return kill()
		}
		return nil
	}
}

// trouble is what else may happen at a death.
func (c *chaos) trouble() {
	if c.random.IntN(3) == 0 {
		i := c.random.IntN(len(c.workers))
		c.workers[i].kill()
		c.workers = append(c.workers[:i], c.workers[i+1:]...)
		c.hire()
	}
	if c.random.IntN(6) == 0 {
		if err := c.sim.Restart(); err != nil {
			c.t.Fatal(err)
		}
	}
	if len(c.ice) > 0 && c.random.IntN(2) == 0 {
		close(c.ice[0].thaw)
		c.ice = c.ice[1:]
	}
}

// live runs attempts until one completes; most die, some are stopped and go on later.
func (c *chaos) live() contract.Verdict {
	for {
		c.attempt++
		if c.random.IntN(8) == 0 && c.attempt > 1 {
			c.stop()
			continue
		}
		a := c.learn(c.attempt, c.strike())
		<-a.done
		if a.verdict.Cause == contract.CauseCompleted {
			return a.verdict
		}
		if a.verdict.Cause != contract.CauseCrashed {
			c.t.Fatalf("attempt %d ended with %s (%s: %s)", c.attempt, a.verdict.Cause, a.verdict.Reason, a.verdict.Message)
		}
		c.deaths++
		c.trouble()
	}
}

// stop freezes an attempt at one of the points that every attempt passes.
func (c *chaos) stop() {
	f := freezeAt([]string{"open.listed", "open.loaded", "open.saved"}[c.random.IntN(3)], -1)
	a := c.learnWith(c.attempt, f.hook, func(l net.Listener) net.Listener {
		f.cord = &cord{Listener: l}
		return f.cord
	})
	<-f.frozen
	c.zombies, c.ice = append(c.zombies, a), append(c.ice, f)
}

// bury lets all zombies go on: they end fenced.
func (c *chaos) bury() {
	for _, f := range c.ice {
		close(f.thaw)
	}
	for _, zombie := range c.zombies {
		_, _ = c.beat(zombie, c.attempt+1, contract.DesiredRun)
		c.end(zombie, contract.CauseFenced)
	}
}

// TestChaos lives through at least 200 deaths.
func TestChaos(t *testing.T) {
	const streams, deathsEach = 8, 26
	want := baseline(t)
	for seed := range streams {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			deaths, runs := 0, 0
			for random := rand.New(rand.NewPCG(uint64(seed), 1)); deaths < deathsEach; runs++ {
				c := &chaos{world: newWorld(t, nil), random: random}
				for range 1 + random.IntN(3) {
					c.hire()
				}
				if got := c.weights(c.live()); got != want {
					t.Errorf("after %d deaths the final adapter is %s, undisturbed %s", c.deaths, got, want)
				}
				c.bury()
				c.checkMetrics()
				for _, worker := range c.workers {
					worker.kill()
				}
				deaths += c.deaths
			}
			t.Logf("%d deaths in %d runs", deaths, runs)
		})
	}
}
