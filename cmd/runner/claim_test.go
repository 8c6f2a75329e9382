// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/python"
)

// scratchReward says how many files its directory has, and leaves one there.
const scratchReward = `
import os

def reward(row, reply):
    found = len(os.listdir("."))
    open("left", "w").write("by an earlier call")
    return float(found)
`

// TestClaimedRunner starts a runner before a run exists, as a warm pod does. The runner admits no caller until the
// digest of a token appears, and then only the holder of that token. Each call has an empty directory.
func TestClaimedRunner(t *testing.T) {
	needPython(t)
	folder, err := os.MkdirTemp("", "claim-") // the runner's user may not enter t.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, at := startRemote(t, "--token-file", file)
	refused := func(when string, at client.Address, why string) {
		t.Helper()
		c, err := client.DialAddress(t.Context(), at)
		var refused *protocol.Error
		if !errors.As(err, &refused) || refused.Code != protocol.CodeUnauthorized || !strings.Contains(refused.Message, why) {
			t.Errorf("%s: Dial = %v, %v, want %s and %q", when, c, err, protocol.CodeUnauthorized, why)
		}
	}
	other := at
	other.Token = credentialsOf(t, "another run's").Token
	empty := at
	empty.Token = ""
	refused("without a file", at, "no such file")
	write("")
	refused("with an empty file", at, "no run has claimed the pod")
	refused("with an empty file and no token", empty, "no run has claimed the pod")
	write("no digest")
	refused("with another text", at, "no SHA-256")
	write(credentialsOf(t, "the run's").TokenSHA256() + "\n")
	refused("a worker of another run", other, "not the token")
	p := start(t, dialAt(t, at), "reward", python.Function{Code: scratchReward},
		protocol.Spec{InheritEnv: true, Processes: 1})
	for range 3 {
		result, err := call(t, p, map[string]any{}, "")
		if err != nil {
			t.Fatal(describe(err))
		}
		if !strings.Contains(string(result.Value), `"reward":0`) {
			t.Errorf("a call finds files of an earlier one: %s", result.Value)
		}
	}
	write(credentialsOf(t, "another run's").TokenSHA256())
	refused("after the pod was claimed again", other, "not the token")
	dialAt(t, at)
}
