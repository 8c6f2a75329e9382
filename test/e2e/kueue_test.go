// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && kueue

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/kueue"
)

// The queues of two teams. Blue has quota for one run and may borrow what red leaves; red takes its quota back.
const queues = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: plain}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: nowhere}
spec: {nodeLabels: {pool: nowhere}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 100
`

// plainJob is a Job that belongs to no run and names no queue.
const plainJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: plain, namespace: %s}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: plain, image: absent, imagePullPolicy: Never}]
`

// queue is a ClusterQueue with quota for milliCPUs, and a LocalQueue of its name.
func queue(name, flavor string, milliCPUs int, more string) string {
	return fmt.Sprintf(`
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  cohortName: all
  namespaceSelector: {}
  preemption: {reclaimWithinCohort: Any, withinClusterQueue: LowerPriority}
  %[4]s
  resourceGroups:
  - coveredResources: [cpu, memory, ephemeral-storage]
    flavors:
    - name: %[2]s
      resources:
      - {name: cpu, nominalQuota: %[3]dm}
      - {name: memory, nominalQuota: 100Gi}
      - {name: ephemeral-storage, nominalQuota: 100Gi}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %[1]s, namespace: %[5]s}
spec: {clusterQueue: %[1]s}
`, name, flavor, milliCPUs, more, namespace)
}

// apply applies manifests.
func apply(t *testing.T, manifests string) {
	t.Helper()
	// The folder of a test has commas in its name, at which kubectl splits.
	file, err := os.CreateTemp("", "queues-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(manifests)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	if output, err := kubectl("apply", "-f", file.Name()); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, output)
	}
}

// startQueued starts a run that a queue admits.
func startQueued(t *testing.T, name, queue string, change func(*v1alpha1.TrainingRunSpec)) *v1alpha1.TrainingRun {
	t.Helper()
	run := startLabelled(t, namespace, name, map[string]string{kueue.LabelQueue: queue}, change)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		output, _ := kubectl("describe", "workloads,clusterqueues")
		t.Logf("kubectl describe workloads,clusterqueues:\n%s", output)
	})
	return run
}

// inState waits until a run has a state.
func inState(t *testing.T, run *v1alpha1.TrainingRun, state string) {
	t.Helper()
	eventually(t, podStart, "run "+run.Name+" is "+state, func() bool {
		env.get(t, run.Namespace, run.Name, run)
		return run.Status.State == state
	})
}

func remove(t *testing.T, run *v1alpha1.TrainingRun) {
	t.Helper()
	if err := env.Delete(t.Context(), run); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	eventually(t, podStart, "the Workload of "+run.Name+" is gone", func() bool {
		output, err := kubectl("get", "workloads", "--ignore-not-found", kueue.Name(run))
		return err == nil && strings.TrimSpace(output) == ""
	})
}

// eviction waits until the Workload of a run says that it was evicted for a reason.
func eviction(t *testing.T, run *v1alpha1.TrainingRun, reason string) {
	t.Helper()
	eventually(t, podStart, "run "+run.Name+" is evicted: "+reason, func() bool {
		output, err := kubectl("get", "workload", kueue.Name(run), "-o",
			`jsonpath={.status.conditions[?(@.type=="Evicted")].reason}`)
		return err == nil && output == reason
	})
}

// lastMessage is the message of a run's Progressing.
func lastMessage(run *v1alpha1.TrainingRun) string {
	for _, c := range run.Status.Conditions {
		if c.Type == v1alpha1.ConditionProgressing {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// TestKueue runs under the real controller of Kueue. A run of these tests needs 200 milliCPUs: 100 for its learner and
// 50 for each of two workers.
func TestKueue(t *testing.T) {
	want := baseline(t)
	if err := hack(t.Context(), "kueue/kueue", "install"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command(t.Context(), filepath.Join(root, "hack", "kueue", "kueue"), "uninstall") })
	apply(t, queues+queue("blue", "plain", 200, "")+queue("red", "plain", 200, "")+
		queue("small", "plain", 120, "cohortName: alone")+queue("nowhere", "nowhere", 1000, "cohortName: nowhere"))

	t.Run("a run that borrows is preempted in mid-step, and ends with the same weights", func(t *testing.T) {
		first := startQueued(t, "blue-first", "blue", nil)
		second := startQueued(t, "blue-second", "blue", nil)
		inState(t, first, v1alpha1.StateTraining)
		inState(t, second, v1alpha1.StateTraining)
		reached(t, second, 2)
		owner := startQueued(t, "red-owner", "red", nil)
		victim := first
		eventually(t, podStart, "one of the runs of blue is evicted", func() bool {
			for _, run := range []*v1alpha1.TrainingRun{first, second} {
				env.get(t, run.Namespace, run.Name, run)
				if run.Status.State == v1alpha1.StateDraining || run.Status.State == v1alpha1.StateQueued {
					victim = run
					return true
				}
			}
			return false
		})
		t.Logf("%s was evicted: %s", victim.Name, lastMessage(victim))
		wantSameEnd(t, owner, want)
		wantSameEnd(t, first, want)
		wantSameEnd(t, second, want)
		if len(victim.Status.Attempts) == 0 {
			t.Fatalf("%s has no attempts", victim.Name)
		}
		for _, run := range []*v1alpha1.TrainingRun{owner, first, second} {
			remove(t, run)
		}
	})
	t.Run("quota for a learner and no worker starts nothing, and one worker does where that is "+
		"enough", func(t *testing.T) {
		run := startQueued(t, "too-large", "small", nil)
		inState(t, run, v1alpha1.StateQueued)
		eventually(t, podStart, "Kueue says why", func() bool {
			env.get(t, run.Namespace, run.Name, run)
			return strings.Contains(lastMessage(run), "quota")
		})
		t.Log(lastMessage(run))
		for _, role := range []string{v1alpha1.RoleLearner, v1alpha1.RoleRollout} {
			if pods := env.pods(t, run, role); len(pods) != 0 {
				t.Errorf("a run that waits has %d pods of role %s, want none", len(pods), role)
			}
		}
		remove(t, run)
		apply(t, queue("small", "plain", 150, "cohortName: alone"))
		partial := startQueued(t, "partial", "small", func(spec *v1alpha1.TrainingRunSpec) {
			spec.Rollouts.MinWorkers = new(int32(1))
		})
		inState(t, partial, v1alpha1.StateTraining)
		if pods := env.pods(t, partial, v1alpha1.RoleRollout); len(pods) != 1 {
			t.Errorf("the run has %d workers, want the one that was admitted", len(pods))
		}
		wantSameEnd(t, partial, want)
		remove(t, partial)
	})
	t.Run("the manager restarts while one run waits and another is evicted", func(t *testing.T) {
		held := startQueued(t, "held", "blue", nil)
		reached(t, held, 2)
		waiting := startQueued(t, "waiting", "nowhere-yet", nil)
		inState(t, waiting, v1alpha1.StateQueued)
		apply(t, queue("blue", "plain", 200, "stopPolicy: HoldAndDrain"))
		eviction(t, held, "ClusterQueueStopped")
		env.restart(t, "manager")
		inState(t, held, v1alpha1.StateQueued)
		t.Log(lastMessage(held))
		apply(t, queue("blue", "plain", 200, "stopPolicy: None")+queue("nowhere-yet", "plain", 200, ""))
		wantSameEnd(t, held, want)
		wantSameEnd(t, waiting, want)
		remove(t, held)
		remove(t, waiting)
	})
	t.Run("Hold lets a run go on, a deactivated run drains and waits, and a deleted Workload is made "+
		"anew", func(t *testing.T) {
		run := startQueued(t, "edited", "blue", nil)
		reached(t, run, 2)
		apply(t, queue("blue", "plain", 200, "stopPolicy: Hold"))
		reached(t, run, 3)
		apply(t, queue("blue", "plain", 200, "stopPolicy: None"))
		patch := func(active bool) {
			if output, err := kubectl("patch", "workload", kueue.Name(run), "--type=merge", "-p",
				fmt.Sprintf(`{"spec":{"active":%t}}`, active)); err != nil {
				t.Fatalf("kubectl patch: %v\n%s", err, output)
			}
		}
		patch(false)
		eviction(t, run, "Deactivated")
		inState(t, run, v1alpha1.StateQueued)
		patch(true)
		inState(t, run, v1alpha1.StateTraining)
		if output, err := kubectl("delete", "workload", kueue.Name(run)); err != nil {
			t.Fatalf("kubectl delete: %v\n%s", err, output)
		}
		wantSameEnd(t, run, want)
		if got := len(run.Status.Attempts); got < 1 {
			t.Errorf("the run has %d attempts", got)
		}
		remove(t, run)
	})
	t.Run("a flavor that no node has is told, and a run is deleted while it waits", func(t *testing.T) {
		run := startQueued(t, "astray", "nowhere", nil)
		eventually(t, podStart, "the run says that its pod cannot be scheduled", func() bool {
			env.get(t, run.Namespace, run.Name, run)
			for _, c := range run.Status.Conditions {
				if c.Type == v1alpha1.ConditionPodsReady && c.Status == metav1.ConditionFalse && c.Reason == "Unschedulable" {
					return true
				}
			}
			return false
		})
		remove(t, run)
		waiting := startQueued(t, "deleted", "no-such-queue", nil)
		inState(t, waiting, v1alpha1.StateQueued)
		remove(t, waiting)
	})
	t.Run("fair sharing of eight runs of two teams", func(t *testing.T) {
		var runs []*v1alpha1.TrainingRun
		for i := range 8 {
			team := []string{"blue", "red"}[i%2]
			runs = append(runs, startQueued(t, fmt.Sprintf("%s-%d", team, i), team, nil))
		}
		// Once one team has trained all its runs, the other has trained at least half: each team keeps its quota.
		ended := map[string]int{}
		eventually(t, trainingTime, "one team has trained all its runs", func() bool {
			ended = map[string]int{}
			for _, run := range runs {
				if env.get(t, run.Namespace, run.Name, run); run.Status.State == v1alpha1.StateSucceeded {
					team, _, _ := strings.Cut(run.Name, "-")
					ended[team]++
				}
			}
			return max(ended["blue"], ended["red"]) == 4
		})
		if t.Logf("runs that have ended: %v", ended); min(ended["blue"], ended["red"]) < 2 {
			t.Errorf("the runs that have ended are %v, want 2 of each team at least", ended)
		}
		for _, run := range runs {
			wantSameEnd(t, run, want)
		}
		for _, run := range runs {
			remove(t, run)
		}
	})
	t.Run("Jobs without a queue are suspended, and Jobs of runs are not", func(t *testing.T) {
		t.Setenv("MANAGE_ALL", "true")
		if err := hack(t.Context(), "kueue/kueue", "install"); err != nil {
			t.Fatal(err)
		}
		// The next test removes Kueue, which must first release all Workloads.
		defer func() {
			t.Setenv("MANAGE_ALL", "false")
			if err := hack(t.Context(), "kueue/kueue", "install"); err != nil {
				t.Error(err)
			}
		}()
		apply(t, fmt.Sprintf(plainJob, namespace))
		unqueued, queued := start(t, "unqueued", nil), startQueued(t, "queued", "blue", nil)
		defer remove(t, unqueued)
		defer remove(t, queued)
		eventually(t, podStart, "Kueue suspends a Job without a queue", func() bool {
			output, err := kubectl("get", "job", "plain", "-o", "jsonpath={.spec.suspend}")
			return err == nil && output == "true"
		})
		wantSameEnd(t, queued, want)
		wantSameEnd(t, unqueued, want)
		if output, err := kubectl("get", "workloads", "--ignore-not-found", kueue.Name(unqueued)); err != nil || output != "" {
			t.Errorf("the run without a queue has a Workload: %v\n%s", err, output)
		}
		if output, err := kubectl("delete", "job", "plain"); err != nil {
			t.Errorf("kubectl delete job: %v\n%s", err, output)
		}
	})
	t.Run("the example of docs/queues.md completes", func(t *testing.T) {
		folder := filepath.Join("config", "samples", "kueue")
		t.Cleanup(func() {
			_, _ = kubectlAnywhere("delete", "namespace", "blue", "red", "--timeout=2m")
			_, _ = kubectlAnywhere("delete", "clusterqueues", "blue", "red", "--timeout=2m")
		})
		for _, arguments := range [][]string{
			{"delete", "clusterqueues", "blue", "red", "--timeout=2m"}, // those of the other tests, in another cohort
			{"apply", "-f", filepath.Join(folder, "queues.yaml")},
			{"-n", "blue", "create", "secret", "generic", "tinker", "--from-literal=TINKER_API_KEY=tml-any"},
			{"apply", "-f", filepath.Join(folder, "run.yaml")},
		} {
			if output, err := kubectlAnywhere(arguments...); err != nil {
				t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, output)
			}
		}
		var run v1alpha1.TrainingRun
		eventually(t, trainingTime, "the run of the example has ended", func() bool {
			env.get(t, "blue", "arithmetic", &run)
			return run.Status.State == "Succeeded" || run.Status.State == "Failed"
		})
		if run.Status.State != "Succeeded" || run.Status.Queue == nil || run.Status.Queue.Workload == "" {
			t.Fatalf("the run is %s with the queue %+v, want Succeeded and a Workload", run.Status.State, run.Status.Queue)
		}
	})
	t.Run("Kueue is removed while a run waits", func(t *testing.T) {
		began := time.Now()
		run := startQueued(t, "orphan", "no-such-queue", nil)
		inState(t, run, v1alpha1.StateQueued)
		if err := hack(t.Context(), "kueue/kueue", "uninstall"); err != nil {
			t.Fatal(err)
		}
		wantSameEnd(t, run, want)
		t.Logf("the run completed %s after its creation", time.Since(began).Round(time.Second))
	})
}
