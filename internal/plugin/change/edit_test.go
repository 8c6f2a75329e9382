// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// TestResumeOfARunThatReachedItsBudget checks that resuming such a run fails with the repair, instead of answering that
// the run is not suspended: its state is Suspended.
func TestResumeOfARunThatReachedItsBudget(t *testing.T) {
	run := &v1alpha1.TrainingRun{}
	run.Name = "sums"
	run.Status.State = v1alpha1.StateSuspended
	run.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSuspended, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonBudgetReached, Message: "The run has used 1,000 tokens. Raise the limit."}}
	if said, err := resumeRun(run); err == nil || !strings.Contains(err.Error(), "Raise the limit") {
		t.Errorf("resumeRun() = %q, %v, want an error that says to raise the limit", said, err)
	}
	run.Status.Conditions = nil
	if said, err := resumeRun(run); err != nil || said != "is not suspended" {
		t.Errorf("resumeRun() = %q, %v of a run that trains", said, err)
	}
	run.Spec.Suspend = new(true)
	if said, err := resumeRun(run); err != nil || *run.Spec.Suspend || said != "continues from its last saved state" {
		t.Errorf("resumeRun() = %q, %v of a suspended run", said, err)
	}
}

// TestRetryOfASuspendedRun checks that the answer to a retry promises no attempt that only a resume begins.
func TestRetryOfASuspendedRun(t *testing.T) {
	run := &v1alpha1.TrainingRun{}
	run.Status.State = v1alpha1.StateFailed
	if said, err := retryRun(run); err != nil || *run.Spec.RetryGeneration != 1 || strings.Contains(said, "resume") {
		t.Errorf("retryRun() = %q, %v", said, err)
	}
	run.Spec.Suspend = new(true)
	if said, err := retryRun(run); err != nil || *run.Spec.RetryGeneration != 2 || !strings.Contains(said, "resume") {
		t.Errorf("retryRun() = %q, %v of a suspended run, want that it names resume", said, err)
	}
}
