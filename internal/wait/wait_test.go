// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestForReturnsWhatIsThere(t *testing.T) {
	got, err := For(t.Context(), &Signal{}, func() (int, bool) { return 7, true })
	if err != nil || got != 7 {
		t.Errorf("For = %d, %v, want 7", got, err)
	}
}

func TestNotifyWakesEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 3
		var s Signal
		value, got := 0, make(chan int, waiters)
		for range waiters {
			go func() {
				v, _ := For(t.Context(), &s, func() (int, bool) { return value, value > 1 })
				got <- v
			}()
		}
		for value < 2 {
			synctest.Wait()
			if len(got) > 0 {
				t.Errorf("For returned while the value was %d", value)
			}
			value++
			s.Notify()
		}
		for range waiters {
			if v := <-got; v != 2 {
				t.Errorf("For = %d, want 2", v)
			}
		}
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := For(ctx, &Signal{}, func() (int, bool) { return 0, false }); !errors.Is(err, cause) {
		t.Errorf("For: %v, want %v", err, cause)
	}
	if err := Sleep(ctx, time.Hour); !errors.Is(err, cause) {
		t.Errorf("Sleep: %v, want %v", err, cause)
	}
}

func TestSleepLastsForItsDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Sleep(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("Sleep took %v, %v", time.Since(began), err)
		}
	})
}
