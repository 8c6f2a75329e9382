// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && skyrl

package e2e

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/status"
	"github.com/tinker-operator/tinker-operator/test/skyrl"
)

const (
	// skyRLAddress is on this machine, in the network of the local cluster.
	skyRLAddress = "10.88.0.254:18301"
	skyRLURL     = "http://" + skyRLAddress
)

// TestSkyRL starts SkyRL and trains at it. Nearly all of the time passes while the server compiles each new shape of
// its inputs.
func TestSkyRL(t *testing.T) {
	server := skyrl.Start(t, root, skyrl.Pinned, skyRLAddress)
	prepare(t, namespace)
	t.Run("a killed learner", func(t *testing.T) { testSkyRLKilledLearner(t, "killed-learner", server, skyrl.Pinned) })
	t.Run("a rising reward", testSkyRLRisingReward)
}

// TestSkyRLNext starts the next version of SkyRL and trains at it.
func TestSkyRLNext(t *testing.T) {
	server := skyrl.Start(t, root, skyrl.Next, skyRLAddress)
	prepare(t, namespace)
	testSkyRLKilledLearner(t, "killed-learner-next", server, skyrl.Next)
}

// testSkyRLKilledLearner trains six steps, kills the learner after the third, and counts the steps in the final weights
// by the operations that the server executed.
func testSkyRLKilledLearner(t *testing.T, name string, server skyrl.Server, of skyrl.Release) {
	const steps = 6
	run := startAtSkyRL(t, name, steps, 3)
	eventually(t, 40*time.Minute, "the fourth step has begun", func() bool { return newestRow(t, run) >= 3 })
	env.signal(t, learner(t, run), "KILL")
	got := finishAtSkyRL(t, run)
	wantEachStepOnce(t, run)
	want := &v1alpha1.Capabilities{BaseURL: skyRLURL, Model: skyrl.Model, Supported: of.Supported, Ignored: of.Ignored,
		Unsupported: of.Unsupported}
	byWhom := cmpopts.IgnoreFields(v1alpha1.Capabilities{}, "CheckedAt", "ClientVersion", "Connection", "SharedFrom")
	if diff := cmp.Diff(want, got.Capabilities, byWhom); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
	if got.Restarts == nil || *got.Restarts != 1 {
		t.Errorf("the run was restarted %v times, want once", got.Restarts)
	}
	if got.Metric("test/pass@1") == nil || got.Evaluation == nil || got.Evaluation.Step != steps {
		t.Errorf("the newest evaluation is %+v with %+v, want one of step %d", got.Evaluation, got.Metrics, steps)
	}
	server.WantSteps(t, root, status.Latest(&got).State, steps)
}

// testSkyRLRisingReward trains until most replies have the digit, and compares the evaluations of the first and the
// last weights.
func testSkyRLRisingReward(t *testing.T) {
	const steps, least = 24, 0.6
	run := startAtSkyRL(t, "digit", steps, steps)
	got := finishAtSkyRL(t, run)
	before, after := evaluation(t, run, 0), evaluation(t, run, steps)
	const rounding = 1e-4
	shown := slices.IndexFunc(got.Metrics, func(m v1alpha1.MetricValue) bool { return m.Name == contract.MetricPassAt1 })
	if after < before+least || shown < 0 || math.Abs(got.Metrics[shown].Value-after) > rounding {
		t.Fatalf("pass@1 was %v before training and %v after it, the status has %+v; want a rise of %v at least", before,
			after, got.Metrics, least)
	}
	t.Logf("pass@1 rose from %.3f to %.3f", before, after)
}

// evaluation returns pass@1 of the weights after a step, from evaluations.jsonl.
func evaluation(t *testing.T, run *v1alpha1.TrainingRun, step int64) float64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder(t, run), "evaluations.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var row struct {
			Step    int64
			Metrics map[string]float64
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if value, ok := row.Metrics["test/pass@1"]; ok && row.Step == step {
			return value
		}
	}
	t.Fatalf("run %s has no evaluation of step %d:\n%s", run.Name, step, data)
	return 0
}

// startAtSkyRL creates a run whose reward is 1 for each reply with the digit 7, which the random model seldom writes.
func startAtSkyRL(t *testing.T, name string, steps, evaluateEvery int64) *v1alpha1.TrainingRun {
	t.Helper()
	rewards := &v1alpha1.RewardEnvironment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.RewardEnvironmentSpec{
			Dataset: &environment.Dataset{Arithmetic: &environment.ArithmeticData{MaxOperand: 9}},
			Reward:  &environment.Reward{RewardRule: environment.RewardRule{Expression: `reply.text.contains("7") ? 1.0 : 0.0`}},
		},
	}
	if err := env.Create(t.Context(), rewards); err != nil {
		t.Fatal(err)
	}
	return start(t, name, func(spec *v1alpha1.TrainingRunSpec) {
		spec.Tinker.BaseURL = skyRLURL
		spec.Environments[0].Name = name
		spec.Environments[0].Sampling.MaxTokens = 16
		spec.Algorithm.Optimizer.LearningRate = 3e-3
		spec.Evaluation = &v1alpha1.Evaluation{
			EverySteps: new(evaluateEvery),
			Environments: []v1alpha1.EvaluationEnvironment{{
				EnvironmentUse: v1alpha1.EnvironmentUse{Name: name},
				InheritFrom:    name,
				Splits:         []v1alpha1.EvaluationSplit{{Name: "test", Take: new(int64(16))}},
			}},
		}
		spec.Algorithm.Steps = steps
	})
}

// finishAtSkyRL waits until a run has succeeded, and returns its status.
func finishAtSkyRL(t *testing.T, run *v1alpha1.TrainingRun) v1alpha1.TrainingRunStatus {
	t.Helper()
	var current v1alpha1.TrainingRun
	eventually(t, 40*time.Minute, "run "+run.Name+" has ended", func() bool {
		env.get(t, run.Namespace, run.Name, &current)
		return current.Status.State == "Succeeded" || current.Status.State == "Failed"
	})
	if current.Status.State != "Succeeded" || status.Latest(&current.Status) == nil ||
		status.Latest(&current.Status).Step != run.Spec.Algorithm.Steps {
		t.Fatalf("run %s ended as %s with the checkpoint %+v: %+v", run.Name, current.Status.State,
			status.Latest(&current.Status), current.Status.Conditions)
	}
	return current.Status
}
