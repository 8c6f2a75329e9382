// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && servers

package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

// faultyServer is the program of an environment server, for the image of the sample sums. In its first start it exits
// in call EXIT_IN, and it exits at once in each start from the second to the one numbered LAST_EXIT. With ABSENT it
// exits at once in each start beside a worker, and serves the probe alone. Each call from SLOW_FROM on takes a minute.
// From call FULL_FROM on it has no capacity for further sessions, for a minute.
const faultyServer = `
import asyncio, os, pathlib, socket, sys, time
import uvicorn
from fastapi.responses import JSONResponse
from ors import Environment, Server, TextBlock, ToolOutput, tool
from pydantic import BaseModel

exit_in, last_exit, slow_from, full_from = (
    int(os.environ.get(name, "0")) for name in ("EXIT_IN", "LAST_EXIT", "SLOW_FROM", "FULL_FROM"))
starts = pathlib.Path("/tmp/starts")
start = len(starts.read_text()) + 1 if starts.exists() else 1
starts.write_text("x" * start)
if 1 < start <= last_exit or "ABSENT" in os.environ and "-rollout-" in socket.gethostname():
    sys.exit("the server crashes")
calls = 0
full_until = None

class Answer(BaseModel):
    answer: str

class Sums(Environment):
    @classmethod
    def list_splits(cls):
        return ["train", "test"]

    @classmethod
    def list_tasks(cls, split):
        return [{"a": a, "b": b} for a in range(10) for b in range(10)]

    def get_prompt(self):
        return [TextBlock(text=f"What is {self.task_spec['a']} + {self.task_spec['b']}?")]

    @tool
    async def submit(self, given: Answer) -> ToolOutput:
        """Give the answer."""
        global calls
        calls += 1
        print(f"call {calls} begins", flush=True)
        if start == 1 and calls == exit_in:
            os._exit(1)
        if slow_from and calls >= slow_from:
            await asyncio.sleep(60)
        right = given.answer.strip() == str(self.task_spec["a"] + self.task_spec["b"])
        return ToolOutput(blocks=[TextBlock(text="Thank you.")], reward=float(right), finished=True)

served = Server([Sums]).app

async def app(scope, receive, send):
    global full_until
    if full_from and calls >= full_from and scope.get("path") == "/create_session":
        full_until = full_until or time.monotonic() + 60
        if time.monotonic() < full_until:
            return await JSONResponse({"detail": "maximum capacity"}, status_code=429)(scope, receive, send)
    await served(scope, receive, send)

uvicorn.run(app, host="0.0.0.0", port=int(os.environ["PORT"]))
`

// startServed creates a run whose only environment is a server with the faults that the variables ask for.
func startServed(t *testing.T, name string, shared bool, variables map[string]string,
	change func(*v1alpha1.TrainingRunSpec)) *v1alpha1.TrainingRun {
	t.Helper()
	server := &v1alpha1.ORSServer{ServerImage: environment.ServerImage{Image: "environment-sums:dev", Shared: shared,
		Command: []string{"/usr/bin/python3", "-c", faultyServer}}}
	for key, value := range variables {
		server.Env = append(server.Env, corev1.EnvVar{Name: key, Value: value})
	}
	served := &v1alpha1.RewardEnvironment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.RewardEnvironmentSpec{
			ORS: &v1alpha1.ORSEnvironment{Server: server, ORS: environment.ORS{
				AnswerTool: &environment.AnswerTool{Name: "submit", Argument: "answer"}}},
		},
	}
	if err := env.Create(t.Context(), served); err != nil {
		t.Fatal(err)
	}
	return start(t, name, func(spec *v1alpha1.TrainingRunSpec) {
		spec.Environments[0].Name = name
		spec.Environments[0].GroupSize = 4
		spec.Algorithm.TasksPerStep = 2
		spec.Algorithm.Steps = 6
		spec.Rollouts.Workers = new(int32(1))
		if change != nil {
			change(spec)
		}
	})
}

// TestEnvironmentServerFaults crashes environment servers again and again beside a worker, and moves a shared server to
// another pod. It checks that the faults are counted, that the workers live on, and that the runs complete.
func TestEnvironmentServerFaults(t *testing.T) {
	prepare(t, namespace)
	if buildEnvironment(t, "sums"); t.Failed() {
		return
	}
	t.Run("a sidecar that crashes for a while", func(t *testing.T) {
		t.Parallel()
		run := startServed(t, "crashes-end", false, map[string]string{"EXIT_IN": "20", "LAST_EXIT": "3"}, nil)
		finishWithWorker(t, run, 3)
		wantFaults(t, run)
	})
	t.Run("a sidecar that crashes until the end", func(t *testing.T) {
		t.Parallel()
		run := startServed(t, "crashes-stay", false, map[string]string{"EXIT_IN": "10", "LAST_EXIT": "1000000"},
			skipBesideArithmetic)
		wantUnavailable(t, run)
		finishWithWorker(t, run, 1)
		wantFaults(t, run)
	})
	t.Run("a sidecar that never answers", func(t *testing.T) {
		t.Parallel()
		run := startServed(t, "absent", false, map[string]string{"ABSENT": "yes"}, skipBesideArithmetic)
		wantUnavailable(t, run)
		finishWithWorker(t, run, 1)
	})
	t.Run("a sidecar without capacity for a minute", func(t *testing.T) {
		t.Parallel()
		run := startServed(t, "full", false, map[string]string{"FULL_FROM": "12"}, nil)
		eventually(t, trainingTime, "the server refuses sessions", func() bool {
			pods := env.pods(t, run, v1alpha1.RoleRollout)
			if len(pods) != 1 {
				return false
			}
			log, err := kubectl("logs", pods[0].Name, "-c", "environment-full")
			return err == nil && strings.Contains(log, "429")
		})
		refused := time.Now()
		finishWithWorker(t, run, 0)
		if took := time.Since(refused); took < 50*time.Second {
			t.Errorf("the run ended %s after the server had begun to refuse sessions for a minute", took)
		}
		if got := faults(t, run); got != 0 {
			t.Errorf("the metrics count %v episodes with faults, though they only waited for capacity", got)
		}
	})
	t.Run("a shared server that is moved to another pod", func(t *testing.T) {
		t.Parallel()
		run := startServed(t, "moved", true, map[string]string{"SLOW_FROM": "30"}, nil)
		var server corev1.Pod
		eventually(t, trainingTime, "a call of the server is in progress", func() bool {
			pods := env.pods(t, run, v1alpha1.RoleServer)
			if len(pods) != 1 {
				return false
			}
			server = pods[0]
			log, err := kubectl("logs", server.Name)
			return err == nil && strings.Contains(log, "call 30 begins")
		})
		env.deletePods(t, []corev1.Pod{server})
		finishWithWorker(t, run, 0)
		wantFaults(t, run)
		eventually(t, podStart, "the shared server is removed", func() bool {
			var deployments appsv1.DeploymentList
			if err := env.List(t.Context(), &deployments, client.InNamespace(namespace),
				client.MatchingLabels{v1alpha1.LabelRunUID: string(run.UID)}); err != nil {
				t.Fatal(err)
			}
			return len(deployments.Items) == 0
		})
	})
}

// skipBesideArithmetic lets a run also train on the built-in environment arithmetic, and only on this environment while
// its server is unavailable.
func skipBesideArithmetic(spec *v1alpha1.TrainingRunSpec) {
	spec.Environments[0].OnUnavailable, spec.Environments[0].Weight = v1alpha1.UnavailableSkip, new(1.0)
	other := spec.Environments[0]
	other.Name, other.OnUnavailable = "arithmetic", ""
	spec.Environments = append(spec.Environments, other)
}

// wantUnavailable waits until a run says that the environment of its own name is unavailable.
func wantUnavailable(t *testing.T, run *v1alpha1.TrainingRun) {
	t.Helper()
	eventually(t, trainingTime, "the run says that its environment is unavailable", func() bool {
		env.get(t, namespace, run.Name, run)
		c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionAccepted)
		return c != nil && c.Reason == v1alpha1.ReasonEnvironmentNotUsable && strings.Contains(c.Message, run.Name)
	})
}

// finishWithWorker waits until the run is complete. It checks that one worker played everything, that its container
// never ended, and that its server was restarted at least the given number of times.
func finishWithWorker(t *testing.T, run *v1alpha1.TrainingRun, restarts int32) {
	t.Helper()
	workers, seen := map[types.UID]bool{}, int32(0)
	eventually(t, 10*time.Minute, "run "+run.Name+" has succeeded", func() bool {
		for _, pod := range env.pods(t, run, v1alpha1.RoleRollout) {
			workers[pod.UID] = true
			for _, c := range pod.Status.ContainerStatuses {
				if c.RestartCount != 0 {
					t.Fatalf("the container %s of worker %s was restarted", c.Name, pod.Name)
				}
			}
			for _, c := range pod.Status.InitContainerStatuses {
				seen = max(seen, c.RestartCount)
			}
		}
		env.get(t, namespace, run.Name, run)
		return run.Status.State == "Succeeded" || run.Status.State == "Failed"
	})
	finish(t, run)
	if len(workers) != 1 || seen < restarts {
		t.Errorf("the run had %d workers, whose server was restarted %d times; want one worker, and %d restarts at least",
			len(workers), seen, restarts)
	}
	wantEachStepOnce(t, run)
}

// wantFaults checks that the metrics count faults.
func wantFaults(t *testing.T, run *v1alpha1.TrainingRun) {
	t.Helper()
	if faults(t, run) == 0 {
		t.Errorf("the metrics of run %s count neither a retry nor a member that was left out", run.Name)
	}
}

// faults returns how many tries and members of a run ended in faults, as its metrics count them.
func faults(t *testing.T, run *v1alpha1.TrainingRun) float64 {
	t.Helper()
	file, err := os.Open(filepath.Join(folder(t, run), "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	counted := 0.0
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		var row map[string]any
		if err := json.Unmarshal(scanner.Bytes(), &row); err != nil {
			t.Fatalf("metrics.jsonl of %s: %v", run.Name, err)
		}
		retries, _ := row["batch/retries"].(float64)
		out, _ := row["batch/members_left_out"].(float64)
		counted += retries + out
	}
	return counted
}
