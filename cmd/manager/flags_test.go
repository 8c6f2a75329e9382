// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parsed(t *testing.T, args ...string) (options, error) {
	t.Helper()
	set := flag.NewFlagSet("manager", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return parse(set, args)
}

func keyFile(t *testing.T, bytes int) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, []byte(strings.Repeat("k", bytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestParse(t *testing.T) {
	got, err := parsed(t, "--image=i", "--manager-key-file="+keyFile(t, 32), "--namespaces=a, b,", "--log-level=debug",
		"--leader-elect=false",
		`--pod-defaults={"nodeSelector": {"pool": "runs"}}`)
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got.namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if got.image != "i" || len(got.managerKey) != 32 || got.logLevel != slog.LevelDebug || got.leaderElect ||
		got.defaultBaseURL != hostedBaseURL {
		t.Errorf("options = %+v", got)
	}
	if got.podDefaults.NodeSelector["pool"] != "runs" {
		t.Errorf("defaults of pods = %+v", got.podDefaults)
	}
	if name, err := os.Hostname(); err != nil || got.identity() != name {
		t.Errorf("identity outside of a cluster = %q, want the name of the machine, %q (%v)", got.identity(), name, err)
	}
	if named := (options{leaderElectionNamespace: "system"}); named.identity() != "system" {
		t.Errorf("identity = %q, want the namespace of the leader election", named.identity())
	}
	made, err := got.manager()
	if err != nil {
		t.Fatal(err)
	}
	if !made.Metrics.SecureServing || made.Metrics.FilterProvider == nil || made.LeaderElection ||
		len(made.Cache.DefaultNamespaces) != 2 {
		t.Errorf("manager options = %+v", made)
	}
}

func TestParseSaysWhatIsMissing(t *testing.T) {
	key := keyFile(t, 32)
	cases := map[string][]string{
		"--image is required":            {"--manager-key-file=" + key},
		"--manager-key-file is required": {"--image=i"},
		"at least 32 are needed":         {"--image=i", "--manager-key-file=" + keyFile(t, 31)},
		"reading manager key":            {"--image=i", "--manager-key-file=/nonexistent"},
		"reading --pod-defaults":         {"--image=i", "--manager-key-file=" + key, `--pod-defaults={"x": 1}`},
		"for flag -log-level":            {"--image=i", "--manager-key-file=" + key, "--log-level=loud"},
		"flag provided but not defined":  {"--surprise"},
	}
	for want, args := range cases {
		t.Run(want, func(t *testing.T) {
			if _, err := parsed(t, args...); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("parse = %v, want %q", err, want)
			}
		})
	}
}

func TestMetricsCanBeInsecureOrOff(t *testing.T) {
	got, err := parsed(t, "--image=i", "--manager-key-file="+keyFile(t, 40), "--metrics-insecure",
		"--metrics-bind-address=0")
	if err != nil {
		t.Fatal(err)
	}
	made, err := got.manager()
	if err != nil {
		t.Fatal(err)
	}
	if made.Metrics.SecureServing || made.Metrics.FilterProvider != nil || made.Metrics.BindAddress != "0" {
		t.Errorf("metrics = %+v", made.Metrics)
	}
}

func TestPythonImage(t *testing.T) {
	for image, want := range map[string]string{
		"tinker-operator:dev":                  "tinker-operator-python:dev",
		"registry:5000/a/tinker-operator":      "registry:5000/a/tinker-operator-python",
		"registry:5000/a/tinker-operator:v1":   "registry:5000/a/tinker-operator-python:v1",
		"registry/tinker-operator@sha256:0123": "registry/tinker-operator-python",
	} {
		if got := pythonImageBeside(image); got != want {
			t.Errorf("beside %s: got %s, want %s", image, got, want)
		}
	}
}
