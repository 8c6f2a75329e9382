// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

func TestChangesOfStateAreLogged(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	before, after := &v1alpha1.TrainingRun{}, &v1alpha1.TrainingRun{}
	after.UID = "0123"
	before.Status.State, after.Status.State = v1alpha1.StateTraining, v1alpha1.StateTraining
	logState(logger, before, after)
	after.Status.State, after.Status.Step = v1alpha1.StateQueued, new(int64(7))
	after.Status.Usage = &v1alpha1.Usage{EstimatedUSD: new(1.5)}
	after.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Accepted"},
		{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionFalse, Reason: "NotFailed"},
		{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: "Queued", Message: "no quota"},
	}
	logState(logger, before, after)
	want := []string{`"level"=0 "msg"="the state of a run has changed" "uid"="0123" "from"="Training" "to"="Queued" ` +
		`"step"=7 "condition"="Progressing" "reason"="Queued" "message"="no quota" "usd"=1.5`}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}
