// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/plugin"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// kubectl runs kubectl in the namespace of the tests.
func kubectl(arguments ...string) (string, error) {
	return kubectlAnywhere(append([]string{"--namespace", namespace}, arguments...)...)
}

// kubectlAnywhere runs kubectl for objects whose manifests name their namespaces.
func kubectlAnywhere(arguments ...string) (string, error) {
	c := exec.Command("kubectl", arguments...)
	c.Dir = root
	c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	output, err := c.CombinedOutput()
	return string(output), err
}

// tinker runs kubectl tinker in the namespace of the tests, and returns its output.
func tinker(t testing.TB, arguments ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	streams := cli.IO{Getenv: os.Getenv, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Now: time.Now}
	arguments = append([]string{"kubectl-tinker", "--kubeconfig", kubeconfig, "--namespace", namespace}, arguments...)
	if code := plugin.Run(t.Context(), streams, arguments); code != 0 {
		t.Fatalf("kubectl tinker %s: exit code %d: %s", strings.Join(arguments, " "), code, stderr.String())
	}
	return stdout.String()
}
