// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// nodeLoss is how long a cluster may take to replace the pods of a lost node: seconds on one that these tests
// started, minutes with Kubernetes' own defaults.
const nodeLoss = 8 * time.Minute

// TestResumeAfterNodeLoss kills the kubelet of the learner's node, whose containers continue to run. It checks that the
// next attempt starts on the other node, and that the old learner ends.
func TestResumeAfterNodeLoss(t *testing.T) {
	want := baseline(t)
	run := start(t, "node-loss", nil)
	reached(t, run, 3)
	old := learner(t, run)
	pids := processes(t, old)
	startKubeletAtEnd(t, old.Spec.NodeName)
	kubelet(t, "kill", old.Spec.NodeName)
	eventually(t, nodeLoss, "another learner runs on the other node", func() bool {
		for _, pod := range env.pods(t, run, v1alpha1.RoleLearner) {
			if pod.UID != old.UID && pod.Spec.NodeName != old.Spec.NodeName && pod.Status.Phase == corev1.PodRunning {
				return true
			}
		}
		return false
	})
	wantSameEnd(t, run, want)
	wantEnded(t, pids)
}

// TestSupersededLearnerIsFenced stops the learner with SIGSTOP, lets a second attempt begin, and continues the first
// learner. It checks that this learner commits nothing and exits.
func TestSupersededLearnerIsFenced(t *testing.T) {
	want := baseline(t)
	run := start(t, "two-learners", nil)
	reached(t, run, 3)
	old := learner(t, run)
	// Without its kubelet the pod can be deleted while its process continues to run.
	startKubeletAtEnd(t, old.Spec.NodeName)
	pids := processes(t, old)
	kubelet(t, "kill", old.Spec.NodeName)
	signalProcesses(t, "STOP", pids)
	if err := env.Delete(t.Context(), &old, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	eventually(t, nodeLoss, "a second attempt has claimed the run", func() bool {
		claims, err := filepath.Glob(filepath.Join(folder(t, run), "attempts", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(claims) >= 2
	})
	signalProcesses(t, "CONT", pids)
	got := wantSameEnd(t, run, want)
	wantEnded(t, pids)
	for _, checkpoint := range got.status.Checkpoints {
		if checkpoint.Attempt != nil && *checkpoint.Attempt == 1 && checkpoint.Step > 5 {
			t.Errorf("attempt 1 committed step %d after it was fenced", checkpoint.Step)
		}
	}
}

func signalProcesses(t *testing.T, signal string, pids []string) {
	t.Helper()
	if output, err := exec.Command("kill", append([]string{"-" + signal}, pids...)...).CombinedOutput(); err != nil {
		t.Fatalf("sending %s to %v: %v: %s", signal, pids, err, output)
	}
}

func kubelet(t *testing.T, verb, node string) {
	t.Helper()
	if err := hack(t.Context(), "cluster/cluster", verb+"-kubelet", node); err != nil {
		t.Fatal(err)
	}
}

func startKubeletAtEnd(t *testing.T, node string) {
	t.Cleanup(func() {
		c := exec.Command(filepath.Join(root, "hack", "cluster", "cluster"), "start-kubelet", node)
		if output, err := c.CombinedOutput(); err != nil {
			t.Errorf("starting the kubelet of %s again: %v\n%s", node, err, output)
		}
	})
}

// processes returns the pids of a pod's container on this machine.
func processes(t *testing.T, pod corev1.Pod) []string {
	t.Helper()
	output, err := exec.Command(filepath.Join(root, "hack", "cluster", "cluster"), "pids",
		pod.Namespace+"/"+pod.Name, pod.Spec.Containers[0].Name).Output()
	if err != nil || len(strings.Fields(string(output))) == 0 {
		t.Fatalf("listing the processes of %s: %q, %v", pod.Name, output, err)
	}
	return strings.Fields(string(output))
}

// wantEnded waits until processes have ended by themselves.
func wantEnded(t *testing.T, pids []string) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, time.Minute, "the fenced learner, process "+pid+", has exited", func() bool {
			_, err := os.Stat("/proc/" + pid)
			return errors.Is(err, fs.ErrNotExist)
		})
	}
}
