// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// reported are the codes that heartbeats report: codes of the endpoint, and of data, stores and services that a run
// reads and writes.
func reported() []problem.Code {
	return slices.DeleteFunc(problem.Codes(), func(code problem.Code) bool {
		row := problem.Lookup(code)
		return row.Retry == problem.Never || row.Fact == ""
	})
}

// TestWalkFromHeartbeat walks each code that a learner reports from the heartbeat to the conditions.
func TestWalkFromHeartbeat(t *testing.T) {
	if len(reported()) < 15 {
		t.Fatalf("%d codes are reported, want at least 15: %v", len(reported()), reported())
	}
	for _, code := range append(reported(), "OfAnotherBuild") {
		t.Run(string(code), func(t *testing.T) {
			sent, err := json.Marshal(contract.HeartbeatReply{Attempt: 1,
				Problems: []problem.Problem{{Code: code, Evidence: "the evidence"}},
				Progress: contract.Progress{Phase: contract.PhaseTraining, WorkersSeen: 2}})
			if err != nil {
				t.Fatal(err)
			}
			var reply contract.HeartbeatReply
			if err := json.Unmarshal(sent, &reply); err != nil {
				t.Fatal(err)
			}
			run := newRun(attempts(inProgress(1)), conditionIs(v1alpha1.ConditionProgressing, "False", time.Hour))
			seen := observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()}, replying(reply))
			got := computeStatus(run, seen, planned(run, seen), now)
			row := problem.Lookup(code)
			c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionProgressing)
			status := "False"
			switch {
			case !problem.IsKnown(code):
				status = "Unknown"
			case row.Continues:
				status = "True"
			}
			if string(c.Status) != status || c.Reason != row.Reason {
				t.Errorf("Progressing is %s %s, want %s %s", c.Status, c.Reason, status, row.Reason)
			}
			fact, _, _ := strings.Cut(row.Fact, "%s")
			if !strings.Contains(c.Message, fact) || !strings.Contains(c.Message, "the evidence") {
				t.Errorf("Progressing says %q, want %q with the evidence", c.Message, fact)
			}
			stalled := meta.IsStatusConditionTrue(got.Conditions, v1alpha1.ConditionStalled)
			if stalled != row.NeedsAction {
				t.Errorf("Stalled is %v after an hour, want %v", stalled, row.NeedsAction)
			}
		})
	}
}

// TestWalkFromVerdict walks each code with which a learner ends, from its termination message to the conditions: the
// run waits for a repair, or fails.
func TestWalkFromVerdict(t *testing.T) {
	for _, code := range append(problem.Codes(), "OfAnotherBuild") {
		row := problem.Lookup(code)
		cause, kind := contract.CauseConfigRejected, v1alpha1.ConditionFailed
		if row.Next == problem.AwaitRepair {
			cause, kind = contract.CauseUpstream, v1alpha1.ConditionReady
		} else if row.Conditions != "Failed" && row.Conditions != "Stalled, Failed" && problem.IsKnown(code) {
			continue // No verdict has it.
		}
		t.Run(string(code), func(t *testing.T) {
			run := newRun(attempts(inProgress(1)))
			seen := observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(exited(int32(cause.ExitCode()), "Error",
				verdictText(t, contract.Verdict{Cause: cause, Reason: code, Message: "the evidence", Attempt: 1})))})
			got := computeStatus(run, seen, planned(run, seen), now)
			c := meta.FindStatusCondition(got.Conditions, kind)
			if want := problem.Lookup(code).Reason; c.Reason != want {
				t.Errorf("%s has the reason %s, want %s", kind, c.Reason, want)
			}
			if code != problem.KeyRefused && !strings.Contains(c.Message, "the evidence") {
				t.Errorf("%s says %q, want the evidence", kind, c.Message)
			}
			if !problem.IsKnown(code) && !strings.Contains(c.Message, string(code)) {
				t.Errorf("%s says %q, want the unknown code %s", kind, c.Message, code)
			}
			if got.Attempts[0].Reason != string(code) {
				t.Errorf("the attempt has the reason %q, want %q", got.Attempts[0].Reason, code)
			}
		})
	}
}

// TestWalkFromEndpoint walks each answer of an endpoint that the client waits out to a code of the table.
func TestWalkFromEndpoint(t *testing.T) {
	for category, want := range map[tinker.Category]problem.Code{
		tinker.CategoryThrottled: problem.Throttled, tinker.CategoryPayment: problem.PaymentRequired,
		tinker.CategoryTooLarge: problem.RequestTooLarge, tinker.CategoryUnreachable: problem.EndpointUnreachable,
		tinker.CategoryPaused: problem.PausedRateLimit, tinker.CategoryServer: problem.EndpointFailing,
		tinker.CategoryUnknown: problem.EndpointFailing, "of_another_build": problem.EndpointFailing,
	} {
		problems := client.Problems{Lasts: time.Minute}
		problems.Observe(client.Event{Category: category}, now)
		if found, any := problems.Newest(now); !any || found.Code != want || !slices.Contains(reported(), want) {
			t.Errorf("%s is reported as %q (%v), want %s", category, found.Code, any, want)
		}
	}
}
