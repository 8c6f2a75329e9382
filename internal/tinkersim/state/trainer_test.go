// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
)

// recorder submits operations to a model that record their numbers when they are carried out.
type recorder struct {
	*fixture
	trainer  *trainer
	executed []int64 // written by the goroutine of the trainer alone
}

func newRecorder(t *testing.T, rules ...fault.Rule) *recorder {
	t.Helper()
	f := newFixture(t, rules...)
	tr, err := f.Models.trainer(f.model(f.session(), 0))
	if err != nil {
		t.Fatal(err)
	}
	return &recorder{fixture: f, trainer: tr}
}

// submit submits a chunk or another operation.
func (r *recorder) submit(seq int64, chunk bool) (tinker.FutureResponse, error) {
	return r.trainer.submit(submission{
		op: OpForward, seq: seq, chunk: chunk, digest: digestOf(seq),
		do: func(*trainer, *operation) (future.Result, error) {
			r.executed = append(r.executed, seq)
			return jsonResult(struct{}{}), nil
		},
	})
}

func TestTrainerOrder(t *testing.T) {
	// Negative numbers are operations that are not chunks.
	cases := map[string]struct {
		arrivals []int64
		want     []int64
		late     int // how many of the operations fail because they arrive too late
	}{
		"in order":                      {[]int64{1, 2, 3, -4}, []int64{1, 2, 3, 4}, 0},
		"chunks in reverse":             {[]int64{3, 2, 1, -4}, []int64{1, 2, 3, 4}, 0},
		"repetitions":                   {[]int64{1, 1, 2, 1, -3, 2, -3}, []int64{1, 2, 3}, 0},
		"a gap before an operation":     {[]int64{2, 5, -7}, []int64{2, 5, 7}, 0},
		"operations only":               {[]int64{-1, -2, -3}, []int64{1, 2, 3}, 0},
		"a chunk below an operation":    {[]int64{-5, 4}, []int64{5}, 1},
		"an operation below an earlier": {[]int64{-5, -4, -6}, []int64{5, 6}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t)
			ids := map[int64]string{}
			for _, n := range tc.arrivals {
				seq, chunk := max(n, -n), n > 0
				submitted, err := r.submit(seq, chunk)
				if err != nil {
					t.Fatal(err)
				}
				if earlier, ok := ids[seq]; ok && earlier != submitted.RequestID {
					t.Errorf("a repetition of number %d got %s, want %s", seq, submitted.RequestID, earlier)
				}
				ids[seq] = submitted.RequestID
				if !chunk { // a client waits for the result before it sends another operation
					r.await(submitted, nil)
				}
			}
			late := 0
			for _, id := range ids {
				if failure := r.failure(tinker.FutureResponse{RequestID: id}, nil); failure.Error != "" {
					late++
				}
			}
			if diff := cmp.Diff(tc.want, r.executed); diff != "" {
				t.Errorf("executed (-want +got):\n%s", diff)
			}
			if late != tc.late {
				t.Errorf("%d operations failed, want %d", late, tc.late)
			}
			if got := r.Stats().Operations[OpForward]; got != int64(len(tc.want)) {
				t.Errorf("counted %d operations, want %d", got, len(tc.want))
			}
		})
	}
}

func TestTrainerRefusesNumbers(t *testing.T) {
	r := newRecorder(t)
	for _, seq := range []int64{0, -1} {
		if _, err := r.trainer.submit(submission{op: OpForward, seq: seq}); category(err) != "user" {
			t.Errorf("number %d: %v, want a user error", seq, err)
		}
	}
	if _, err := r.submit(1, true); err != nil {
		t.Fatal(err)
	}
	if _, err := r.trainer.submit(submission{op: OpForward, seq: 1,
		digest: digestOf("another")}); category(err) != "user" {
		t.Errorf("another operation with number 1: %v, want a user error", err)
	}
}

func TestTrainerSkipsGap(t *testing.T) {
	r := newRecorder(t)
	r.trainer.models.options.GapPatience = 10 * time.Millisecond
	submitted, err := r.submit(3, true)
	r.await(submitted, err)
	if diff := cmp.Diff([]int64{3}, r.executed); diff != "" {
		t.Errorf("executed (-want +got):\n%s", diff)
	}
}

func TestTrainerFaults(t *testing.T) {
	cases := map[string]struct {
		rule     fault.Rule
		want     tinker.FailedResult
		executed []int64
	}{
		"a failure instead of the work": {
			fault.Rule{Do: fault.Fail, Category: "user", Message: "bad"},
			tinker.FailedResult{Error: "bad", Category: tinker.CategoryUser}, []int64{2},
		},
		"a failure after the work": {
			fault.Rule{Do: fault.Fail, Stage: fault.Reply, Message: "bad"},
			tinker.FailedResult{Error: "bad", Category: tinker.CategoryServer}, []int64{1, 2},
		},
		"a short pause": {fault.Rule{Do: fault.Pause, Seconds: 0.001}, tinker.FailedResult{}, []int64{1, 2}},
		"a delayed result": {fault.Rule{Do: fault.Pause, Stage: fault.Reply, Seconds: 0.001}, tinker.FailedResult{},
			[]int64{1, 2}},
		"another number": {fault.Rule{Do: fault.Fail, Seq: new(int64(9))}, tinker.FailedResult{}, []int64{1, 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.rule.Op = OpForward
			r := newRecorder(t, tc.rule)
			first, err := r.submit(1, false)
			if diff := cmp.Diff(tc.want, r.failure(first, err)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			second, err := r.submit(2, false)
			if failure := r.failure(second, err); failure.Error != "" {
				t.Errorf("the next operation failed: %+v", failure)
			}
			if diff := cmp.Diff(tc.executed, r.executed); diff != "" {
				t.Errorf("executed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHeldOperationReportsQueueState(t *testing.T) {
	r := newRecorder(t, fault.Rule{ID: "h", Op: OpForward, Do: fault.Hold, QueueState: "paused_capacity",
		Message: "no GPU"})
	submitted, err := r.submit(1, false)
	if err != nil {
		t.Fatal(err)
	}
	var status future.QueueStatus
	for deadline := time.Now().Add(time.Minute); status.State != "paused_capacity" && time.Now().Before(deadline); {
		if _, status, _, err = r.Await(t.Context(), submitted.RequestID, time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(future.QueueStatus{State: "paused_capacity", Reason: "no GPU"}, status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if err := r.faults.Release("h"); err != nil {
		t.Fatal(err)
	}
	r.await(submitted, nil)
}

func TestLostFuture(t *testing.T) {
	r := newRecorder(t, fault.Rule{Op: OpForward, Do: fault.LoseFuture})
	lost, err := r.submit(1, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := r.Await(t.Context(), lost.RequestID, time.Minute); !errors.Is(err, future.ErrLost) {
		t.Errorf("Await = %v, want ErrLost", err)
	}
	next, err := r.submit(2, false)
	r.await(next, err)
	if diff := cmp.Diff([]int64{1, 2}, r.executed); diff != "" {
		t.Errorf("executed (-want +got):\n%s", diff)
	}
}

// TestTrainerForgetsOldOperations checks that a model that is trained for weeks remembers only the operations whose
// results still exist, and that none of the others is carried out again.
func TestTrainerForgetsOldOperations(t *testing.T) {
	r := newRecorder(t)
	const operations = 500
	for seq := int64(1); seq <= operations; seq++ {
		r.await(r.submit(seq, seq%2 == 0))
		r.clock.advance(time.Minute)
		if err := r.Sessions.keepAlive(r.trainer.run.Session); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(r.trainer.accepted); n > 100 {
		t.Errorf("%d of %d operations are remembered", n, operations)
	}
	for _, seq := range []int64{1, 2, operations / 2} {
		submitted, err := r.submit(seq, seq%2 == 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.shared.futures.Lookup(submitted.RequestID); !errors.Is(err, future.ErrLost) {
			t.Errorf("the result of operation %d, which was repeated late: %v, want ErrLost", seq, err)
		}
	}
	r.await(r.submit(operations+1, false))
	if n := len(r.executed); n != operations+1 {
		t.Errorf("%d operations were carried out, want %d", n, operations+1)
	}
}
