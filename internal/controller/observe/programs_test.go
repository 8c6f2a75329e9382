// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// TestProgramsWithoutAReadyPod checks that the problem names the Deployment until one of its pods shows a cause. The
// problems of an earlier Deployment's pods do not count.
func TestProgramsWithoutAReadyPod(t *testing.T) {
	deployment := &appsv1.Deployment{}
	deployment.Name, deployment.UID = "run-program-1", "second"
	notReady := problem.Problem{Code: problem.ProgramsNotReady, Evidence: `Deployment "run-program-1"`}
	pull := problem.Problem{Code: problem.ImagePullFailed, Evidence: "image \"a\""}
	for name, test := range map[string]struct {
		found look
		want  problem.Problem
	}{
		"nothing is known of its pods":      {look{}, notReady},
		"a pod cannot pull its image":       {look{program: pull, programOf: "second"}, pull},
		"a pod of an earlier one could not": {look{program: pull, programOf: "first"}, notReady},
		"a pod has a problem that passes by itself": {look{program: problem.Problem{Code: problem.ProgramsNotReady},
			programOf: "second"}, notReady},
	} {
		t.Run(name, func(t *testing.T) {
			var seen State
			test.found.report(&seen, jobs{program: deployment})
			if diff := cmp.Diff(test.want, seen.ProgramsObstacle); diff != "" {
				t.Errorf("the problem of the program (-want +got):\n%s", diff)
			}
		})
	}
	var seen State
	(look{program: pull, programOf: "second"}).report(&seen, jobs{})
	if seen.ProgramsObstacle.Code != "" {
		t.Errorf("a program with a ready pod has the problem %+v", seen.ProgramsObstacle)
	}
}
