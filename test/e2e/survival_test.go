// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// undisturbed is the result of a run without faults, which every other run of the spec must end with.
var undisturbed = sync.OnceValue(func() *result { return &result{} })

// baseline returns the digest of the final weights of a run without faults, which it runs once.
func baseline(t testing.TB) string {
	t.Helper()
	r := undisturbed()
	if r.digest == "" {
		run := start(t, "undisturbed", nil)
		*r = finish(t, run)
		wantEachStepOnce(t, run)
		if r.status.Restarts != nil && *r.status.Restarts != 0 {
			t.Errorf("the undisturbed run was restarted %d times", *r.status.Restarts)
		}
	}
	return r.digest
}

// wantSameEnd waits for the run and compares its weights and rows with the undisturbed run's.
func wantSameEnd(t testing.TB, run *v1alpha1.TrainingRun, want string) result {
	t.Helper()
	got := finish(t, run)
	if got.digest != want {
		t.Errorf("run %s ended with the weights %s, the undisturbed one with %s", run.Name, got.digest, want)
	}
	wantEachStepOnce(t, run)
	return got
}

func learner(t testing.TB, run *v1alpha1.TrainingRun) corev1.Pod {
	t.Helper()
	var found corev1.Pod
	eventually(t, podStart, "run "+run.Name+" has a learner", func() bool {
		pods := env.pods(t, run, v1alpha1.RoleLearner)
		if len(pods) == 0 || pods[0].Status.Phase != corev1.PodRunning {
			return false
		}
		found = pods[0]
		return true
	})
	return found
}

func workers(t testing.TB, run *v1alpha1.TrainingRun) []corev1.Pod {
	t.Helper()
	var found []corev1.Pod
	eventually(t, podStart, "run "+run.Name+" has workers", func() bool {
		found = env.pods(t, run, v1alpha1.RoleRollout)
		return len(found) > 0 && found[0].Status.Phase == corev1.PodRunning
	})
	return found
}

func TestRunSurvivesKills(t *testing.T) {
	want := baseline(t)
	cases := map[string]struct {
		name    string
		disturb func(*testing.T, *v1alpha1.TrainingRun)
	}{
		"the learner's process is killed": {"kill-learner", func(t *testing.T, run *v1alpha1.TrainingRun) {
			reached(t, run, 4)
			env.signal(t, learner(t, run), "KILL")
		}},
		"the learner's pod is deleted": {"delete-learner", func(t *testing.T, run *v1alpha1.TrainingRun) {
			reached(t, run, 5)
			env.deletePods(t, []corev1.Pod{learner(t, run)})
		}},
		"a worker with leases is killed": {"kill-worker", func(t *testing.T, run *v1alpha1.TrainingRun) {
			reached(t, run, 3)
			env.signal(t, workers(t, run)[0], "KILL")
		}},
		"all workers are deleted at once": {"delete-workers", func(t *testing.T, run *v1alpha1.TrainingRun) {
			reached(t, run, 6)
			env.deletePods(t, workers(t, run))
		}},
		"tinkersim restarts": {"restart-sim", func(t *testing.T, run *v1alpha1.TrainingRun) {
			reached(t, run, 4)
			env.restart(t, "tinkersim")
		}},
		"the manager restarts": {"restart-manager", func(t *testing.T, run *v1alpha1.TrainingRun) {
			reached(t, run, 4)
			env.restart(t, "manager")
		}},
		"learner, workers, simulator and manager are killed in one run": {"kill-all",
			func(t *testing.T, run *v1alpha1.TrainingRun) {
				reached(t, run, 2)
				env.signal(t, learner(t, run), "KILL")
				reached(t, run, 5)
				env.deletePods(t, workers(t, run))
				reached(t, run, 7)
				env.restart(t, "tinkersim")
				env.restart(t, "manager")
				reached(t, run, 10)
				env.deletePods(t, []corev1.Pod{learner(t, run)})
			}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := start(t, tc.name, nil)
			tc.disturb(t, run)
			wantSameEnd(t, run, want)
		})
	}
}

func TestNumberOfWorkersDoesNotChangeWeights(t *testing.T) {
	want := baseline(t)
	for name, count := range map[string]int32{"one": 1, "four": 4} {
		t.Run(name+" workers give the same weights", func(t *testing.T) {
			run := start(t, "workers-"+name, func(spec *v1alpha1.TrainingRunSpec) { spec.Rollouts.Workers = &count })
			wantSameEnd(t, run, want)
		})
	}
}

func TestSuspendAndResume(t *testing.T) {
	want := baseline(t)
	run := start(t, "suspended", nil)
	reached(t, run, 5)
	setSuspend(t, run, true)
	eventually(t, 2*time.Minute, "the run is suspended and its pods have ended", func() bool {
		var current v1alpha1.TrainingRun
		env.get(t, run.Namespace, run.Name, &current)
		return current.Status.State == "Suspended" &&
			len(env.pods(t, run, v1alpha1.RoleLearner)) == 0 && len(env.pods(t, run, v1alpha1.RoleRollout)) == 0
	})
	if all := tinker(t, "metrics", run.Name, "--all"); !strings.Contains(all, "env/all/ac_tokens_per_turn") {
		t.Errorf("kubectl tinker metrics --all shows no metric that the history lacks:\n%s", all)
	}
	conversations := tinker(t, "transcripts", run.Name, "--step", "2")
	for _, want := range []string{"step 2, ", "environment arithmetic", "user: What is", "assistant: ", "reward"} {
		if !strings.Contains(conversations, want) {
			t.Errorf("the transcript of the suspended run lacks %q:\n%s", want, conversations)
		}
	}
	copied := filepath.Join(t.TempDir(), "copied")
	if listed := tinker(t, "artifacts", "ls", run.Name, "-o", "plain"); !strings.Contains(listed, "\nmetrics.jsonl\t") ||
		!strings.Contains(listed, "\nepisodes/\t") {
		t.Errorf("kubectl tinker artifacts ls prints\n%s", listed)
	}
	tinker(t, "artifacts", "cp", run.Name, copied)
	steps, err := os.ReadFile(filepath.Join(copied, "metrics.jsonl"))
	episodes, globErr := filepath.Glob(filepath.Join(copied, "episodes", "*.jsonl.gz"))
	if err != nil || globErr != nil || strings.Count(string(steps), "\n") < 5 || len(episodes) < 5 {
		t.Errorf("%d bytes of metrics.jsonl (%v) and %d files of episodes are copied, want 5 steps or more", len(steps), err,
			len(episodes))
	}
	if left := env.pods(t, run, v1alpha1.RoleReader); len(left) > 0 {
		t.Errorf("%d pods that read artifacts are left", len(left))
	}
	setSuspend(t, run, false)
	got := wantSameEnd(t, run, want)
	if status.Latest(&got.status).Attempt == nil || *status.Latest(&got.status).Attempt < 2 {
		t.Errorf("the run did not resume in a second attempt: its last checkpoint is %+v", status.Latest(&got.status))
	}
}

func setSuspend(t *testing.T, run *v1alpha1.TrainingRun, suspend bool) {
	t.Helper()
	var current v1alpha1.TrainingRun
	env.get(t, run.Namespace, run.Name, &current)
	patch := client.MergeFrom(current.DeepCopy())
	current.Spec.Suspend = &suspend
	if err := env.Patch(t.Context(), &current, patch); err != nil {
		t.Fatal(err)
	}
}
