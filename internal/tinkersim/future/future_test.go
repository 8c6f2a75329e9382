// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package future_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
)

var keep = future.Retention{Delivered: 5 * time.Minute, Undelivered: 30 * time.Minute}

func table() *future.Table { return future.NewTable("req-ab", keep, time.Now) }

// fetch returns the body of a result, or else the queue state, without waiting.
func fetch(t *testing.T, table *future.Table, id string) (string, error) {
	t.Helper()
	f, err := table.Lookup(id)
	if err != nil {
		return "", err
	}
	result, status, ok, err := f.Wait(t.Context(), 0)
	if err != nil {
		return "", err
	}
	if !ok {
		return status.State, nil
	}
	return string(result.Body), nil
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := table().New()
		start := time.Now()
		if _, status, ok, err := f.Wait(t.Context(), 30*time.Second); ok || err != nil || status.State != future.Active {
			t.Fatalf("Wait on an open future = %v, %v, %v", status, ok, err)
		}
		if waited := time.Since(start); waited != 30*time.Second {
			t.Errorf("waited %v, want 30s", waited)
		}
		f.SetQueueStatus(future.QueueStatus{State: "paused_capacity", Reason: "busy"})
		if _, status, _, _ := f.Wait(t.Context(), time.Second); status.State != "paused_capacity" || status.Reason != "busy" {
			t.Errorf("status = %v", status)
		}
		go func() {
			time.Sleep(time.Second)
			f.Resolve(future.Result{Kind: "k", Body: []byte("first")})
			f.Resolve(future.Result{Kind: "k", Body: []byte("second")})
		}()
		start = time.Now()
		result, _, ok, err := f.Wait(t.Context(), 30*time.Second)
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
		id   func(f *future.Future) string
		want error
	}{
		"an open future is found": {func(f *future.Future) string { return f.ID() }, nil},
		"a lost future is lost": {func(f *future.Future) string { f.Lose(); return f.ID() },
			future.ErrLost},
		"a number that was not issued is unknown": {func(*future.Future) string { return "req-ab-2" }, future.ErrUnknown},
		"number zero is unknown":                  {func(*future.Future) string { return "req-ab-0" }, future.ErrUnknown},
		"another process's id is unknown":         {func(*future.Future) string { return "req-cd-1" }, future.ErrUnknown},
		"an id without a number is unknown":       {func(*future.Future) string { return "req-ab-x" }, future.ErrUnknown},
		"an empty id is unknown":                  {func(*future.Future) string { return "" }, future.ErrUnknown},
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

func TestTableCancel(t *testing.T) {
	cases := map[string]struct {
		prepare func(f *future.Future)
		id      string // the future's own if it is empty
		want    error
		lost    bool
	}{
		"an open future that may be canceled is lost": {prepare: (*future.Future).AllowCancel, lost: true},
		"a result stays": {prepare: func(f *future.Future) {
			f.AllowCancel()
			f.Resolve(future.Result{Body: []byte("a")})
		}},
		"a lost future stays lost":        {prepare: (*future.Future).Lose, lost: true},
		"another open future is not lost": {prepare: func(*future.Future) {}, want: future.ErrNotCancelable},
		"a number that was not issued":    {prepare: (*future.Future).AllowCancel, id: "req-ab-2", want: future.ErrUnknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			table := table()
			f := table.New()
			tc.prepare(f)
			if err := table.Cancel(cmp.Or(tc.id, f.ID())); !errors.Is(err, tc.want) {
				t.Errorf("Cancel = %v, want %v", err, tc.want)
			}
			_, err := table.Lookup(f.ID())
			if lost := errors.Is(err, future.ErrLost); lost != tc.lost {
				t.Errorf("Lookup = %v, want a lost future: %t", err, tc.lost)
			}
			if tc.lost && !isClosed(f.Done()) {
				t.Error("Done is not closed, so that the work is not stopped")
			}
		})
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := table()
		fetched, unfetched, open := table.New(), table.New(), table.New()
		fetched.Resolve(future.Result{Body: []byte("a")})
		unfetched.Resolve(future.Result{Body: []byte("b")})
		for range 4 { // each fetch prolongs the retention
			if got, err := fetch(t, table, fetched.ID()); got != "a" || err != nil {
				t.Fatalf("fetched = %q, %v", got, err)
			}
			time.Sleep(4 * time.Minute)
		}
		time.Sleep(2 * time.Minute) // 6 minutes after the last fetch, 18 in total
		if _, err := fetch(t, table, fetched.ID()); !errors.Is(err, future.ErrLost) {
			t.Errorf("6 min after delivery: %v, want ErrLost", err)
		}
		time.Sleep(13 * time.Minute) // 31 in total
		if _, err := fetch(t, table, unfetched.ID()); !errors.Is(err, future.ErrLost) {
			t.Errorf("31 min without delivery: %v, want ErrLost", err)
		}
		time.Sleep(24 * time.Hour)
		if got, err := fetch(t, table, open.ID()); got != future.Active || err != nil {
			t.Errorf("an open future = %q, %v, want it kept without a limit", got, err)
		}
		if table.Len() != 1 {
			t.Errorf("Len() = %d, want the open one only", table.Len())
		}
	})
}

func TestLoseWakesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := table().New()
		got := make(chan error)
		go func() {
			_, _, _, err := f.Wait(t.Context(), time.Hour)
			got <- err
		}()
		synctest.Wait()
		f.Lose()
		if err := <-got; !errors.Is(err, future.ErrLost) {
			t.Errorf("Wait = %v, want ErrLost", err)
		}
		f.Resolve(future.Result{Body: []byte("late")})
		if _, _, ok, err := f.Wait(t.Context(), 0); ok || !errors.Is(err, future.ErrLost) {
			t.Errorf("after a late Resolve: %v, %v, want ErrLost", ok, err)
		}
	})
}
