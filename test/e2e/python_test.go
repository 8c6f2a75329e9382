// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/test/wheel"
)

// pythonImage is the default image for Python, which the manager derives from the image of these tests.
var pythonImage = strings.Replace(image, ":", "-python:", 1)

// loadPython builds the image that the manager names for Python, and loads it into the cluster.
func loadPython(t testing.TB) {
	t.Helper()
	loadFolder(t, "python", pythonImage)
}

// loadFolder makes the image of a folder of config/samples/environments, and loads it into the cluster.
func loadFolder(t testing.TB, folder, image string) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), folder+".tar")
	if err := hack(t.Context(), "environment-image.sh", folder, image, archive); err != nil {
		t.Fatal(err)
	}
	if err := hack(t.Context(), "cluster/cluster", "load", archive); err != nil {
		t.Fatal(err)
	}
}

// TestRewardInPython trains on the sample whose reward is a function, in the image that the manager names.
func TestRewardInPython(t *testing.T) {
	prepare(t, namespace)
	loadPython(t)
	run := applySample(t, "config/samples/python-reward.yaml", "python-reward")
	if passed := slices.IndexFunc(run.Status.Metrics, func(m v1alpha1.MetricValue) bool {
		return m.Name == contract.MetricPassAt1
	}); passed < 0 || run.Status.Metrics[passed].Value < 0.6 {
		t.Errorf("the run ended with metrics %+v, want a held-out pass@1 of 0.6 at least", run.Status.Metrics)
	}
	if len(run.Status.Environments) != 1 || run.Status.Environments[0].FaultRatio == nil ||
		*run.Status.Environments[0].FaultRatio != 0 {
		t.Errorf("the environments ended with %+v, want no faults", run.Status.Environments)
	}
}

// indexManifests are a package index within the cluster, which has the files of the ConfigMap index: pods of the local
// cluster reach nothing outside.
const indexManifests = `
apiVersion: v1
kind: Pod
metadata: {name: index, labels: {app: index}}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: index
    image: IMAGE
    command: [python3, -m, http.server, "8000", --directory, /index]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    readinessProbe: {tcpSocket: {port: 8000}, periodSeconds: 1}
    volumeMounts: [{name: files, mountPath: /index}]
  volumes:
  - name: files
    configMap:
      name: index
      items:
      - {key: tool, path: simple/tool/index.html}
      - {key: base, path: simple/base/index.html}
      - {key: tool-1.0-py3-none-any.whl, path: tool-1.0-py3-none-any.whl}
      - {key: base-1.0-py3-none-any.whl, path: base-1.0-py3-none-any.whl}
---
apiVersion: v1
kind: Service
metadata: {name: index}
spec: {selector: {app: index}, ports: [{port: 8000}]}
`

// requiringManifests are a run whose reward imports a package that no image has.
const requiringManifests = `
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: RewardEnvironment
metadata: {name: requiring}
spec:
  dataset: {arithmetic: {maxOperand: 99}}
  execution:
    requirements: [tool==1.0]
    index: {url: "http://index.NAMESPACE.svc:8000/simple"}
  reward:
    python:
      code: |
        import base, tool

        def reward(row, reply):
            assert (tool.VALUE, base.VALUE) == ("of tool", "of base")
            return {"reward": float(len(reply.text) % 2), "packages": 2}
---
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: TrainingRun
metadata: {name: requiring}
spec:
  model: {name: tinkersim/byte-136k, loraRank: 8}
  tinker:
    baseURL: http://tinkersim.tinker-operator-system
    apiKeySecretKeyRef: {name: tinker, key: TINKER_API_KEY}
  environments: [{name: requiring, groupSize: 4, sampling: {maxTokens: 8}}]
  algorithm: {tasksPerStep: 2, steps: 2, optimizer: {learningRate: 1.0e-4}}
`

// TestRequirements trains with a reward that imports packages of an index, which the probe has pinned.
func TestRequirements(t *testing.T) {
	prepare(t, namespace)
	loadPython(t)
	link := func(name string) string {
		file := wheel.Name(name, "1.0")
		return fmt.Sprintf(`<!DOCTYPE html><a href="/%s">%s</a>`, file, file)
	}
	index := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "index"},
		Data:       map[string]string{"tool": link("tool"), "base": link("base")},
		BinaryData: map[string][]byte{
			wheel.Name("tool", "1.0"): wheel.Make(t, "tool", "1.0", "of tool", "base"),
			wheel.Name("base", "1.0"): wheel.Make(t, "base", "1.0", "of base"),
		},
	}
	if err := env.Create(t.Context(), index); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range map[string]string{
		"index.yaml":     strings.ReplaceAll(indexManifests, "IMAGE", pythonImage),
		"requiring.yaml": strings.ReplaceAll(requiringManifests, "NAMESPACE", namespace),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := kubectl("apply", "-f", filepath.Join(folder, "index.yaml")); err != nil {
		t.Fatalf("applying the index: %v\n%s", err, output)
	}
	if output, err := kubectl("wait", "--for=condition=Ready", "pod/index", "--timeout=2m"); err != nil {
		t.Fatalf("waiting for the index: %v\n%s", err, output)
	}
	run := applySample(t, filepath.Join(folder, "requiring.yaml"), "requiring")
	var environment v1alpha1.RewardEnvironment
	env.get(t, namespace, "requiring", &environment)
	pinned := environment.Status.Packages
	if len(pinned) != 2 || !strings.HasPrefix(pinned[0], "base==1.0 ") || !strings.HasPrefix(pinned[1], "tool==1.0 ") {
		t.Errorf("the probe pinned %q, want the wheels of base and tool", pinned)
	}
	if ratio := run.Status.Environments[0].FaultRatio; ratio == nil || *ratio != 0 {
		t.Errorf("the environments ended with %+v, want no faults", run.Status.Environments)
	}
}

// podsManifests are an environment whose reward runs in pods of its own, and a run that trains on it.
const podsManifests = `
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: RewardEnvironment
metadata: {name: in-pods}
spec:
  dataset: {arithmetic: {maxOperand: 99}}
  reward:
    python:
      code: |
        def reward(row, reply):
            return {"reward": float(reply.text.strip() == row["answer"]), "length": len(reply.text)}
  execution:
    placement: Pods
    pods: {replicas: 2}
---
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: TrainingRun
metadata: {name: in-pods}
spec:
  model: {name: tinkersim/byte-136k, loraRank: 8}
  tinker:
    baseURL: http://tinkersim.tinker-operator-system
    apiKeySecretKeyRef: {name: tinker, key: TINKER_API_KEY}
  environments:
  - {name: in-pods, groupSize: 4, sampling: {maxTokens: 16}}
  algorithm: {tasksPerStep: 8, steps: 12, optimizer: {learningRate: 3.0e-4}}
`

// agentPodsManifests are an environment whose agent runs in pods of its own, and a run that trains on it.
const agentPodsManifests = `
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: RewardEnvironment
metadata: {name: agent-in-pods}
spec:
  dataset: {arithmetic: {maxOperand: 99}}
  reward: {exactMatch: {}}
  interaction:
    agent:
      reward: {from: Output}
      command:
      - python3
      - -c
      - |
        import json, os, urllib.request
        def ask(messages):
            request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions",
                json.dumps({"model": "policy", "messages": messages}).encode(),
                {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
            with urllib.request.urlopen(request, timeout=600) as response:
                return json.load(response)["choices"][0]["message"]
        messages = json.load(open(os.environ["TASK_FILE"]))["messages"]
        messages.append(ask(messages))
        messages.append({"role": "user", "content": "Are you sure?"})
        print(ask(messages)["content"])
        if os.environ["OPENAI_BASE_URL"].split(":")[1] != "//127.0.0.1":
            raise SystemExit("the base URL is not the pod's own: " + os.environ["OPENAI_BASE_URL"])
  execution:
    placement: Pods
    pods: {replicas: 2}
---
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: TrainingRun
metadata: {name: agent-in-pods}
spec:
  model: {name: tinkersim/byte-136k, loraRank: 8}
  tinker:
    baseURL: http://tinkersim.tinker-operator-system
    apiKeySecretKeyRef: {name: tinker, key: TINKER_API_KEY}
  environments:
  - {name: agent-in-pods, groupSize: 4, sampling: {maxTokens: 16}, limits: {turns: 2}}
  algorithm: {tasksPerStep: 8, steps: 6, optimizer: {learningRate: 3.0e-4}}
`

// TestPodsPlacement trains with a reward in pods of its own, and deletes one of the pods meanwhile.
func TestPodsPlacement(t *testing.T) { trainInPods(t, "in-pods", podsManifests) }

// TestAgentsInPods trains with an agent in pods of its own, and deletes one of the pods meanwhile. The pods may connect
// to nothing, and the agent reaches the gateway of its worker.
func TestAgentsInPods(t *testing.T) { trainInPods(t, "agent-in-pods", agentPodsManifests) }

// trainInPods trains with programs in pods of their own, and deletes one of the pods meanwhile.
func trainInPods(t *testing.T, name, manifests string) {
	t.Helper()
	prepare(t, namespace)
	loadPython(t)
	file := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	deleted := make(chan int, 1)
	go func() {
		killed := 0
		for ; killed == 0 && t.Context().Err() == nil; time.Sleep(500 * time.Millisecond) {
			var pods corev1.PodList
			if env.List(t.Context(), &pods, client.InNamespace(namespace),
				client.MatchingLabels{v1alpha1.LabelRole: v1alpha1.RoleProgram}) != nil {
				continue
			}
			for i := range pods.Items {
				if isReady(pods.Items[i]) && env.Delete(t.Context(), &pods.Items[i], client.GracePeriodSeconds(0)) == nil {
					killed++
					break
				}
			}
		}
		deleted <- killed
	}()
	run := applySample(t, file, name)
	if killed := <-deleted; killed != 1 {
		t.Errorf("%d pods of the program were deleted, want 1", killed)
	}
	if ratio := run.Status.Environments[0].FaultRatio; ratio == nil || *ratio != 0 {
		t.Errorf("the environments ended with %+v, want no faults", run.Status.Environments)
	}
	eventually(t, podStart, "no pod of the program is left after the run", func() bool {
		return len(env.pods(t, run, v1alpha1.RoleProgram)) == 0
	})
}
