// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/plugin"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// TestSDKSeesPublishedAndDeletedCheckpoints changes checkpoints with kubectl tinker, and compares them with the SDK's
// listings.
func TestSDKSeesPublishedAndDeletedCheckpoints(t *testing.T) {
	url := start(t, build(t), "")
	sdk := environment(t, "newest")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), sdk.program, "edits.py", url, model)
	cmd.Env = sdk.command(t.Context(), t.TempDir(), target{url: url, hub: url, key: key}).Env
	stderr := &tail{}
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the SDK ended with %v:\n%s", err, stderr)
		}
	})
	lines := json.NewDecoder(stdout)
	var paths []string
	if err := lines.Decode(&paths); err != nil {
		t.Fatalf("saving a checkpoint: %v\n%s", err, stderr)
	}
	state, sampler := paths[0], paths[1]
	cluster := oneRun(t, url, state, sampler)
	for _, step := range []struct {
		command []string
		want    map[string]bool
	}{
		{[]string{"publish", "--yes"}, map[string]bool{state: false, sampler: true}},
		{[]string{"publish", "--training-state", "--yes"}, map[string]bool{state: true, sampler: true}},
		{[]string{"unpublish"}, map[string]bool{state: true, sampler: false}},
		{[]string{"delete", "--step", "3", "--force", "--yes"}, map[string]bool{}},
	} {
		kubectlTinker(t, cluster, url, step.command...)
		if _, err := io.WriteString(stdin, "\n"); err != nil {
			t.Fatal(err)
		}
		var listed map[string]bool
		if err := lines.Decode(&listed); err != nil {
			t.Fatalf("listing checkpoints: %v\n%s", err, stderr)
		}
		if diff := cmp.Diff(step.want, listed); diff != "" {
			t.Errorf("after %v the SDK lists (-want +got):\n%s", step.command, diff)
		}
	}
}

// kubectlTinker runs `kubectl tinker checkpoints` for the run of a cluster that has no Secrets, so the key comes from
// the variable TINKER_API_KEY. Such a key is sent only to an address that the command itself names.
func kubectlTinker(t *testing.T, kubeconfig, url string, arguments ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	getenv := func(name string) string { return map[string]string{"TINKER_API_KEY": key}[name] }
	streams := cli.IO{Getenv: getenv, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Now: time.Now}
	arguments = append([]string{"kubectl-tinker", "--kubeconfig", kubeconfig, "checkpoints", arguments[0], "saved",
		"--base-url", url}, arguments[1:]...)
	if code := plugin.Run(t.Context(), streams, arguments); code != 0 {
		t.Fatalf("kubectl tinker %s: exit code %d: %s", strings.Join(arguments, " "), code, stderr.String())
	}
}

// oneRun serves the API of a cluster with the run saved, which has a checkpoint of step 3, as far as kubectl tinker
// reads the API. It returns a kubeconfig.
func oneRun(t *testing.T, url, state, sampler string) string {
	t.Helper()
	const group = "/apis/rl.tinker-operator.dev"
	run := fmt.Sprintf(
		`{"apiVersion":"rl.tinker-operator.dev/v1alpha1","kind":"TrainingRun","metadata":{"name":"saved","namespace":"default","uid":"u"},
		"spec":{"tinker":{"baseURL":%q}},"status":{"latestCheckpoint":"s","checkpoints":[{"name":"s","step":3,"state":%q,"sampler":%q}]}}`, url, state, sampler)
	version := `{"groupVersion":"rl.tinker-operator.dev/v1alpha1","version":"v1alpha1"}`
	bodies := map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"rl.tinker-operator.dev","versions":[` +
			version + `],"preferredVersion":` + version + `}]}`,
		group: `{"kind":"APIGroup","apiVersion":"v1","name":"rl.tinker-operator.dev","versions":[` + version +
			`],"preferredVersion":` + version + `}`,
		group + "/v1alpha1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"rl.tinker-operator.dev/v1alpha1","resources":[
			{"name":"trainingruns","singularName":"trainingrun","namespaced":true,"kind":"TrainingRun","verbs":["get","list"]}]}`,
		group + "/v1alpha1/namespaces/default/trainingruns/saved": run,
		group + "/v1alpha1/namespaces/default/trainingruns":       `{"apiVersion":"rl.tinker-operator.dev/v1alpha1","kind":"TrainingRunList","items":[` + run + `]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := bodies[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: "+
		"%q}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u}]\n",
		server.URL)
	name := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(name, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
