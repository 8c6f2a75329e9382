// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// maxTrackingProblem bounds the text of a problem in the status, in bytes.
const maxTrackingProblem = 512

// Tracking returns the condition Recording: whether services receive the run's steps, by the problems that a learner
// reports.
func Tracking(problems []tracking.Problem) Condition {
	const kind = v1alpha1.ConditionRecording
	if len(problems) == 0 {
		return True(kind, v1alpha1.ReasonRecording, "The stores of the run take what it writes.")
	}
	texts := make([]string, len(problems))
	shown := problems[0]
	for i, p := range problems {
		text := p.Message
		if !problem.IsKnown(p.Reason) {
			text = strings.TrimSuffix(problem.Problem{Code: p.Reason, Evidence: text}.Message(), ".")
		}
		texts[i] = p.Service + ": " + Trim(text, maxTrackingProblem)
		if shown.Reason == problem.Connecting {
			shown = p
		}
	}
	message := strings.Join(texts, ". ") + "." + problem.Proceeds
	c := False(kind, problem.Lookup(shown.Reason).Reason, message)
	c.Code = shown.Reason
	if shown.Reason == problem.Connecting {
		c.Status = metav1.ConditionUnknown
	}
	return c
}
