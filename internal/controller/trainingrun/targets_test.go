// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
)

func TestTargets(t *testing.T) {
	run := newRun(attempts(inProgress(2)))
	seen := observing(2, observe.Learner{Job: newJob("two"), Pod: newPod()}, func(o *observe.State) {
		o.Learners[1] = observe.Learner{Pod: newPod(func(p *corev1.Pod) { p.UID, p.Status.PodIP = "old", "fd00::1" })}
		o.Learners[3] = observe.Learner{Pod: newPod(pending)}
	})
	got := targets(run, seen, contract.DesiredDrain)
	if len(got) != 2 || got[0].Address != "[fd00::1]:7444" || got[1].Address != "10.0.0.1:7444" {
		t.Fatalf("targets = %+v", got)
	}
	for _, target := range got {
		if target.Request != (contract.HeartbeatRequest{RunUID: "0123456789", Attempt: 2, Desired: contract.DesiredDrain}) {
			t.Errorf("request = %+v", target.Request)
		}
	}
}
