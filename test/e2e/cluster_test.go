// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/test/archive"
)

// kubeconfig is the path of the cluster's kubeconfig, once it runs.
var kubeconfig string

// cluster is a client of the API server and of the simulator.
type cluster struct {
	client.Client
}

func connect(ctx context.Context) (*cluster, error) {
	path, err := exec.CommandContext(ctx, filepath.Join(root, "hack", "cluster", "cluster"), "kubeconfig").Output()
	if err != nil {
		return nil, err
	}
	kubeconfig = strings.TrimSpace(string(path))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 100, 200
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &cluster{Client: c}, nil
}

// archive opens the archive of a checkpoint on tinkersim, at the address of its Service.
func (c *cluster) archive(t testing.TB, path string) io.ReadCloser {
	t.Helper()
	var service corev1.Service
	c.get(t, systemNamespace, "tinkersim", &service)
	return archive.Open(t, "http://"+service.Spec.ClusterIP, "tml-e2e", path)
}

func (c *cluster) get(t testing.TB, namespace, name string, object client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		t.Fatal(err)
	}
}

// pods returns the pods of a run in a role that have not ended and are not being deleted.
func (c *cluster) pods(t testing.TB, run *v1alpha1.TrainingRun, role string) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace(run.Namespace),
		client.MatchingLabels{v1alpha1.LabelRunUID: string(run.UID), v1alpha1.LabelRole: role}); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
}

// signal sends a signal to the processes of a pod's only container, from outside the cluster.
func (c *cluster) signal(t testing.TB, pod corev1.Pod, signal string) {
	t.Helper()
	if err := hack(t.Context(), "cluster/cluster", "signal", pod.Namespace+"/"+pod.Name, pod.Spec.Containers[0].Name,
		signal); err != nil {
		t.Fatal(err)
	}
}

// deletePods deletes pods.
func (c *cluster) deletePods(t testing.TB, pods []corev1.Pod) {
	t.Helper()
	for i := range pods {
		if err := c.Delete(t.Context(), &pods[i]); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// restart deletes the pods of one of the chart's Deployments and waits until it is available again.
func (c *cluster) restart(t testing.TB, component string) {
	t.Helper()
	labels := client.MatchingLabels{"app.kubernetes.io/component": component}
	if err := c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(systemNamespace), labels,
		client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	eventually(t, podStart, component+" is available again", func() bool {
		var deployments appsv1.DeploymentList
		if err := c.List(t.Context(), &deployments, client.InNamespace(systemNamespace), labels); err != nil {
			t.Fatal(err)
		}
		for _, d := range deployments.Items {
			if d.Status.AvailableReplicas < 1 || d.Status.UnavailableReplicas > 0 {
				return false
			}
		}
		return len(deployments.Items) > 0
	})
}

// podStart is how long pods may take to start, or to be replaced: many runs share the processors.
const podStart = 5 * time.Minute

// trainingTime is how long a run may take: other programs may use the machine as well.
const trainingTime = 20 * time.Minute

// eventually polls until the condition holds.
func eventually(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("after %s this is still false: %s", limit, what)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
