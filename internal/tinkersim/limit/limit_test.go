// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"testing"
	"time"
)

func TestRequestsPerSecond(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	l := New(Limits{RequestsPerSecond: 5}, func() time.Time { return now })
	count := func(op string) (permitted int) {
		for range 100 {
			if _, ok := l.Admit(op); ok {
				permitted++
			}
		}
		return permitted
	}
	for after, want := range []int{5, 1, 2, 5, 5} {
		now = now.Add(time.Duration(after) * 200 * time.Millisecond)
		if after == 4 {
			now = now.Add(time.Hour)
		}
		if after == 3 {
			now = now.Add(400 * time.Millisecond)
		}
		if got := count("optim_step"); got != want {
			t.Errorf("step %d: %d of 100 requests are permitted, want %d", after, got, want)
		}
	}
	if got := count("retrieve_future"); got != 100 {
		t.Errorf("%d of 100 polls are permitted, want all", got)
	}
	if l.Refused() != 500-18 {
		t.Errorf("%d requests were refused, want %d", l.Refused(), 500-18)
	}
}

func TestUnfinishedSamples(t *testing.T) {
	l := New(Limits{UnfinishedSamples: 2}, time.Now)
	admit := func() func(string, <-chan struct{}) {
		end, ok := l.Admit(OpSample)
		if !ok {
			return nil
		}
		return end
	}
	first, second := make(chan struct{}), make(chan struct{})
	admit()("f1", first)
	end := admit()
	if admit() != nil {
		t.Error("a third sample is permitted while one has no future yet")
	}
	end("f1", first) // the request was sent again
	admit()("", nil) // the server refused it
	admit()("f2", second)
	if admit() != nil {
		t.Error("a third sample is permitted")
	}
	if _, ok := l.Admit("optim_step"); !ok {
		t.Error("an operation needs a place")
	}
	close(second)
	end = admit()
	if end == nil {
		t.Fatal("a sample has no place although another one has its result")
	}
	end("f3", first)
	if admit() != nil {
		t.Error("a third sample is permitted")
	}
	l.Forget()
	if admit() == nil {
		t.Error("a sample has no place after the server was restarted")
	}
}
