// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/test/e2e/connections"
	"github.com/tinker-operator/tinker-operator/test/networkpolicy"
)

// recordConnections records which pods connect to which, on the local cluster, which enforces no NetworkPolicy. It
// returns nil on a cluster of another kind.
func recordConnections() (*connections.Recorder, error) {
	if kind := os.Getenv("CLUSTER"); kind != "" && kind != "local" {
		log.Printf("connections of pods are not recorded on a cluster of the kind %s", kind)
		return nil, nil
	}
	process, err := os.ReadFile(filepath.Join(filepath.Dir(kubeconfig), "boot"))
	if err != nil {
		return nil, fmt.Errorf("finding the process of the cluster: %w", err)
	}
	pid, _, _ := strings.Cut(string(process), " ")
	number, err := strconv.Atoi(pid)
	if err != nil {
		return nil, fmt.Errorf("reading the process of the cluster: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	return connections.Start(config, number)
}

// checkConnections returns an error if two pods were connected although the chart's NetworkPolicies do not permit it.
// If all tests ran, it also returns an error for each permitted connection that no pod has made.
func checkConnections(ctx context.Context, recorder *connections.Recorder) error {
	if recorder == nil {
		return nil
	}
	flows, lost, err := recorder.Stop()
	if err != nil {
		return fmt.Errorf("recording connections: %w", err)
	}
	flows = slices.DeleteFunc(flows, func(f networkpolicy.Flow) bool {
		ours := nameOf(f.From) != "" && nameOf(f.To) != ""
		if !ours {
			log.Printf("connection with a pod of a test: %s", flowName(f))
		}
		return !ours
	})
	policies, err := renderPolicies(ctx, flows)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	var problems []error
	for _, f := range flows {
		if what := flowName(f); !seen[what] {
			seen[what] = true
			if !policies.Permits(f) {
				problems = append(problems, fmt.Errorf("the NetworkPolicies do not permit %s", what))
			}
		}
	}
	log.Printf("connections between pods:\n\t%s", strings.Join(slices.Sorted(maps.Keys(seen)), "\n\t"))
	if lost > 0 {
		log.Printf("%d packets were lost, so that connections may be missing: rules without any are not looked for", lost)
		return errors.Join(problems...)
	}
	if flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" {
		return errors.Join(problems...)
	}
	for _, rule := range policies.Unused(flows) {
		if strings.Contains(rule, "-servers ") || strings.Contains(rule, v1alpha1.LabelRole+"="+v1alpha1.RoleServer) {
			continue // make test-e2e-servers has shared servers of environments
		}
		if within, _, _ := strings.Cut(rule, "/"); within == systemNamespace || within == namespace {
			problems = append(problems, fmt.Errorf("a rule permits what no pod has done: %s", rule))
		}
	}
	return errors.Join(problems...)
}

// renderPolicies renders the chart's policies for the namespaces of the connections.
func renderPolicies(ctx context.Context, flows []networkpolicy.Flow) (networkpolicy.Policies, error) {
	namespaces := map[string]bool{}
	for _, f := range flows {
		for _, pod := range []networkpolicy.Pod{f.From, f.To} {
			if pod.Namespace != systemNamespace {
				namespaces[pod.Namespace] = true
			}
		}
	}
	render := exec.CommandContext(ctx, "go", "tool", "-modfile=hack/tools/go.mod", "helm", "template", "tinker-operator",
		"charts/tinker-operator", "--namespace", systemNamespace, "--values", "hack/demo/values.yaml",
		"--set", "networkPolicies.enabled=true",
		"--set", "networkPolicies.namespaces={"+strings.Join(slices.Sorted(maps.Keys(namespaces)), ",")+"}")
	render.Dir = root
	manifests, err := render.Output()
	if err != nil {
		return nil, fmt.Errorf("rendering the chart: %w", err)
	}
	return networkpolicy.Read(manifests)
}

// nameOf returns the component of a pod of the chart, or the role of a pod of the operator. It returns "" for any other
// pod.
func nameOf(pod networkpolicy.Pod) string {
	if pod.Labels["app.kubernetes.io/instance"] == "tinker-operator" {
		return pod.Labels["app.kubernetes.io/component"]
	}
	return pod.Labels[v1alpha1.LabelRole]
}

func flowName(f networkpolicy.Flow) string {
	name := func(pod networkpolicy.Pod) string {
		if known := nameOf(pod); known != "" {
			return known
		}
		return fmt.Sprint(pod.Labels)
	}
	return fmt.Sprintf("%s to %s:%d", name(f.From), name(f.To), f.Port)
}
