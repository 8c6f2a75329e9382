// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// look has the problems that keep pods from starting, and the time at which they were found.
type look struct {
	at      time.Time
	learner problem.Problem
	workers problem.Problem
	// carried says that workers was found by an earlier look.
	carried bool
	// replaceAt is the time at which the workers' Job is to be replaced.
	replaceAt time.Time
	// learnerJob and workersJob are the Jobs that were looked at: the findings do not apply to Jobs that replace them.
	learnerJob, workersJob types.UID
	// program is the problem that keeps the pods of a program from being ready, and programOf is their Deployment.
	program   problem.Problem
	programOf types.UID
}

// lastsOver reports whether the problem of former workers is still to be reported: their Job was replaced, and no
// worker of the next Job is ready. The problem is reported only for a while, in case the run has no workers for another
// reason.
func (l look) lastsOver(seen State, now time.Time) bool {
	const limit = time.Minute
	awaits := l.workers.Code == problem.WorkersKeyRefused || l.workers.Code == problem.ImagePullFailed
	return awaits && seen.WorkersReady() == 0 && now.Sub(l.at) < limit
}

// report adds the problems of the Jobs that still lack pods.
func (l look) report(seen *State, lacking jobs) {
	if lacking.learner != nil && l.learnerJob == lacking.learner.UID {
		seen.LearnerObstacle = l.learner
	}
	if d := lacking.program; d != nil {
		seen.ProgramsObstacle = problem.Problem{Code: problem.ProgramsNotReady,
			Evidence: fmt.Sprintf("Deployment %q", d.Name)}
		if l.programOf == d.UID && l.program.NeedsAction() {
			seen.ProgramsObstacle = l.program
		}
	}
	if lacking.workers == nil || l.workersJob != lacking.workers.UID {
		return
	}
	seen.WorkersObstacle, seen.WorkersReplaceAt = l.workers, l.replaceAt
	if l.carried && seen.WorkersReady() > 0 {
		seen.WorkersObstacle = problem.Problem{}
	}
}
