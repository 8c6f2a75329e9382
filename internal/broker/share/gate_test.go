// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// busy returns a gate with two places, both taken: one by a sample of an earlier process, the other by a new sample.
func busy(t *testing.T, patience time.Duration) *Gate {
	t.Helper()
	g := New(Config{Limits: endpoint.Limits{UnfinishedSamples: 2}, Patience: patience})
	g.Resume(map[string]string{"earlier": "a"})
	g.Resume(map[string]string{"earlier": "a"})
	turn, err := g.Wait(t.Context(), Request{Run: "a", Sample: true})
	if err != nil {
		t.Fatal(err)
	}
	turn.Accept("f1")
	turn.End()
	return g
}

func wait(g *Gate, ctx context.Context, request Request) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := g.Wait(ctx, request)
		ended <- err
	}()
	return ended
}

func TestASampleWaitsForAPlace(t *testing.T) {
	for name, free := range map[string]func(*Gate){
		"a result":          func(g *Gate) { g.Finish("f1"); g.Finish("f1") },
		"an earlier result": func(g *Gate) { g.Finish("earlier") },
		"a higher limit":    func(g *Gate) { g.SetLimits(endpoint.Limits{UnfinishedSamples: 3}) },
		"no limit any more": func(g *Gate) { g.SetLimits(endpoint.Limits{}) },
	} {
		g := busy(t, time.Minute)
		ended := wait(g, t.Context(), Request{Run: "b", Sample: true})
		if _, err := g.Wait(t.Context(), Request{Run: "b"}); err != nil {
			t.Errorf("%s: an operation: %v", name, err)
		}
		select {
		case err := <-ended:
			t.Errorf("%s: a sample without a place ends its wait: %v", name, err)
		case <-time.After(30 * time.Millisecond):
		}
		free(g)
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPlacesOfSamplesWithoutAResultAreFreeAfterHours(t *testing.T) {
	g := busy(t, time.Minute)
	for range 2 {
		if g.Tick(); g.core.unfinished != 2 {
			t.Errorf("%d places are taken, want 2", g.core.unfinished)
		}
	}
	g.mu.Lock()
	g.now = func() time.Time { return time.Now().Add(longestSample) }
	g.mu.Unlock()
	if g.Tick(); g.core.unfinished != 0 {
		t.Errorf("%d places are taken after hours, want 0", g.core.unfinished)
	}
}

func TestASampleThatIsSentAgainTakesOnePlace(t *testing.T) {
	g := New(Config{Limits: endpoint.Limits{UnfinishedSamples: 2}})
	for range 5 {
		turn, err := g.Wait(t.Context(), Request{Run: "a", Sample: true})
		if err != nil {
			t.Fatal(err)
		}
		turn.Accept("same")
	}
	turn, err := g.Wait(t.Context(), Request{Run: "a", Sample: true})
	if err != nil {
		t.Fatal(err)
	}
	turn.End() // the server did not accept it
	if g.core.unfinished != 1 {
		t.Errorf("%d places are taken, want 1", g.core.unfinished)
	}
}

func TestAWaitEnds(t *testing.T) {
	g := busy(t, 50*time.Millisecond)
	err := <-wait(g, t.Context(), Request{Run: "b", Sample: true})
	refused, ok := errors.AsType[*Busy](err)
	if !ok || refused.RetryAfter < time.Second {
		t.Errorf("a wait in vain ends with %v, want Busy", err)
	}
	if got := g.Throttled(time.Now()); len(got) != 1 || got[0].UID != "b" || got[0].Share != 0.5 {
		t.Errorf("throttled = %+v, want run b with half", got)
	}

	g = busy(t, time.Minute)
	gone := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := wait(g, ctx, Request{Run: "b", Sample: true})
	cancel(gone)
	if err := <-ended; !errors.Is(err, gone) {
		t.Errorf("the wait of a client that left ends with %v", err)
	}
	g.Finish("f1")
	if err := <-wait(g, t.Context(), Request{Run: "c", Sample: true}); err != nil {
		t.Errorf("the place is not free: %v", err)
	}
}

func TestManyClientsShareARateInRealTime(t *testing.T) {
	g := New(Config{Limits: endpoint.Limits{RequestsPerSecond: 200}})
	g.SetRuns([]endpoint.Run{{UID: "a", Weight: 3}, {UID: "b", Weight: 1}})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var mu sync.Mutex
	turns := map[string]float64{}
	var clients sync.WaitGroup
	for _, uid := range []string{"a", "b"} {
		for range 100 {
			clients.Go(func() {
				for {
					turn, err := g.Wait(ctx, Request{Run: uid, Sample: true})
					if err != nil {
						return
					}
					turn.Answered(false)
					turn.End()
					mu.Lock()
					turns[uid]++
					mu.Unlock()
				}
			})
		}
	}
	clients.Wait()
	// 400 turns are expected, and those of a quarter of a second more. The machine may be busy.
	if all := turns["a"] + turns["b"]; all > 460 || all < 100 || turns["a"] < 2*turns["b"] || turns["a"] > 4*turns["b"] {
		t.Errorf("turns = %v, want 300 of a and 100 of b", turns)
	}
}
