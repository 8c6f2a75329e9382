// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func TestParseFault(t *testing.T) {
	cases := map[string]struct {
		text string
		ok   bool
	}{
		"no fault is requested":     {"", true},
		"a point alone is a fault":  {"row.written=kill", true},
		"a point may name a step":   {"row.written@3=stop", true},
		"an action is required":     {"row.written", false},
		"the action must be known":  {"row.written=wait", false},
		"the step must be a number": {"row.written@x=kill", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fault, err := parseFault(tc.text)
			if (err == nil) != tc.ok || (fault != nil) != (tc.ok && tc.text != "") {
				t.Fatalf("parseFault(%q): fault %v, err %v", tc.text, fault != nil, err)
			}
			if fault == nil {
				return
			}
			if err := fault(t.Context(), "another.point", 3); err != nil {
				t.Errorf("another point sends a signal: %v", err)
			}
		})
	}
}

func TestVerdictWithoutRunFile(t *testing.T) {
	dir := t.TempDir()
	verdict := run(options{runFile: filepath.Join(dir, "missing.json"), credentialsDir: dir},
		slog.New(slog.DiscardHandler))
	if verdict.Cause != contract.CauseConfigRejected || verdict.Message == "" {
		t.Errorf("verdict without a run file is %+v, want ConfigRejected with a message", verdict)
	}
	verdict.Attempt = 1
	path := filepath.Join(dir, "termination-log")
	if err := writeVerdict(path, verdict); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := contract.DecodeVerdict(string(data)); err != nil || got.Cause != verdict.Cause {
		t.Errorf("the verdict came back as %+v (%v)", got, err)
	}
}

// TestVerdictWithEmptyKey checks that a run with an empty key waits for a key, and does not fail.
func TestVerdictWithEmptyKey(t *testing.T) {
	t.Setenv("TINKER_API_KEY", "")
	credentials, err := contract.DeriveCredentials(bytes.Repeat([]byte{1}, 32), "uid")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		contract.TokenKey: []byte(credentials.Token), contract.CertificateKey: credentials.Certificate,
		contract.PrivateKeyKey: credentials.PrivateKey,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verdict := run(options{runFile: "../../internal/contract/testdata/run-file.v1.json", credentialsDir: dir},
		slog.New(slog.DiscardHandler))
	if verdict.Cause != contract.CauseUpstream || verdict.Reason != "KeyRefused" || verdict.Attempt == 0 {
		t.Errorf("verdict without a key is %+v, want Upstream for KeyRefused", verdict)
	}
}

// TestReadCredentials reads a token that ends with a line feed, as in a file that an editor wrote.
func TestReadCredentials(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{contract.TokenKey: "token\n", contract.CertificateKey: "certificate"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readCredentials(dir); err == nil {
		t.Error("credentials without their private key are accepted")
	}
	if err := os.WriteFile(filepath.Join(dir, contract.PrivateKeyKey), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readCredentials(dir)
	if err != nil || got.Token != "token" || string(got.Certificate) != "certificate" || string(got.PrivateKey) != "key" {
		t.Errorf("credentials are %+v (%v)", got, err)
	}
}
