// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"cmp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	apitracking "github.com/tinker-operator/tinker-operator/api/v1alpha1/tracking"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// TestRecording checks the condition of a run that is tracked, and that no other condition follows from a service.
func TestRecording(t *testing.T) {
	refused := tracking.Problem{Service: "wandb", Reason: "TrackerKeyRefused",
		Message: "host answers 401: put a valid key"}
	connecting := tracking.Problem{Service: "mlflow", Reason: "Connecting", Message: "not yet"}
	cases := map[string]struct {
		problems []tracking.Problem
		blocked  bool
		code     problem.Code
		silent   bool
		former   string
		want     string
	}{
		"without problems": {want: "True Recording"},
		"a refused key": {problems: []tracking.Problem{refused},
			want: "False TrackerRefused wandb: host answers 401: put a valid key. The run continues meanwhile."},
		"before the first contact": {problems: []tracking.Problem{connecting}, want: "Unknown NotStarted"},
		"one of two is refused": {problems: []tracking.Problem{connecting, refused},
			want: "False TrackerRefused mlflow: not yet. wandb: "},
		"the store takes nothing": {problems: []tracking.Problem{connecting}, blocked: true,
			want: "False ArtifactsBlocked The learner cannot write its files (no space left)."},
		"the store's authority is not trusted": {blocked: true, code: problem.ArtifactsAuthorityUnknown,
			want: "False ArtifactsBlocked The learner does not trust the authority of the certificate of the store of its " +
				"files (no space left). Mount the certificate"},
		"no learner has answered":   {silent: true, want: "Unknown NotStarted"},
		"no learner answers longer": {silent: true, former: "TrackerKeyRefused", want: "False TrackerRefused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reply := contract.HeartbeatReply{
				Attempt: 1, Tracking: tc.problems,
				Progress: contract.Progress{Phase: contract.PhaseTraining, Step: 5, Steps: 60, Lineage: "abc", WorkersSeen: 2},
			}
			run, seen := newRun(attempts(inProgress(1))), observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()},
				replying(reply))
			if tc.blocked {
				reply.Problems = []problem.Problem{{Code: cmp.Or(tc.code, problem.ArtifactsBlocked),
					Evidence: "no space left"}}
				seen = observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()}, replying(reply))
			}
			run.Spec.Tracking = &apitracking.Tracking{WandB: &apitracking.WandB{Project: "p"}}
			if tc.former != "" {
				former := observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()}, replying(contract.HeartbeatReply{
					Attempt: 1, Tracking: []tracking.Problem{{Service: "wandb", Reason: problem.Code(tc.former), Message: "former"}},
					Progress: reply.Progress,
				}))
				run.Status = computeStatus(run, former, planned(run, former), now)
			}
			if tc.silent {
				seen = observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()})
			}
			got := computeStatus(run, seen, planned(run, seen), now)
			c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionRecording)
			if c == nil {
				t.Fatal("the condition is missing")
			}
			if text := string(c.Status) + " " + c.Reason + " " + c.Message; !strings.HasPrefix(text, tc.want) {
				t.Errorf("the condition is %q, want %q", text, tc.want)
			}
			run.Spec.Tracking = nil
			untracked := computeStatus(run, seen, planned(run, seen), now)
			if err := check(untracked, closedReasons(t), run.Generation); err != nil {
				t.Errorf("without tracking: %v", err)
			}
			if !tc.silent && !tc.blocked && !meta.IsStatusConditionTrue(got.Conditions, v1alpha1.ConditionReady) {
				t.Error("the run is not ready")
			}
		})
	}
}
