// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
)

// look is what keeps pods from starting, and when it was found.
type look struct {
	at      time.Time
	learner podstate.Obstacle
	workers podstate.Obstacle
	// carried says that workers is what an earlier look found.
	carried bool
	// replaceAt is when the workers' Job is to be replaced.
	replaceAt time.Time
	// learnerJob and workersJob are the Jobs that were looked at: what was found does not apply to those that replace them.
	learnerJob, workersJob types.UID
}

// lastsOver says that what kept workers from working is still to be reported: their Job was replaced, and no worker of the
// next is ready. It stands for a while only, in case the run has no workers for another reason.
func (l look) lastsOver(seen State, now time.Time) bool {
	const limit = time.Minute
	awaits := l.workers.Reason == v1alpha1.ReasonKeyRefused || l.workers.Reason == v1alpha1.ReasonImagePullFailed
	return awaits && seen.WorkersReady() == 0 && now.Sub(l.at) < limit
}

// report adds what was found of the Jobs that still lack pods.
func (l look) report(seen *State, lacking jobs) {
	if lacking.learner != nil && l.learnerJob == lacking.learner.UID {
		seen.LearnerObstacle = l.learner
	}
	if lacking.workers == nil || l.workersJob != lacking.workers.UID {
		return
	}
	seen.WorkersObstacle, seen.WorkersReplaceAt = l.workers, l.replaceAt
	if l.carried && seen.WorkersReady() > 0 {
		seen.WorkersObstacle = podstate.Obstacle{}
	}
}

// looks keeps the newest look at each run. If they are lost, each run is looked at once more.
type looks struct {
	mu   sync.Mutex
	runs map[types.NamespacedName]runLook
}

type runLook struct {
	uid types.UID
	look
}

// of returns the newest look at a run; the zero value if it was not looked at, or only an earlier run of its name was.
func (l *looks) of(run client.Object) look {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.runs[client.ObjectKeyFromObject(run)]
	if known.uid != run.GetUID() {
		return look{}
	}
	return known.look
}

func (l *looks) keep(run client.Object, found look) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[client.ObjectKeyFromObject(run)] = runLook{uid: run.GetUID(), look: found}
}

func (l *looks) forget(run types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs, run)
}
