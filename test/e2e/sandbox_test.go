// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && sandbox

package e2e

import (
	"context"
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
)

// sandboxWait is how long the controller of agent-sandbox may take to fill a pool.
const sandboxWait = 3 * time.Minute

// sandboxDescription lists the objects of agent-sandbox that a failed test shows.
const sandboxDescription = "sandboxes,sandboxclaims,sandboxwarmpools,pods"

// TestSandboxPool trains with a reward in pods of a warm pool of the real agent-sandbox, which began before the run.
func TestSandboxPool(t *testing.T) {
	prepare(t, namespace)
	loadPython(t)
	if err := hack(t.Context(), "agent-sandbox/sandbox", "install"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command(context.Background(), filepath.Join(root, "hack", "agent-sandbox", "sandbox"), "uninstall")
	})
	if err := installPresent(t.Context(), "--set", "environmentServers.warmPools=true"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if output, err := kubectl("describe", sandboxDescription); t.Failed() {
			t.Logf("kubectl describe: %v\n%s", err, output)
		}
	})
	createPoolSecret(t)
	applyFile(t, "pool.yaml", poolManifests(t))
	warm := warmPods(t)

	seen := make(chan []string, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { seen <- claimedPods(ctx) }()
	run := applySample(t, writeFile(t, "in-pool.yaml", strings.NewReplacer("in-pods", "in-pool", "pods: {replicas: 2}",
		"pods: {replicas: 2, warmPoolRef: {name: python}}").Replace(podsManifests)), "in-pool")
	stop()
	used := <-seen
	if len(used) != 2 || !slices.Contains(warm, used[0]) || !slices.Contains(warm, used[1]) {
		t.Errorf("the run had the pods %q, want two of the warm ones, %q", used, warm)
	}
	if ratio := run.Status.Environments[0].FaultRatio; ratio == nil || *ratio != 0 {
		t.Errorf("the environments ended with %+v, want no faults", run.Status.Environments)
	}
	eventually(t, podStart, "no claim and no claimed pod is left after the run", func() bool {
		output, err := kubectl("get", "sandboxclaims", "-o", "name")
		var pods corev1.PodList
		return err == nil && strings.TrimSpace(output) == "" && env.List(t.Context(), &pods, client.InNamespace(namespace),
			client.HasLabels{v1alpha1.LabelPoolProgram}) == nil && len(pods.Items) == 0
	})
}

// createPoolSecret makes the certificate of the pool, as docs/python.md tells users to make it.
func createPoolSecret(t *testing.T) {
	t.Helper()
	made, err := contract.DeriveProgramCredentials("the pool's", "0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: contract.WarmPoolSecretName("python")},
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: made.Certificate,
			corev1.TLSPrivateKeyKey: made.PrivateKey},
	}
	if err := env.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// poolManifests returns the manifests of the repository's pool, with the images of the test.
func poolManifests(t *testing.T) string {
	t.Helper()
	manifests, err := os.ReadFile(filepath.Join(root, "hack", "agent-sandbox", "pool.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("OPERATOR_IMAGE", image, "PYTHON_IMAGE", pythonImage).Replace(string(manifests))
}

func applyFile(t *testing.T, name, manifests string) {
	t.Helper()
	if output, err := kubectl("apply", "-f", writeFile(t, name, manifests)); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, output)
	}
}

// warmPods waits until the pool is full, and returns the names of its pods.
func warmPods(t *testing.T) []string {
	t.Helper()
	eventually(t, sandboxWait, "the pool is full", func() bool {
		output, err := kubectl("get", "sandboxwarmpool", "python", "-o", "jsonpath={.status.readyReplicas}")
		return err == nil && output == "2"
	})
	output, err := kubectl("get", "sandboxes", "-o", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		t.Fatalf("kubectl get sandboxes: %v\n%s", err, output)
	}
	return strings.Fields(output)
}

// claimedPods returns the names of all pods that a run has claimed until the context ends.
func claimedPods(ctx context.Context) []string {
	found := map[string]bool{}
	var names []string
	for ; ctx.Err() == nil; time.Sleep(300 * time.Millisecond) {
		var pods corev1.PodList
		if env.List(ctx, &pods, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelPoolProgram}) != nil {
			continue
		}
		for _, pod := range pods.Items {
			if !found[pod.Name] {
				found[pod.Name], names = true, append(names, pod.Name)
			}
		}
	}
	return names
}
