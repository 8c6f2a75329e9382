// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBackoff(t *testing.T) {
	random := func(part float64) func() float64 { return func() float64 { return part } }
	plain := Backoff{First: time.Second, Longest: 30 * time.Second}
	cases := map[string]struct {
		backoff  Backoff
		failures []int
		want     []time.Duration
	}{
		"no failure has no pause": {plain, []int{-1, 0}, []time.Duration{0, 0}},
		"pauses double up to the longest": {plain, []int{1, 2, 3, 4, 5, 6, 7}, []time.Duration{time.Second, 2 * time.Second,
			4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}},
		"no number of failures overflows": {plain, []int{64, 65, math.MaxInt}, []time.Duration{30 * time.Second,
			30 * time.Second, 30 * time.Second}},
		"the longest bounds the first": {Backoff{First: time.Minute, Longest: time.Second}, []int{1, 2},
			[]time.Duration{time.Second, time.Second}},
		"jitter makes pauses longer": {Backoff{time.Second, 4 * time.Second, 0.25, random(0.5)}, []int{0, 1, 3, 4},
			[]time.Duration{0, 1125 * time.Millisecond, 4500 * time.Millisecond, 4500 * time.Millisecond}},
		"or shorter": {Backoff{time.Second, 4 * time.Second, -0.5, random(0.5)}, []int{1, 3},
			[]time.Duration{750 * time.Millisecond, 3 * time.Second}},
		"none of it is drawn": {Backoff{time.Second, 4 * time.Second, -0.5, random(0)}, []int{1},
			[]time.Duration{time.Second}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []time.Duration
			for _, failures := range tc.failures {
				got = append(got, tc.backoff.After(failures))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pauses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBackoffDrawsJitterBetweenItsBounds(t *testing.T) {
	b, seen := Backoff{First: time.Second, Longest: time.Second, Jitter: -0.5}, map[time.Duration]bool{}
	for range 100 {
		pause := b.After(1)
		if seen[pause] = true; pause <= time.Second/2 || pause > time.Second {
			t.Errorf("After(1) = %v, want over 500ms and at most 1s", pause)
		}
	}
	if len(seen) < 2 {
		t.Errorf("100 pauses are %v, want various ones", seen)
	}
}

func TestPausesCountFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := Pauses{Backoff: Backoff{First: time.Second, Longest: time.Minute}}
		for range 3 {
			if err := p.Sleep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("three pauses took %v, want 7s", took)
		}
		p.Failures = 0
		if got := p.Next(); got != time.Second {
			t.Errorf("Next after a success = %v, want 1s", got)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		cancel(cause)
		if err := p.Sleep(ctx); !errors.Is(err, cause) {
			t.Errorf("Sleep = %v, want %v", err, cause)
		}
	})
}
