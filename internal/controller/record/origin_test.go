// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

func TestOriginEvents(t *testing.T) {
	continued := v1alpha1.TrainingRunStatus{ResumedFrom: &v1alpha1.ResumedFrom{UID: "u", Step: 7,
		UncountedSteps: new(int64(3))}}
	same := v1alpha1.TrainingRunStatus{EarlierRun: &v1alpha1.EarlierRun{UID: "u", Step: 7, SameSettings: new(true)}}
	other := v1alpha1.TrainingRunStatus{EarlierRun: &v1alpha1.EarlierRun{UID: "u", Step: 7}}
	for name, tc := range map[string]struct {
		before, after v1alpha1.TrainingRunStatus
		kind, words   string
	}{
		"a run is continued": {v1alpha1.TrainingRunStatus{}, continued, corev1.EventTypeNormal,
			"run u at step 7. status.usage lacks 3"},
		"it was told": {continued, continued, "", ""},
		"an earlier run with the same settings": {v1alpha1.TrainingRunStatus{}, same, corev1.EventTypeWarning,
			"set spec.resumeFrom.uid"},
		"an earlier run with the other settings": {v1alpha1.TrainingRunStatus{}, other, corev1.EventTypeNormal,
			"with other settings"},
		"no earlier run": {},
	} {
		events := originEvents(&tc.before, &tc.after)
		if tc.kind == "" {
			if len(events) > 0 {
				t.Errorf("%s: events %v, want none", name, events)
			}
			continue
		}
		if len(events) != 1 || events[0].Type != tc.kind || !strings.Contains(events[0].Note, tc.words) {
			t.Errorf("%s: events %v, want a %s event with %q", name, events, tc.kind, tc.words)
		}
	}
}
