// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package future_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
)

var keep = future.Retention{Delivered: 5 * time.Minute, Undelivered: 30 * time.Minute}

func table() *future.Table { return future.NewTable("req-ab", keep, time.Now) }

// state fetches without waiting.
func state(t *testing.T, table *future.Table, id string) (string, error) {
	t.Helper()
	p, err := table.Lookup(id)
	if err != nil {
		return "", err
	}
	result, pause, ok, err := p.Wait(t.Context(), 0)
	if err != nil {
		return "", err
	}
	if !ok {
		return pause.State, nil
	}
	return string(result.Body), nil
}

func TestPromiseWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := table().New()
		start := time.Now()
		if _, pause, ok, err := p.Wait(t.Context(), 30*time.Second); ok || err != nil || pause.State != future.Active {
			t.Fatalf("Wait on an open promise = %v, %v, %v", pause, ok, err)
		}
		if waited := time.Since(start); waited != 30*time.Second {
			t.Errorf("waited %v, want 30s", waited)
		}
		p.SetQueueStatus(future.QueueStatus{State: "paused_capacity", Reason: "busy"})
		if _, pause, _, _ := p.Wait(t.Context(), time.Second); pause.State != "paused_capacity" || pause.Reason != "busy" {
			t.Errorf("pause = %v", pause)
		}
		go func() {
			time.Sleep(time.Second)
			p.Resolve(future.Result{Kind: "k", Body: []byte("first")})
			p.Resolve(future.Result{Kind: "k", Body: []byte("second")})
		}()
		start = time.Now()
		result, _, ok, err := p.Wait(t.Context(), 30*time.Second)
		if err != nil || !ok || string(result.Body) != "first" || result.Kind != "k" {
			t.Fatalf("Wait = %v, %v, %v, want the first result", result, ok, err)
		}
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %v, want 1s", waited)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, _, err := table().New().Wait(canceled, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait with a canceled context = %v", err)
		}
	})
}

func TestTableLookup(t *testing.T) {
	cases := map[string]struct {
		id   func(p *future.Future) string
		want error
	}{
		"an open promise is found":           {func(p *future.Future) string { return p.ID() }, nil},
		"a lost promise is lost":             {func(p *future.Future) string { p.Lose(); return p.ID() }, future.ErrLost},
		"a number not given out is unknown":  {func(*future.Future) string { return "req-ab-2" }, future.ErrUnknown},
		"number zero is unknown":             {func(*future.Future) string { return "req-ab-0" }, future.ErrUnknown},
		"another process's id is unknown":    {func(*future.Future) string { return "req-cd-1" }, future.ErrUnknown},
		"an id that is no number is unknown": {func(*future.Future) string { return "req-ab-x" }, future.ErrUnknown},
		"an empty id is unknown":             {func(*future.Future) string { return "" }, future.ErrUnknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			table := table()
			if _, err := table.Lookup(tc.id(table.New())); !errors.Is(err, tc.want) {
				t.Errorf("Lookup = %v, want %v", err, tc.want)
			}
		})
	}
}

func TestTableKeepsResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := table()
		fetched, unfetched, open := table.New(), table.New(), table.New()
		fetched.Resolve(future.Result{Body: []byte("a")})
		unfetched.Resolve(future.Result{Body: []byte("b")})
		for range 4 { // fetched again and again, it stays
			if got, err := state(t, table, fetched.ID()); got != "a" || err != nil {
				t.Fatalf("fetched = %q, %v", got, err)
			}
			time.Sleep(4 * time.Minute)
		}
		time.Sleep(2 * time.Minute) // 6 minutes after the last time, 18 in all
		if _, err := state(t, table, fetched.ID()); !errors.Is(err, future.ErrLost) {
			t.Errorf("6 min after delivery: %v, want ErrLost", err)
		}
		time.Sleep(13 * time.Minute) // 31 in all
		if _, err := state(t, table, unfetched.ID()); !errors.Is(err, future.ErrLost) {
			t.Errorf("31 min without delivery: %v, want ErrLost", err)
		}
		time.Sleep(24 * time.Hour)
		if got, err := state(t, table, open.ID()); got != future.Active || err != nil {
			t.Errorf("an open promise = %q, %v, want it kept for ever", got, err)
		}
		if table.Len() != 1 {
			t.Errorf("Len() = %d, want the open one only", table.Len())
		}
	})
}

func TestPromiseLoseWakesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := table().New()
		got := make(chan error)
		go func() {
			_, _, _, err := p.Wait(t.Context(), time.Hour)
			got <- err
		}()
		synctest.Wait()
		p.Lose()
		if err := <-got; !errors.Is(err, future.ErrLost) {
			t.Errorf("Wait = %v, want ErrLost", err)
		}
		p.Resolve(future.Result{Body: []byte("late")})
		if _, _, ok, err := p.Wait(t.Context(), 0); ok || !errors.Is(err, future.ErrLost) {
			t.Errorf("after a late Resolve: %v, %v, want ErrLost", ok, err)
		}
	})
}
