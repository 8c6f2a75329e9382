// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && samples

package e2e

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/test/wheel"
)

// machineAddress is this machine in the network of the local cluster, whose pods reach nothing else outside of it.
const machineAddress = "10.88.0.254"

// serveWheels serves the packages of the services that agents ask as a package index, which the chart names.
func serveWheels(t *testing.T) {
	t.Helper()
	venv := exec.CommandContext(t.Context(), "test/conformance/venv", "dialects")
	venv.Dir = root
	out, err := venv.Output()
	if err != nil {
		t.Fatalf("making the virtual environment: %v", err)
	}
	dir := t.TempDir()
	if err := command(t.Context(), filepath.Join(strings.TrimSpace(string(out)), "bin", "python"), "-m", "pip", "download",
		"--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--dest", dir, "--requirement",
		"test/conformance/requirements/dialects.txt"); err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(machineAddress, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: wheel.Folder(dir), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := installPresent(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := installPresent(t.Context(), "--set", "packageIndex.url=http://"+listener.Addr().String()+"/simple"); err != nil {
		t.Fatal(err)
	}
}

// TestSamples applies, as they are printed, the samples that no test of `make test` applies, and wants each run to
// complete without a fault.
func TestSamples(t *testing.T) {
	prepare(t, namespace)
	loadPython(t)
	serveWheels(t)
	loadFolder(t, "cookbook", "environment-cookbook:dev")
	loadFolder(t, "mini-swe-agent", "environment-mini-swe-agent:dev")
	// The last run of a sample is the one to complete.
	for _, name := range []string{"sft", "sft-then-rl", "distillation", "code-tests", "agent-openai", "agent-anthropic",
		"agent-branches", "agent-swe", "python-environment", "self-play", "cookbook"} {
		t.Run(name, func(t *testing.T) {
			last := map[string]string{"sft-then-rl": "chain-rl"}[name]
			run := applySample(t, filepath.Join("config/samples", name+".yaml"), cmp.Or(last, name))
			for _, of := range run.Status.Environments {
				if of.FaultRatio != nil && *of.FaultRatio != 0 {
					t.Errorf("environment %s ended with the share %v of faults, want none: %+v", of.Name, *of.FaultRatio, of.Fault)
				}
			}
			for _, m := range run.Status.Metrics {
				t.Logf("%s: %s is %v", name, m.Name, m.Value)
			}
		})
	}
}
