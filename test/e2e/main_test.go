// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e runs whole trainings on a cluster of two nodes, with the chart, the image and the simulator that users
// get, and kills processes, pods and nodes. It starts the local cluster unless one runs already, and stops the cluster
// that it started.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	systemNamespace = "tinker-operator-system"
	image           = "tinker-operator:e2e"
)

// env is the cluster that all tests share.
var env *cluster

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	// The first run builds Kubernetes from source, which takes minutes.
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute)
	defer cancel()
	// The local cluster brings its own kubectl.
	if err := os.Setenv("PATH", filepath.Join(root, ".cluster", "bin")+":"+os.Getenv("PATH")); err != nil {
		log.Print(err)
		return 1
	}
	started, err := startCluster(ctx)
	if started {
		defer stopCluster()
	}
	if err != nil {
		log.Printf("starting the cluster: %v", err)
		return 1
	}
	if env, err = connect(ctx); err != nil {
		log.Printf("connecting: %v", err)
		return 1
	}
	recorder, err := recordConnections()
	if err != nil {
		log.Printf("recording connections: %v", err)
		return 1
	}
	if err := errors.Join(clear(ctx), publishVocabulary(ctx), install(ctx)); err != nil {
		log.Printf("installing: %v", err)
		return 1
	}
	code := m.Run()
	if err := checkConnections(context.Background(), recorder); err != nil {
		log.Printf("connections between pods: %v", err)
		return max(code, 1)
	}
	return code
}

// startCluster starts a cluster of two nodes, or adds a node to one that runs already, such as the demo's.
// It reports whether it started the cluster.
func startCluster(ctx context.Context) (bool, error) {
	running := hack(ctx, "cluster/cluster", "status") == nil
	if running {
		log.Print("a cluster runs already: the tests use it and leave it running")
	}
	return !running, hack(ctx, "cluster/cluster", "up", "--nodes", "2")
}

// clear removes the namespaces of an earlier run of these tests.
func clear(ctx context.Context) error {
	return command(ctx, "kubectl", "delete", "namespace", namespace, deletedNamespace, "--ignore-not-found",
		"--timeout=2m")
}

func stopCluster() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := hack(ctx, "cluster/cluster", "down"); err != nil {
		log.Printf("stopping the cluster: %v", err)
	}
}

// install builds and loads the image and installs the chart, with a simulator that keeps its
// checkpoints over restarts.
func install(ctx context.Context) error {
	archive := filepath.Join(root, "dist", "e2e.tar")
	if err := hack(ctx, "image.sh", image, archive); err != nil {
		return err
	}
	if err := hack(ctx, "cluster/cluster", "load", archive); err != nil {
		return err
	}
	return installPresent(ctx)
}

// installPresent installs or upgrades to the chart of this tree, with the values that the chart of the previous version
// does not know, and with settings of a test.
func installPresent(ctx context.Context, settings ...string) error {
	return installChart(ctx, ".", image, append([]string{"--set", "environmentServers.shared=true"}, settings...)...)
}

// installChart installs or upgrades to the chart of a working tree of the repository, with an image that is loaded.
func installChart(ctx context.Context, tree, image string, settings ...string) error {
	repository, tag, _ := strings.Cut(image, ":")
	return helm(ctx, append([]string{
		"upgrade", "--install", "tinker-operator", filepath.Join(tree, "charts", "tinker-operator"), "--create-namespace",
		"--set", "image.repository=" + repository, "--set", "image.tag=" + tag,
		"--set", "tinkersim.vocabularies[0].model=" + foreignModel,
		"--set", "tinkersim.vocabularies[0].configMap=vocabulary,tinkersim.vocabularies[0].key=tokenizer.json",
		"--values", "hack/demo/values.yaml",
		"--set", "manager.logLevel=debug", "--wait", "--timeout", "3m",
	}, settings...)...)
}

// helm runs helm in the namespace of the operator.
func helm(ctx context.Context, arguments ...string) error {
	return command(ctx, "go", append([]string{"tool", "-modfile=hack/tools/go.mod", "helm", "--namespace",
		systemNamespace}, arguments...)...)
}

// root is the root of the repository.
var root = func() string {
	path, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return path
}()

func hack(ctx context.Context, script string, arguments ...string) error {
	return command(ctx, filepath.Join(root, "hack", script), arguments...)
}

// command runs a program in the root of the repository. Its output is part of the error.
func command(ctx context.Context, name string, arguments ...string) error {
	c := exec.CommandContext(ctx, name, arguments...)
	c.Dir = root
	c.Env = append(os.Environ(), "FAST_NODE_LOSS=1", "NODES=2")
	if kubeconfig != "" {
		c.Env = append(c.Env, "KUBECONFIG="+kubeconfig)
	}
	output, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, output)
	}
	return nil
}
