// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// TestConditionQuotesTheFailedRequest checks that Progressing says which request the endpoint failed to answer.
func TestConditionQuotesTheFailedRequest(t *testing.T) {
	const evidence = "POST /api/v1/forward_backward was answered with 500: Internal Server Error"
	for _, code := range problem.Codes() {
		row := problem.Lookup(code)
		if !row.Endpoint || row.Fact == "" {
			continue
		}
		reply := contract.HeartbeatReply{
			Attempt:  1,
			Progress: contract.Progress{Phase: contract.PhaseTraining, Step: 5, Steps: 60, Lineage: "abc", WorkersSeen: 2},
		}
		for _, reported := range []string{evidence, strings.Repeat(evidence, 100)} {
			reply.Problems = []problem.Problem{{Code: code, Evidence: reported}}
			run, seen := newRun(attempts(inProgress(1))), observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()},
				replying(reply))
			got := computeStatus(run, seen, planned(run, seen), now)
			message := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionProgressing).Message
			if !strings.HasPrefix(message, row.Fact+" "+evidence) || !strings.HasSuffix(message, ".") ||
				len(message) > len(row.Fact)+endpoint.MaxEvidence+len(row.Repair)+200 {
				t.Errorf("%s: message is %q", code, message)
			}
		}
	}
}

// TestAcceptedNamesWhatIsNotCertain checks that Accepted names the features that the capability check found missing or
// could not decide.
func TestAcceptedNamesWhatIsNotCertain(t *testing.T) {
	const sum, seed = contract.CapabilityGradientSum, contract.CapabilitySeed
	cases := map[string]struct {
		found     *contract.Capabilities
		evaluates bool
		says      []string
	}{
		"not checked yet":       {},
		"everything supported":  {found: &contract.Capabilities{Supported: []string{sum, seed}}},
		"averages, compensated": {found: &contract.Capabilities{Supported: []string{seed}, Ignored: []string{sum}}},
		"gradients not measured": {found: &contract.Capabilities{Supported: []string{seed}},
			says: []string{"whether the endpoint sums gradients"}},
		"a run that only evaluates": {found: &contract.Capabilities{Supported: []string{seed}}, evaluates: true},
		"long seeds are refused": {found: &contract.Capabilities{Supported: []string{sum}, Unsupported: []string{seed}},
			says: []string{"seeds of 31 bits"}},
		"neither, and seeds ignored": {found: &contract.Capabilities{Supported: []string{"ttl"}, Ignored: []string{seed}},
			says: []string{"whether the endpoint sums gradients", "ignores the seeds"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := newRun(attempts(inProgress(1)))
			if tc.evaluates {
				run.Spec.Mode = v1alpha1.ModeEvaluate
			}
			reply := contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining,
				Capabilities: tc.found}}
			seen := observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()}, replying(reply))
			got := computeStatus(run, seen, planned(run, seen), now)
			message := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionAccepted).Message
			for _, text := range []string{"whether the endpoint sums gradients", "ignores the seeds", "seeds of 31 bits"} {
				if strings.Contains(message, text) != slices.Contains(tc.says, text) {
					t.Errorf("Accepted says %q, want %q in it", message, tc.says)
				}
			}
		})
	}
}
