// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
)

// maxTrackingProblem bounds what is shown of a problem, in bytes.
const maxTrackingProblem = 512

// Tracking returns whether services receive the run's steps, by the problems that a learner reports.
func Tracking(problems []tracking.Problem) Condition {
	const kind = v1alpha1.ConditionTrackingReady
	if len(problems) == 0 {
		return True(kind, v1alpha1.ReasonRecording, "The services of spec.tracking receive the run's steps.")
	}
	texts := make([]string, len(problems))
	shown := problems[0]
	for i, p := range problems {
		texts[i] = p.Service + ": " + Trim(p.Message, maxTrackingProblem)
		if shown.Reason == v1alpha1.ReasonTrackingConnecting {
			shown = p
		}
	}
	message := strings.Join(texts, ". ") + "."
	if shown.Reason == v1alpha1.ReasonTrackingConnecting {
		return Unknown(kind, shown.Reason, message)
	}
	return False(kind, shown.Reason, message)
}
