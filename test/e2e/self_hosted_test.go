// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// TestSelfHosted applies the sample of a server and its run in one namespace, and runs the commands for its health as
// docs/self-hosting.md prints them.
func TestSelfHosted(t *testing.T) {
	prepare(t, namespace)
	const path = "config/samples/self-hosted/tinkersim.yaml"
	sample, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(t.TempDir(), "tinkersim.yaml")
	if err := os.WriteFile(manifest, []byte(strings.ReplaceAll(string(sample), "image: tinker-operator:dev",
		"image: "+image)), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := kubectl("apply", "-f", manifest); err != nil || !strings.Contains(string(sample),
		"image: tinker-operator:dev") {
		t.Fatalf("applying %s: %v\n%s", path, err, output)
	}
	t.Cleanup(func() {
		if output, err := kubectl("delete", "--wait=false", "-f", manifest); err != nil {
			t.Errorf("deleting %s: %v\n%s", path, err, output)
		}
	})
	var run v1alpha1.TrainingRun
	env.get(t, namespace, "self-hosted", &run)
	t.Cleanup(func() {
		if t.Failed() {
			describe(t, &run)
		}
	})
	eventually(t, trainingTime, "the run at the server of its namespace has ended", func() bool {
		env.get(t, namespace, run.Name, &run)
		return run.Status.State == "Succeeded" || run.Status.State == "Failed"
	})
	if run.Status.State != "Succeeded" || status.Latest(&run.Status) == nil || status.Latest(&run.Status).Step != 5 {
		t.Errorf("the run ended as %s with the checkpoint %+v", run.Status.State, status.Latest(&run.Status))
	}
	commands := healthCommands(t)
	if len(commands) != 2 {
		t.Fatalf("docs/self-hosting.md has the commands %q, want two", commands)
	}
	if output := inNamespace(t, commands[0]); !strings.Contains(output, "self-hosted") || !strings.Contains(output,
		"http://tinker-server") {
		t.Errorf("%s\n%s", commands[0], output)
	}
	if output := inNamespace(t, commands[1]); !strings.Contains(output, `"ok"`) {
		t.Errorf("%s\n%s", commands[1], output)
	}
}

// healthCommands returns the commands of the section about health in docs/self-hosting.md.
func healthCommands(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "self-hosting.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Health\n")
	var commands []string
	for line := range strings.SplitSeq(section, "\n") {
		if command, ok := strings.CutPrefix(line, "    kubectl"); ok {
			commands = append(commands, "kubectl"+command)
		}
	}
	return commands
}

// inNamespace runs a shell's command whose kubectl uses the namespace of the tests, and returns its output.
func inNamespace(t *testing.T, command string) string {
	t.Helper()
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(own, content, 0o600); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-euc",
		`kubectl config set-context --current --namespace="$0" >/dev/null; `+command, namespace)
	shell.Env = append(os.Environ(), "KUBECONFIG="+own)
	output, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", command, err, output)
	}
	return string(output)
}
