// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// BenchmarkFirstStep applies the sample whose reward is a function in Python three times, and measures the longest
// time until the environment is ready, until a worker is ready, and until the status shows a step.
func BenchmarkFirstStep(b *testing.B) {
	const sample, name, times = "config/samples/python-reward.yaml", "python-reward", 3
	prepare(b, namespace)
	loadPython(b)
	for b.Loop() {
		var environment, worker, step time.Duration
		for range times {
			began := time.Now()
			remove := createFromFile(b, sample)
			var run v1alpha1.TrainingRun
			env.get(b, namespace, name, &run)
			eventually(b, podStart, "the environment is ready", func() bool {
				return readyOf(b, name).Status == metav1.ConditionTrue
			})
			environment = max(environment, time.Since(began))
			eventually(b, podStart, "a worker is ready", func() bool {
				return slices.ContainsFunc(env.pods(b, &run, v1alpha1.RoleRollout), isReady)
			})
			worker = max(worker, time.Since(began))
			eventually(b, podStart, "the status shows a step", func() bool {
				env.get(b, namespace, name, &run)
				return run.Status.Step != nil && *run.Status.Step > 0
			})
			step = max(step, time.Since(began))
			remove()
		}
		b.ReportMetric(environment.Seconds(), "environment-s")
		b.ReportMetric(worker.Seconds(), "worker-s")
		b.ReportMetric(step.Seconds(), "step-s")
	}
	b.ReportMetric(0, "ns/op")
}

// deadManifests are an environment whose program ends while it starts, and a run that trains on the environment.
const deadManifests = `
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: RewardEnvironment
metadata: {name: NAME}
spec: SPEC
---
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: TrainingRun
metadata: {name: NAME}
spec:
  model: {name: tinkersim/byte-136k, loraRank: 8}
  tinker:
    baseURL: http://tinkersim.tinker-operator-system
    apiKeySecretKeyRef: {name: tinker, key: TINKER_API_KEY}
  environments: [{name: NAME, groupSize: 4, sampling: {maxTokens: 8}}]
  algorithm: {tasksPerStep: 2, steps: 2, optimizer: {learningRate: 1.0e-4}}
`

// BenchmarkImportError applies environments whose programs raise while they are imported, and measures how long it
// takes until the RewardEnvironment, and kubectl tinker why of its run, show the exception.
func BenchmarkImportError(b *testing.B) {
	const data = `dataset: {arithmetic: {maxOperand: 9}}, `
	prepare(b, namespace)
	loadPython(b)
	for name, spec := range map[string]string{
		"dead-reward":  `{` + data + `reward: {python: {code: "import absent\ndef reward(row, reply): return 1"}}}`,
		"dead-episode": `{` + data + `interaction: {python: {code: "import absent\nasync def episode(row, policy, seed): return 1"}}}`,
		"dead-agent": `{` + data + `reward: {exactMatch: {}}, interaction: {agent: {python: {code: ` +
			`"import absent\nasync def agent(task, base_url): return ''"}}}}`,
		"dead-server": `{ors: {server: {image: "` + pythonImage + `", command: [python3, -c, import absent]}}}`,
	} {
		b.Run(name, func(b *testing.B) {
			file := filepath.Join(b.TempDir(), name+".yaml")
			manifests := strings.NewReplacer("NAME", name, "SPEC", spec).Replace(deadManifests)
			if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				const want = "No module named 'absent'"
				began := time.Now()
				remove := createFromFile(b, file)
				eventually(b, podStart, "the environment shows the exception", func() bool {
					return strings.Contains(readyOf(b, name).Message, want)
				})
				b.ReportMetric(time.Since(began).Seconds(), "environment-s")
				eventually(b, podStart, "kubectl tinker why shows the exception", func() bool {
					return strings.Contains(strings.Join(strings.Fields(tinker(b, "why", name)), " "), want)
				})
				b.ReportMetric(time.Since(began).Seconds(), "why-s")
				remove()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// createFromFile applies a file, and returns a function that deletes its objects.
func createFromFile(t testing.TB, file string) (remove func()) {
	t.Helper()
	if output, err := kubectl("apply", "-f", file); err != nil {
		t.Fatalf("applying %s: %v\n%s", file, err, output)
	}
	return func() {
		t.Helper()
		if output, err := kubectl("delete", "--ignore-not-found", "-f", file); err != nil {
			t.Fatalf("deleting %s: %v\n%s", file, err, output)
		}
	}
}

// readyOf returns the condition Ready of a RewardEnvironment, or an empty condition if it has none yet.
func readyOf(t testing.TB, name string) metav1.Condition {
	t.Helper()
	var environment v1alpha1.RewardEnvironment
	env.get(t, namespace, name, &environment)
	if ready := meta.FindStatusCondition(environment.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return *ready
	}
	return metav1.Condition{}
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
