// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"
)

func TestSampleTimesAreLognormal(t *testing.T) {
	const draws = 20000
	logs := make([]float64, draws)
	var sum, squares float64
	for seed := range logs {
		x := math.Log(Hosted.SampleTime(uint64(seed)).Seconds() / Hosted.Sample.Seconds())
		logs[seed] = x
		sum += x
		squares += x * x
	}
	mean := sum / draws
	sigma := math.Sqrt(squares/draws - mean*mean)
	slices.Sort(logs)
	// The standard errors are 0.0035 and 0.0025.
	if math.Abs(mean) > 0.02 || math.Abs(sigma-Hosted.SampleSigma) > 0.02 || math.Abs(logs[draws/2]) > 0.02 {
		t.Errorf("logarithms of %d sample times have mean %.4f, median %.4f and deviation %.4f, want 0, 0 and %.4f",
			draws, mean, logs[draws/2], sigma, Hosted.SampleSigma)
	}
	if first, second := Hosted.SampleTime(7), Hosted.SampleTime(7); first != second {
		t.Errorf("the time of a sample is not a function of its seed: got %v, want %v", first, second)
	}
}

func TestFasterDividesEachTime(t *testing.T) {
	got := Hosted.Faster(10)
	want := Profile{
		Sample: 1200 * time.Millisecond, SampleSigma: 0.5,
		Sequence: 3750 * time.Microsecond, OptimStep: 40 * time.Millisecond, Cycle: 800 * time.Millisecond,
		SaveSampler: 300 * time.Millisecond, SaveState: 1400 * time.Millisecond,
		RefuseEvery: 50, RetryAfter: 100 * time.Millisecond,
	}
	if got != want {
		t.Errorf("Faster(10) = %+v, want %+v", got, want)
	}
}

func TestNextCycle(t *testing.T) {
	p := Profile{Cycle: 8 * time.Second}
	multiple := time.Unix(0, 0).UTC().Truncate(8 * time.Second)
	for offset, want := range map[time.Duration]time.Duration{0: 0, 1: 8 * time.Second, 8 * time.Second: 8 * time.Second,
		9 * time.Second: 16 * time.Second} {
		if got := p.NextCycle(multiple.Add(offset)); !got.Equal(multiple.Add(want)) {
			t.Errorf("NextCycle(%v) is after %v, want %v", offset, got.Sub(multiple), want)
		}
	}
}

func TestOperateTakesItsTime(t *testing.T) {
	profile := Profile{Sequence: time.Millisecond, OptimStep: 2 * time.Millisecond, Cycle: 5 * time.Millisecond,
		SaveState: time.Hour}
	var events []Event
	s := NewSimulator(profile, func(e Event) { events = append(events, e) })
	for _, work := range []Work{
		{Op: opForwardBackward, Model: "m", Sequences: 3}, {Op: opForwardBackward, Model: "m", Sequences: 4},
		{Op: opOptimStep, Model: "m"}, {Op: opForwardBackward, Model: "m", Sequences: 1},
	} {
		ready, err := s.Operate(t.Context(), work, func() error { return nil })
		if err != nil || !ready.IsZero() {
			t.Fatalf("%s: %v, %v, want a result at once after its time", work.Op, ready, err)
		}
		if last := events[len(events)-1]; time.Now().Before(last.Ended) {
			t.Errorf("%s ended before its time", work.Op)
		}
	}
	isMultiple := func(e Event) bool { return e.Begun.Truncate(profile.Cycle).Equal(e.Begun) }
	if !isMultiple(events[0]) || !isMultiple(events[3]) || events[1].Begun != events[1].Arrived {
		t.Errorf("the first forward_backward of each step begins at a multiple of the cycle and others at once: %+v", events)
	}
	for i, want := range []time.Duration{3, 4, 2, 1} {
		if got := events[i].Ended.Sub(events[i].Begun); got != want*time.Millisecond {
			t.Errorf("operation %d took %v, want %d ms", i, got, want)
		}
	}

	before := time.Now()
	ready, err := s.Operate(t.Context(), Work{Op: opSaveState}, func() error { return nil })
	if err != nil || ready.Before(before.Add(time.Hour)) {
		t.Errorf("a save has its result at %v, %v, want an hour later, without blocking the model", ready, err)
	}
}

func TestOperateEndsWithItsContext(t *testing.T) {
	s := NewSimulator(Profile{SaveState: time.Hour, SavesBlock: true}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Operate(ctx, Work{Op: opSaveState}, func() error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Operate = %v, want %v", err, context.Canceled)
	}
	failed := errors.New("failed")
	if _, err := s.Operate(t.Context(), Work{Op: opSaveState}, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("Operate = %v, want the error of the operation at once", err)
	}
}

func TestRefusesCountsOperations(t *testing.T) {
	s := NewSimulator(Profile{RefuseEvery: 3, RetryAfter: time.Second}, nil)
	var refused []int
	for i := range 9 {
		if _, ok := s.Refuses("retrieve_future"); ok {
			t.Error("a poll was refused")
		}
		if after, ok := s.Refuses(opSample); ok {
			refused = append(refused, i)
			if after != time.Second {
				t.Errorf("retry after %v, want a second", after)
			}
		}
	}
	if !slices.Equal(refused, []int{2, 5, 8}) {
		t.Errorf("requests %v were refused, want each third", refused)
	}
}

func TestNilSimulatorAddsNothing(t *testing.T) {
	s := NewSimulator(Profile{}, nil)
	if s != nil {
		t.Fatal("the zero profile has a simulator")
	}
	if _, refused := s.Refuses(opSample); refused || !s.Sample("m", "p", []uint64{1}).IsZero() {
		t.Error("a nil simulator adds a time or refuses a request")
	}
	called := false
	ready, err := s.Operate(t.Context(), Work{Op: opSaveState}, func() error { called = true; return nil })
	if !called || !ready.IsZero() || err != nil {
		t.Errorf("Operate = %v, %v, called %v", ready, err, called)
	}
}
