// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func exampleLease(slot int64) Lease {
	return Lease{
		Key: exampleKey(slot), Environment: "sums", Split: "train", Task: 77, GroupSize: 8, MinMembers: 4,
		Sampler: "tinker://model/sampler_weights/name", Seed: 1 << 63, SamplingSession: 1<<48 - 1,
	}
}

func TestHelloCarriesBothSides(t *testing.T) {
	t.Parallel()
	l, w := newLearner(), newWorker()
	evaluation := rl.Key{Kind: rl.Evaluate, Slot: 5, Lineage: rl.Genesis("x"), Evaluation: "plan"}
	w.hello = HelloRequest{
		Stored: []StoredGroup{
			{Key: exampleKey(3), Outcome: rl.JudgeFault},
			{Key: evaluation},
		},
		Playing: []rl.Key{exampleKey(4), evaluation},
		Groups:  []GroupSpent{{Key: exampleKey(3), Used: spending.Usage{PromptTokens: 1, SampledTokens: 2}}},
	}
	l.reply = HelloReply{
		Wanted: []rl.Key{exampleKey(3)}, Keep: []Lease{exampleLease(4)}, CoveredIndex: 2, Play: []byte(`{"a":1}`),
		Session: "session-1",
	}
	s := serve(t, "", epochOf(4), l, Timing{})
	a := runClient(t, clientConfig(t, s.address), w)
	if diff := cmp.Diff(w.hello, take(t, "Hello", l.hellos)); diff != "" {
		t.Errorf("received by the learner (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(l.reply, take(t, "answer", w.replies)); diff != "" {
		t.Errorf("received by the worker (-want +got):\n%s", diff)
	}
	if a.Attempt() != 4 {
		t.Errorf("the worker knows of attempt %d, want 4", a.Attempt())
	}
}

func TestRenewCarriesBothSides(t *testing.T) {
	t.Parallel()
	l, w := newLearner(), newWorker()
	w.renewal = Renewal{
		Progress: []Progress{{Key: exampleKey(4), MembersDone: 3, SampledTokens: 1 << 33, Next: 5}},
		Groups:   []GroupSpent{{Key: exampleKey(5), Used: spending.Usage{SampledTokens: 6}}},
		State: &WorkerState{
			Throttled: 7, QueueState: "paused_capacity", DataState: DataWaiting,
			Problems:    []*Problem{{Code: "DataBlocked", Evidence: "no rows"}, {Code: "JudgeBlocked", Evidence: "no judge"}},
			CallProblem: "no end", Unavailable: map[string]string{"env": "connection refused"},
			EndpointProblem: &EndpointProblem{Code: "EndpointFailing", Op: "asample", Status: 500,
				Evidence: "POST /api/v1/asample was answered with 500: no adapter"},
		},
	}
	l.directive = Directive{
		Revoked: []rl.Key{exampleKey(1)}, Credits: 32, CoveredIndex: 9, Session: "session-2", Wanted: []rl.Key{exampleKey(2)},
		CoveredEvaluations: []Evaluation{{Digest: "plan", Lineage: rl.Genesis("x")}},
		Rejected: []RejectedGroup{{Key: exampleKey(3), Outcome: rl.InvalidTokens,
			Reason: "token 99999 is unknown"}},
	}
	s := serve(t, "", epochOf(1), l, Timing{})
	runClient(t, clientConfig(t, s.address), w)
	for range 3 {
		if diff := cmp.Diff(w.renewal, take(t, "renewal", l.renewed), protocmp.Transform()); diff != "" {
			t.Fatalf("received by the learner (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(l.directive, take(t, "directive", w.directives)); diff != "" {
			t.Fatalf("received by the worker (-want +got):\n%s", diff)
		}
	}
}

func TestAcquireSubmitRelease(t *testing.T) {
	t.Parallel()
	l := newLearner()
	l.acquire = func(_ context.Context, worker string, free int) ([]Lease, error) {
		if worker != "worker-0" || free != 16 {
			return nil, fmt.Errorf("%s asked for %d", worker, free)
		}
		return []Lease{exampleLease(4), exampleLease(5)}, nil
	}
	l.result = Closed
	s := serve(t, "", epochOf(1), l, Timing{})
	a := runClient(t, clientConfig(t, s.address), newWorker())

	leases, err := a.Acquire(t.Context(), 16)
	if diff := cmp.Diff([]Lease{exampleLease(4), exampleLease(5)}, leases); diff != "" || err != nil {
		t.Errorf("leases: %v (-want +got):\n%s", err, diff)
	}
	group := exampleGroup(4, 8, 512)
	reply, err := a.Submit(t.Context(), encode(group))
	if err != nil || reply.GetStatus() != l.result {
		t.Errorf("Submit = %v, %v", reply, err)
	}
	if diff := cmp.Diff(group, take(t, "group", l.submitted)); diff != "" {
		t.Errorf("group (-want +got):\n%s", diff)
	}
	if err := a.Release(t.Context(), []rl.Key{exampleKey(5)}, "drain"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]rl.Key{exampleKey(5)}, take(t, "release", l.released)); diff != "" {
		t.Errorf("released (-want +got):\n%s", diff)
	}
}

func TestAcquireGivesNothingWhenNothingComes(t *testing.T) {
	t.Parallel()
	s := serve(t, "", epochOf(1), newLearner(), Timing{Acquire: 30 * time.Millisecond})
	a := runClient(t, clientConfig(t, s.address), newWorker())
	for range 3 {
		if leases, err := a.Acquire(t.Context(), 1); err != nil || leases != nil {
			t.Errorf("Acquire = %v, %v, want nothing", leases, err)
		}
	}
}

func TestNotifyReachesWorkersAtOnceAndOnlyNewsDoes(t *testing.T) {
	t.Parallel()
	l, w := newLearner(), newWorker()
	s := serve(t, "", epochOf(1), l, Timing{Direct: time.Hour})
	config := clientConfig(t, s.address)
	config.Renew = time.Hour
	runClient(t, config, w)
	take(t, "answer to the first renewal", w.directives)
	for covered := int64(1); covered <= 5; covered++ {
		s.Notify()
		l.direct(Directive{CoveredIndex: covered})
		s.Notify()
		s.Notify()
		if got := take(t, "directive", w.directives); got.CoveredIndex != covered {
			t.Fatalf("directive %+v, want covered index %d: one message for each change", got, covered)
		}
	}
}

func TestNewsComesWithoutNotifyToo(t *testing.T) {
	t.Parallel()
	l, w := newLearner(), newWorker()
	s := serve(t, "", epochOf(1), l, Timing{Direct: 10 * time.Millisecond})
	config := clientConfig(t, s.address)
	config.Renew = time.Hour
	runClient(t, config, w)
	take(t, "answer to the first renewal", w.directives)
	l.direct(Directive{Credits: 5})
	if got := take(t, "directive", w.directives); got.Credits != 5 {
		t.Errorf("directive %+v", got)
	}
}

func TestWorkerSaysHelloAnewWheneverTheStreamEnds(t *testing.T) {
	t.Parallel()
	l, w := newLearner(), newWorker()
	s := serve(t, "", epochOf(1), l, Timing{Stream: 30 * time.Millisecond})
	name := pointingTo(s)
	config := clientConfig(t, s.address)
	config.Dial = name.dial
	runClient(t, config, w)
	for range 5 {
		take(t, "Hello", l.hellos)
	}
	if n := name.dials.Load(); n < 5 {
		t.Errorf("%d dials for 5 Hellos", n)
	}
}

func TestCallsOutliveTheirConnectionsSuccessor(t *testing.T) {
	t.Parallel()
	l := newLearner()
	proceed, begun := make(chan struct{}), make(chan struct{}, 1)
	l.acquire = func(ctx context.Context, _ string, _ int) ([]Lease, error) {
		begun <- struct{}{}
		select {
		case <-proceed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return []Lease{exampleLease(1)}, nil
	}
	s := serve(t, "", epochOf(1), l, Timing{Stream: 20 * time.Millisecond})
	a := runClient(t, clientConfig(t, s.address), newWorker())
	result := make(chan error, 1)
	go func() {
		leases, err := a.Acquire(t.Context(), 1)
		if err == nil && len(leases) != 1 {
			err = errors.New("no lease")
		}
		result <- err
	}()
	take(t, "Acquire", begun)
	for range 4 {
		take(t, "Hello", l.hellos)
	}
	close(proceed)
	if err := take(t, "answer", result); err != nil {
		t.Errorf("Acquire was cut off when the worker dialled anew: %v", err)
	}
}

func TestHelloIsAskedAgainWhileTheLearnerIsNotReady(t *testing.T) {
	t.Parallel()
	l, w := newLearner(), newWorker()
	l.refuse = errors.New("opening")
	s := serve(t, "", epochOf(1), l, Timing{})
	runClient(t, clientConfig(t, s.address), w)
	take(t, "Hello", l.hellos)
	take(t, "second Hello", l.hellos)
	l.refuseHello(nil)
	take(t, "answer", w.replies)
}

func TestAFailedCallHasTheWorkerDialAndSayHelloAnew(t *testing.T) {
	t.Parallel()
	l := newLearner()
	failures := 2
	l.acquire = func(context.Context, string, int) ([]Lease, error) {
		if failures--; failures >= 0 {
			return nil, errors.New("not now")
		}
		return []Lease{exampleLease(1)}, nil
	}
	s := serve(t, "", epochOf(1), l, Timing{})
	a := runClient(t, clientConfig(t, s.address), newWorker())
	for range 2 {
		take(t, "Hello", l.hellos)
		if _, err := a.Acquire(t.Context(), 1); !errors.Is(err, ErrUnreachable) {
			t.Errorf("Acquire: %v, want %v", err, ErrUnreachable)
		}
	}
	take(t, "Hello", l.hellos)
	if leases, err := a.Acquire(t.Context(), 1); err != nil || len(leases) != 1 {
		t.Errorf("Acquire = %v, %v", leases, err)
	}
}

func TestManyWorkersSubmitAtOnce(t *testing.T) {
	t.Parallel()
	const workers, groups = 6, 30
	l := newLearner()
	s := serve(t, "", epochOf(1), l, Timing{Stream: 50 * time.Millisecond})
	var all sync.WaitGroup
	for n := range workers {
		config := clientConfig(t, s.address)
		config.Worker = fmt.Sprintf("worker-%d", n)
		a := runClient(t, config, newWorker())
		all.Go(func() {
			for i := range groups {
				group := exampleGroup(int64(n*groups+i), 4, 64+i)
				if reply, err := a.Submit(t.Context(), encode(group)); err != nil || reply.Status != Accepted {
					t.Errorf("Submit = %v, %v", reply, err)
				}
			}
		})
	}
	all.Wait()
	var slots []int64
	for range workers * groups {
		slots = append(slots, take(t, "group", l.submitted).Key.Slot)
	}
	slices.Sort(slots)
	for i, slot := range slots {
		if slot != int64(i) {
			t.Fatalf("slot %d is missing or came twice", i)
		}
	}
}

func TestServeEndsWithItsContextWhateverIsInProgress(t *testing.T) {
	t.Parallel()
	l := newLearner()
	acquiring := make(chan struct{}, 1)
	l.acquire = func(ctx context.Context, _ string, _ int) ([]Lease, error) {
		acquiring <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s := serve(t, "", epochOf(1), l, Timing{})
	a := runClient(t, clientConfig(t, s.address), newWorker())
	acquired := make(chan error, 1)
	go func() {
		_, err := a.Acquire(t.Context(), 1)
		acquired <- err
	}()
	take(t, "Acquire", acquiring)
	s.stop()
	take(t, "end of Acquire", acquired)
}

func TestCallsEndWithTheirContextWithoutALearner(t *testing.T) {
	t.Parallel()
	client, err := NewClient(clientConfig(t, "127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Acquire(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire: %v", err)
	}
	if _, err := client.Submit(ctx, encodedGroup(1, 2, 4)); !errors.Is(err, context.Canceled) {
		t.Errorf("Submit: %v", err)
	}
	if err := client.Release(ctx, nil, "drain"); !errors.Is(err, context.Canceled) {
		t.Errorf("Release: %v", err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if _, err := client.Acquire(t.Context(), 1); !errors.Is(err, ErrUnreachable) {
		t.Errorf("Acquire of a closed client: %v", err)
	}
}

// TestRedialPausesDiffer draws the pauses of many workers that lose their learner at once: they are never longer than
// the learner expects, and are spread over half of that.
func TestRedialPausesDiffer(t *testing.T) {
	shortest, longest := time.Hour, time.Duration(0)
	for range 1000 {
		pause := redialPauses.After(10)
		shortest, longest = min(shortest, pause), max(longest, pause)
	}
	if longest > redialPauses.Longest || shortest < redialPauses.Longest/2 || longest-shortest < redialPauses.Longest/4 {
		t.Errorf("pauses are %v to %v, want them spread over %v to %v", shortest, longest, redialPauses.Longest/2,
			redialPauses.Longest)
	}
}
