// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// TestPodSetsOfPrograms counts the pods of a program, which Kueue admits with the pods of the run.
func TestPodSetsOfPrograms(t *testing.T) {
	run := newRun()
	pins := desired.Pins{"own": {Definition: contract.Definition{
		Reward: &environment.Reward{RewardRule: environment.RewardRule{Python: &environment.Python{
			Source: environment.Source{Code: "x"}, Processes: 1, Concurrency: 1}}},
		Execution: &contract.Execution{FunctionImage: environment.FunctionImage{Placement: environment.PlacementPods},
			Pods: []byte(`{"replicas": 4}`)},
	}}}
	sets, err := PodSets(run, "", pins.Servers(), desired.Settings{Image: "tinker-operator:test"})
	if err != nil {
		t.Fatal(err)
	}
	last := sets[len(sets)-1]
	if !strings.HasPrefix(last.Name, ProgramSet) || last.Count != 4 {
		t.Errorf("the last pod set is %s with %d pods, want 4 of a program", last.Name, last.Count)
	}
	deployments, err := desired.ProgramPods(run, pins.Servers(), "suffix", desired.Settings{Image: "tinker-operator:test"})
	if err != nil || len(deployments) != 1 || SetOf(deployments[0]) != last.Name {
		t.Errorf("the Deployments %v, %v are not of the pod set %s", deployments, err, last.Name)
	}
}
