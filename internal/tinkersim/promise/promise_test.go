// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package promise_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/promise"
)

var keep = promise.Retention{Delivered: 5 * time.Minute, Undelivered: 30 * time.Minute}

func table() *promise.Table { return promise.NewTable("req-ab", keep, time.Now) }

// state fetches without waiting.
func state(t *testing.T, table *promise.Table, id string) (string, error) {
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
		if _, pause, ok, err := p.Wait(t.Context(), 30*time.Second); ok || err != nil || pause.State != promise.Active {
			t.Fatalf("Wait on an open promise = %v, %v, %v", pause, ok, err)
		}
		if waited := time.Since(start); waited != 30*time.Second {
			t.Errorf("waited %v, want 30s", waited)
		}
		p.SetPause(promise.Pause{State: "paused_capacity", Reason: "busy"})
		if _, pause, _, _ := p.Wait(t.Context(), time.Second); pause.State != "paused_capacity" || pause.Reason != "busy" {
			t.Errorf("pause = %v", pause)
		}
		go func() {
			time.Sleep(time.Second)
			p.Resolve(promise.Result{Kind: "k", Body: []byte("first")})
			p.Resolve(promise.Result{Kind: "k", Body: []byte("second")})
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
		id   func(p *promise.Promise) string
		want error
	}{
		"an open promise is found":           {func(p *promise.Promise) string { return p.ID() }, nil},
		"a lost promise is lost":             {func(p *promise.Promise) string { p.Lose(); return p.ID() }, promise.ErrLost},
		"a number not given out is unknown":  {func(*promise.Promise) string { return "req-ab-2" }, promise.ErrUnknown},
		"number zero is unknown":             {func(*promise.Promise) string { return "req-ab-0" }, promise.ErrUnknown},
		"another process's id is unknown":    {func(*promise.Promise) string { return "req-cd-1" }, promise.ErrUnknown},
		"an id that is no number is unknown": {func(*promise.Promise) string { return "req-ab-x" }, promise.ErrUnknown},
		"an empty id is unknown":             {func(*promise.Promise) string { return "" }, promise.ErrUnknown},
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
		fetched.Resolve(promise.Result{Body: []byte("a")})
		unfetched.Resolve(promise.Result{Body: []byte("b")})
		for range 4 { // fetched again and again, it stays
			if got, err := state(t, table, fetched.ID()); got != "a" || err != nil {
				t.Fatalf("fetched = %q, %v", got, err)
			}
			time.Sleep(4 * time.Minute)
		}
		time.Sleep(2 * time.Minute) // 6 minutes after the last time, 18 in all
		if _, err := state(t, table, fetched.ID()); !errors.Is(err, promise.ErrLost) {
			t.Errorf("6 min after delivery: %v, want ErrLost", err)
		}
		time.Sleep(13 * time.Minute) // 31 in all
		if _, err := state(t, table, unfetched.ID()); !errors.Is(err, promise.ErrLost) {
			t.Errorf("31 min without delivery: %v, want ErrLost", err)
		}
		time.Sleep(24 * time.Hour)
		if got, err := state(t, table, open.ID()); got != promise.Active || err != nil {
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
		if err := <-got; !errors.Is(err, promise.ErrLost) {
			t.Errorf("Wait = %v, want ErrLost", err)
		}
		p.Resolve(promise.Result{Body: []byte("late")})
		if _, _, ok, err := p.Wait(t.Context(), 0); ok || !errors.Is(err, promise.ErrLost) {
			t.Errorf("after a late Resolve: %v, %v, want ErrLost", ok, err)
		}
	})
}
