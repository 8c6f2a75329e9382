// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// TestOwnData runs the commands of docs/data.md that lead from a file of rows to a trained model, with a reward that is
// an expression. It leaves out the first block, which starts a cluster.
func TestOwnData(t *testing.T) {
	prepare(t, namespace)
	commands := commandsOf(t, "docs/data.md", "## From an empty cluster to training on a file of your own")
	if len(commands) < 7 || !strings.HasPrefix(commands[0], "make demo\n") {
		t.Fatalf("docs/data.md has %d blocks of commands, want `make demo` first:\n%s", len(commands),
			strings.Join(commands, "\n---\n"))
	}
	wantSample(t, commands)
	var run v1alpha1.TrainingRun
	t.Cleanup(func() {
		if t.Failed() {
			describe(t, &run)
		}
	})
	dir, config := t.TempDir(), namespaceConfig(t)
	for _, block := range commands[1:] {
		shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", block)
		shell.Dir, shell.Env = dir, append(os.Environ(), "KUBECONFIG="+config)
		output, err := shell.CombinedOutput()
		if err != nil {
			t.Errorf("docs/data.md: %s\n%v\n%s", block, err, output)
			break
		}
	}
	env.get(t, namespace, "own-data", &run)
	if run.Status.Metric("test/pass@1") == nil || *run.Status.Metric("test/pass@1") < 0.6 {
		t.Errorf("the run is %s with the metrics %+v, want a held-out pass@1 of 0.6 at least", run.Status.State,
			run.Status.Metrics)
	}
}

// wantSample checks that config/samples/own-data.yaml has each object that the commands of docs/data.md write to a
// file.
func wantSample(t *testing.T, commands []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "config/samples/own-data.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var objects []any
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		objects = append(objects, decode(t, document))
	}
	written := 0
	for _, block := range commands {
		_, document, found := strings.Cut(block, "<<'EOF'\n")
		if !found {
			continue
		}
		written++
		document, _, _ = strings.Cut(document, "\nEOF\n")
		object := decode(t, document)
		if !slices.ContainsFunc(objects, func(sample any) bool { return reflect.DeepEqual(sample, object) }) {
			t.Errorf("config/samples/own-data.yaml has no such object as docs/data.md:\n%s", document)
		}
	}
	if written != 2 {
		t.Errorf("docs/data.md writes %d objects, want a RewardEnvironment and a TrainingRun", written)
	}
}

func decode(t *testing.T, document string) any {
	t.Helper()
	var object any
	if err := yaml.Unmarshal([]byte(document), &object); err != nil {
		t.Fatalf("decoding %s: %v", document, err)
	}
	return object
}

// commandsOf returns the blocks of code in the numbered steps of a page's section. Of a block that shows the output of
// commands, it returns only the lines that begin with a dollar sign, without the sign.
func commandsOf(t *testing.T, page, heading string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	const indent = "        "
	var blocks []string
	within := false
	for line := range strings.Lines(section) {
		code, isCode := strings.CutPrefix(line, indent)
		switch {
		case isCode && within:
			blocks[len(blocks)-1] += code
		case isCode:
			blocks = append(blocks, code)
		}
		within = isCode
	}
	for i, block := range blocks {
		if strings.HasPrefix(block, "$ ") {
			blocks[i] = prompted(block)
		}
	}
	return blocks
}

// prompted returns the commands of a block that shows their output.
func prompted(block string) string {
	var commands strings.Builder
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands.WriteString(command)
		}
	}
	return commands.String()
}

// namespaceConfig returns a file by which kubectl uses the namespace of the tests.
func namespaceConfig(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), "kubectl", "--kubeconfig", path, "config", "set-context", "--current",
		"--namespace", namespace).CombinedOutput()
	if err != nil {
		t.Fatalf("setting the namespace: %v\n%s", err, output)
	}
	return path
}
