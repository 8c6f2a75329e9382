// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
)

// look is what keeps pods from starting, and when it was found.
type look struct {
	at      time.Time
	learner podstate.Obstacle
	workers podstate.Obstacle
	// learnerJob and workersJob are the Jobs that were looked at: what was found does not apply to those that replace them.
	learnerJob, workersJob types.UID
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
