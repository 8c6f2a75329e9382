// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package skyrl starts SkyRL for tests, and first installs it if necessary.
package skyrl

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Model is the model that the server trains.
const Model = "tinkersim/byte-136k"

// Release is a version of SkyRL.
type Release struct {
	Version string
	// environment is the name of its Python environment.
	environment string
	// Supported, Ignored and Unsupported are the features that the first attempt of a plain run finds there.
	Supported, Ignored, Unsupported []string
}

// The versions that are tested.
var (
	Pinned = Release{
		Version: "0.3.0", environment: "skyrl",
		Supported: []string{
			"adam.beta1", "adam.beta2", "list_models", "loss.importance_sampling", "loss.importance_sampling.formula",
			"loss_sum", "optimizer_restore", "prompt_logprobs", "unload_model",
		},
		Ignored:     []string{"gradient_sum", "optimizer_reset", "prompt_logprobs_last_n", "user_metadata"},
		Unsupported: []string{"list_checkpoints", "protobuf", "repeats", "sampler_snapshot", "seed", "ttl"},
	}
	Next = Release{
		Version: "0.4.0", environment: "skyrl-next",
		Supported: []string{
			"adam.beta1", "adam.beta2", "list_models", "loss.importance_sampling", "loss.importance_sampling.formula",
			"loss_sum", "optimizer_reset", "optimizer_restore", "prompt_logprobs", "protobuf", "repeats", "unload_model",
		},
		Ignored:     []string{"gradient_sum", "prompt_logprobs_last_n", "user_metadata"},
		Unsupported: []string{"list_checkpoints", "sampler_snapshot", "seed", "ttl"},
	}
)

// Server is a server that runs.
type Server struct {
	// URL is its base URL.
	URL string
	// Database is the file of its database.
	Database string
}

// Start starts the server at an address of this machine, given as HOST:PORT. The server ends with the test. root is the
// root of the repository.
func Start(t *testing.T, root string, of Release, address string) Server {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	install := filepath.Join(root, "test", "conformance", "venv")
	venv, err := exec.CommandContext(t.Context(), install, of.environment).Output()
	if err != nil {
		t.Fatalf("installing SkyRL %s: %v", of.Version, err)
	}
	work := filepath.Join(root, ".cache", of.environment)
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(work, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), filepath.Join(root, "test", "conformance", "skyrl", "serve"),
		strings.TrimSpace(string(venv)), work)
	server.Env = append(os.Environ(), "HOST="+host, "PORT="+port)
	server.Stdout, server.Stderr = log, log
	// The server consists of four processes.
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
		if t.Failed() {
			t.Logf("the server's log is %s", log.Name())
		}
	})
	s := Server{URL: "http://" + address, Database: filepath.Join(work, "tinker.db")}
	for began := time.Now(); !answers(t, s.URL); time.Sleep(time.Second) {
		if time.Since(began) > 5*time.Minute {
			t.Fatalf("SkyRL does not answer at %s", s.URL)
		}
	}
	return s
}

// WantSteps checks how many optimizer steps the server has executed for the weights of a state, by its database. root
// is the root of the repository.
func (s Server) WantSteps(t *testing.T, root, state string, want int64) {
	t.Helper()
	count := exec.CommandContext(t.Context(), "python3", filepath.Join(root, "test", "conformance", "skyrl", "steps.py"),
		s.Database, state)
	output, err := count.CombinedOutput()
	if err != nil {
		t.Fatalf("counting the steps of %s: %v\n%s", state, err, output)
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(string(output)), 10, 64); err != nil || n != want {
		t.Errorf("the server executed %q steps for %s, want %d", output, state, want)
	}
}

// answers reports whether the server answers that it is healthy.
func answers(t *testing.T, url string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
