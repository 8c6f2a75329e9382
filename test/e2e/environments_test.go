// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// TestSolverJudgeSample trains both roles of the workflow solverJudge.
func TestSolverJudgeSample(t *testing.T) {
	prepare(t, namespace)
	run := applySample(t, "config/samples/solver-judge.yaml", "solver-judge")
	// The model begins with a pass@1 of about 0.2, and its solvers and its judge earn 0.6 in an episode.
	if run.Status.Metric("test/pass@1") == nil || *run.Status.Metric("test/pass@1") < 0.38 {
		t.Errorf("held-out pass@1, which is judge_acc, is %v after training, want 0.38 at least",
			run.Status.Metric("test/pass@1"))
	}
	if reward := run.Status.Environments[0].Reward; reward == nil || *reward < 1.05 {
		t.Errorf("an episode of solvers and judge earns %v at the last step, want 1.05 at least", reward)
	}
}

// TestRubrics trains on the criteria of rows, which a judge on Tinker applies. The reward is the pass rate.
func TestRubrics(t *testing.T) {
	prepare(t, namespace)
	run := applySample(t, "config/samples/rlvr.yaml", "rlvr")
	if run.Status.Metric("test/pass@1") == nil || *run.Status.Metric("test/pass@1") < 0.6 {
		t.Errorf("held-out replies that meet all criteria are %v after training, want 0.6 at least",
			run.Status.Metric("test/pass@1"))
	}
	for _, environment := range run.Status.Environments {
		// The model begins with about 0.64.
		if environment.Reward == nil || *environment.Reward < 0.79 || environment.FaultRatio == nil ||
			*environment.FaultRatio != 0 {
			t.Errorf("environment %s ended with %+v, want a pass rate of 0.79 at least and no faults", environment.Name,
				environment)
		}
	}
	// 60 steps of 32 groups of 8 replies, and evaluations of 128; a request of the judge has about 720 tokens.
	usage := run.Status.Usage
	if usage == nil || usage.JudgePromptTokens == nil || *usage.JudgePromptTokens < 60*32*8*700 ||
		usage.JudgeSampledTokens == nil {
		t.Errorf("the usage is %+v, which lacks the judge's tokens", usage)
	}
}

// TestEnvironmentServers trains on two environments that are servers of images, which run beside the workers.
func TestEnvironmentServers(t *testing.T) {
	prepare(t, namespace)
	var builds sync.WaitGroup
	for _, name := range []string{"sums", "reasoning-gym"} {
		builds.Go(func() { buildEnvironment(t, name) })
	}
	if builds.Wait(); t.Failed() {
		return
	}
	run := applySample(t, "config/samples/openreward.yaml", "openreward")
	for _, environment := range run.Status.Environments {
		switch {
		case environment.Reward == nil || environment.FaultRatio == nil || *environment.FaultRatio != 0:
			t.Errorf("environment %s ended with %+v, want a reward and no faults", environment.Name, environment)
		case environment.Name == "basic-arithmetic" && *environment.Reward < 0.5:
			// The model begins with about 0.36.
			t.Errorf("the reward of the environment that can be learnt is %v at the last step", *environment.Reward)
		}
	}
	if len(run.Status.Environments) != 2 {
		t.Errorf("the status has %d environments, want two", len(run.Status.Environments))
	}
}

// buildEnvironment builds the image of an environment and loads it into the cluster.
func buildEnvironment(t *testing.T, name string) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), name+".tar")
	for _, command := range [][]string{
		{"hack/environment-image.sh", name, "environment-" + name + ":dev", archive},
		{"hack/cluster/cluster", "load", archive},
	} {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir = "../.."
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", command, err, output)
			return
		}
	}
	if packed, err := os.Stat(archive); err != nil || packed.Size() > 300<<20 {
		t.Errorf("the image of %s has %v bytes (%v), want 300 MiB at most", name, packed.Size(), err)
	}
}

// applySample applies a sample and returns its run once that has succeeded.
func applySample(t *testing.T, file, name string) *v1alpha1.TrainingRun {
	t.Helper()
	if output, err := kubectl("apply", "-f", file); err != nil {
		t.Fatalf("applying %s: %v\n%s", file, err, output)
	}
	var run v1alpha1.TrainingRun
	env.get(t, namespace, name, &run)
	t.Cleanup(func() {
		if t.Failed() {
			describe(t, &run)
		}
	})
	eventually(t, trainingTime, name+" has succeeded", func() bool {
		env.get(t, namespace, name, &run)
		return run.Status.State == "Succeeded" || run.Status.State == "Failed"
	})
	if run.Status.State != "Succeeded" || run.Status.Metrics == nil {
		t.Fatalf("%s ended as %s with metrics %+v", name, run.Status.State, run.Status.Metrics)
	}
	return &run
}
