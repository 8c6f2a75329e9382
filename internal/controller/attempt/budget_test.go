// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"cmp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time {
	at := metav1.NewTime(now.Add(-d))
	return &at
}

// endedAttempt returns an attempt that ended a while ago. It began at step from, and ended at step to.
func endedAttempt(number int32, cause contract.Cause, from, to int64, since time.Duration) v1alpha1.Attempt {
	return v1alpha1.Attempt{
		Number: number, Cause: string(cause), StartTime: ago(since + time.Minute), CompletionTime: ago(since),
		FromStep: new(from), ToStep: new(to),
	}
}

func TestFinish(t *testing.T) {
	crash := func(number int32, step int64) v1alpha1.Attempt {
		return endedAttempt(number, contract.CauseCrashed, step, step, 0)
	}
	lost := func(number int32, step int64) v1alpha1.Attempt {
		return endedAttempt(number, contract.CauseNodeLost, step, step, 0)
	}
	cases := map[string]struct {
		attempts []v1alpha1.Attempt
		failures int32
		end      Ending
		want     string // condition and reason; empty: the run continues
	}{
		"completed": {[]v1alpha1.Attempt{endedAttempt(1, contract.CauseCompleted, 0, 60, 0)}, 0,
			Ending{Cause: contract.CauseCompleted}, "Complete Completed"},
		"refused for a reason that is known": {[]v1alpha1.Attempt{crash(1, 0)}, 0,
			Ending{Cause: contract.CauseConfigRejected, Reason: "ModelUnknown"}, "Failed ModelUnknown"},
		"refused for a reason that is not": {[]v1alpha1.Attempt{crash(1, 0)}, 0,
			Ending{Cause: contract.CauseConfigRejected, Reason: "Odd"}, "Failed UnknownProblem"},
		"refused data": {[]v1alpha1.Attempt{crash(1, 0)}, 0,
			Ending{Cause: contract.CauseDataRejected}, "Failed DataRejected"},
		"a first crash": {[]v1alpha1.Attempt{crash(1, 5)}, 1, Ending{Cause: contract.CauseCrashed},
			""},
		"two crashes at a step": {[]v1alpha1.Attempt{crash(2, 5), crash(1, 5)}, 2,
			Ending{Cause: contract.CauseCrashed}, ""},
		"three crashes at a step": {[]v1alpha1.Attempt{crash(3, 5), crash(2, 5), crash(1, 5)}, 3,
			Ending{Cause: contract.CauseCrashed}, ""},
		"the budget is used up at one step": {[]v1alpha1.Attempt{crash(6, 5), crash(5, 5), crash(4, 5)}, 6,
			Ending{Cause: contract.CauseCrashed}, "Failed NoProgress"},
		"three crashes, a node lost between": {[]v1alpha1.Attempt{crash(4, 5), lost(3, 5), crash(2, 5), crash(1, 5)}, 6,
			Ending{Cause: contract.CauseCrashed}, "Failed NoProgress"},
		"three crashes at different steps": {[]v1alpha1.Attempt{crash(3, 6), crash(2, 5), crash(1, 5)}, 1,
			Ending{Cause: contract.CauseCrashed}, ""},
		"three nodes lost at a step": {[]v1alpha1.Attempt{lost(3, 5), lost(2, 5), lost(1, 5)}, 0,
			Ending{Cause: contract.CauseNodeLost}, ""},
		"the budget is used up": {[]v1alpha1.Attempt{crash(3, 7), crash(2, 6), crash(1, 5)}, 6,
			Ending{Cause: contract.CauseOOMKilled}, "Failed RestartsExhausted"},
		"the budget is just not used up": {[]v1alpha1.Attempt{crash(3, 7), crash(2, 6), crash(1, 5)}, 5,
			Ending{Cause: contract.CauseUnknown}, ""},
		"a lost node with the budget at its end": {[]v1alpha1.Attempt{lost(3, 7)}, 5, Ending{Cause: contract.CauseNodeLost},
			""},
		"endpoint outages without end": {[]v1alpha1.Attempt{endedAttempt(9, contract.CauseUpstream, 0, 0, 0)}, 5,
			Ending{Cause: contract.CauseUpstream}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if f := Finish(v1alpha1.FailurePolicy{MaxRestarts: new(int32(5))}, tc.attempts, tc.failures, tc.end); f != nil {
				got = f.Condition + " " + cmp.Or(known(f.Code), f.Reason())
				if f.Message == "" {
					t.Error("the end has no message")
				}
			}
			if got != tc.want {
				t.Errorf("finish = %q, want %q", got, tc.want)
			}
		})
	}
}

// known returns a code if the table has it, and an empty string otherwise.
func known(code problem.Code) string {
	if problem.IsKnown(code) {
		return string(code)
	}
	return ""
}

// TestFailuresBeforeTheFirstHeartbeat checks that failures before the first heartbeat, which are all at step 0, do not
// end a run whose budget allows more failures.
func TestFailuresBeforeTheFirstHeartbeat(t *testing.T) {
	list := []v1alpha1.Attempt{{Number: 3, Cause: "Crashed"}, {Number: 2, Cause: "Crashed"}, {Number: 1, Cause: "Crashed"}}
	end := Ending{Cause: contract.CauseCrashed, Message: "dial tcp: no such host"}
	if f := Finish(v1alpha1.FailurePolicy{MaxRestarts: new(int32(20))}, list, 3, end); f != nil {
		t.Errorf("three crashes with maxRestarts 20 end the run: %+v", f)
	}
	if f := Finish(v1alpha1.FailurePolicy{MaxRestarts: new(int32(20))}, list, 21, end); f == nil ||
		f.Code != problem.NoProgress {
		t.Errorf("finish = %+v once the budget is used up, want NoProgress", f)
	}
}

func refusedKey(number int32) v1alpha1.Attempt {
	return v1alpha1.Attempt{Number: number, Cause: string(contract.CauseUpstream), Reason: "KeyRefused",
		StartTime: ago(time.Minute), CompletionTime: ago(0)}
}

func TestMaxRestartsOfZero(t *testing.T) {
	f := Finish(v1alpha1.FailurePolicy{MaxRestarts: new(int32(0))},
		[]v1alpha1.Attempt{endedAttempt(1, contract.CauseCrashed, 0, 1, 0)}, 1, Ending{Cause: contract.CauseCrashed})
	if f == nil || f.Reason() != v1alpha1.ReasonRestartsExhausted {
		t.Errorf("finish = %+v, want RestartsExhausted at the first crash", f)
	}
}

func TestBackoff(t *testing.T) {
	barren := func(n int) []v1alpha1.Attempt {
		var list []v1alpha1.Attempt
		for i := n; i > 0; i-- {
			list = append(list, endedAttempt(int32(i), contract.CauseNodeLost, 5, 5, 0))
		}
		return list
	}
	cases := map[string]struct {
		attempts []v1alpha1.Attempt
		want     time.Duration
	}{
		"after progress there is no delay": {[]v1alpha1.Attempt{endedAttempt(1, contract.CauseCrashed, 0, 5, 0)}, 0},
		"nor after the first without":      {barren(1), 0},
		"the second waits":                 {barren(2), 10 * time.Second},
		"each waits twice as long":         {barren(4), 40 * time.Second},
		"but five minutes at most":         {barren(10), 5 * time.Minute},
		"progress begins anew":             {append(barren(1), endedAttempt(9, contract.CauseCrashed, 0, 5, 0)), 0},
		"the endpoint is given a while in any case": {[]v1alpha1.Attempt{endedAttempt(1, contract.CauseUpstream, 0, 5, 0)},
			10 * time.Second},
		"a refused key is asked about at one pace": {[]v1alpha1.Attempt{refusedKey(2)}, RepairInterval},
		"an init container that failed": {[]v1alpha1.Attempt{{Number: 1, Cause: "StartTimeout",
			Reason: "InitContainerFailed"}}, RepairInterval},
		"a missing image was waited for by its pod": {[]v1alpha1.Attempt{{Number: 2, Cause: "StartTimeout",
			Reason: "ImagePullFailed"}, {Number: 1, Cause: "StartTimeout", Reason: "ImagePullFailed"}}, 0},
		"an attempt that never reported is not progress": {[]v1alpha1.Attempt{
			endedAttempt(6, contract.CauseDisrupted, 87, 87, 0), {Number: 5, Cause: "Disrupted", ToStep: new(int64(87))},
			endedAttempt(4, contract.CauseDisrupted, 87, 87, 0), {Number: 3, Cause: "Disrupted", ToStep: new(int64(87))},
		}, 40 * time.Second},
		"an attempt that never said where it was counts": {[]v1alpha1.Attempt{{Number: 2, Cause: "Disrupted"},
			{Number: 1, Cause: "Disrupted"}}, 10 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Backoff(tc.attempts); got != tc.want {
				t.Errorf("backoff = %v, want %v", got, tc.want)
			}
		})
	}
}
