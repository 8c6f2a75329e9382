// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance && agents

package dialects

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// repository is a row of the sample agent-swe.
type repository struct {
	ID      string            `json:"id"`
	Problem string            `json:"problem"`
	Module  string            `json:"module"`
	Files   map[string]string `json:"files"`
	Tests   []string          `json:"tests"`
	Answer  string            `json:"answer"`
}

// The sample, and the folder of its program.
const (
	sweSample  = "../../config/samples/agent-swe.yaml"
	sweProgram = "../../config/samples/environments/mini-swe-agent"
)

// readRepositories returns the sample before its rows, and the rows.
func readRepositories(t *testing.T) (string, []repository) {
	t.Helper()
	text, err := os.ReadFile(sweSample)
	if err != nil {
		t.Fatal(err)
	}
	const begin = "  repositories.jsonl: |\n"
	head, data, found := strings.Cut(string(text), begin)
	if !found {
		t.Fatalf("%s has no %q", sweSample, begin)
	}
	var rows []repository
	for decoder := json.NewDecoder(strings.NewReader(data)); decoder.More(); {
		var row repository
		if err := decoder.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return head + begin, rows
}

// command returns the command of a row's answer.
func (r repository) command() string {
	_, rest, _ := strings.Cut(r.Answer, "```mswea_bash_command\n")
	command, _, _ := strings.Cut(rest, "\n```")
	return command
}

// TestMiniSWEAgentRepositories checks the rows of the sample: the repository's own tests always pass, and the tests of
// the row pass only after the answer.
func TestMiniSWEAgentRepositories(t *testing.T) {
	python := frameworksPython(t)
	_, rows := readRepositories(t)
	for _, row := range rows {
		t.Run(row.ID, func(t *testing.T) {
			folder := t.TempDir()
			for name, text := range row.Files {
				file := filepath.Join(folder, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			run := func(name string, args ...string) error {
				cmd := exec.CommandContext(t.Context(), name, args...)
				cmd.Dir, cmd.Env = folder, append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
				return cmd.Run()
			}
			tests := "import " + row.Module + "\n" + strings.Join(row.Tests, "\n")
			if run(python, "-m", "unittest") != nil || run(python, "-c", tests) == nil {
				t.Error("the repository fails its own tests, or passes the tests of the row")
			}
			if err := run("sh", "-c", row.command()); err != nil {
				t.Errorf("the answer's command: %v", err)
			}
			if run(python, "-m", "unittest") != nil || run(python, "-c", tests) != nil {
				t.Error("the repaired repository fails its own tests, or the tests of the row")
			}
		})
	}
	if len(rows) < 5 {
		t.Errorf("the sample has %d repositories, want 5", len(rows))
	}
}

// TestMiniSWEAgentRepairsInTheSandbox plays the sample by kubectl tinker try. It checks that the answer of the first
// row, as the policy's command, finds neither the tests of the row nor the token of the episode, reaches no port but
// the gateway's, and then repairs the repository, so that its tests pass.
func TestMiniSWEAgentRepairsInTheSandbox(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var reached atomic.Int64
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			connection.Close()
		}
	}()
	head, rows := readRepositories(t)
	connects := fmt.Sprintf(`python3 -c 'import socket; socket.create_connection(("127.0.0.1", %d))' 2>/dev/null`,
		listener.Addr().(*net.TCPAddr).Port)
	hostile := "! grep -rq \"parse('1h30m')\" .. && ! env | grep -q API_KEY && ! " + connects + " && "
	rows[0].Answer = "```mswea_bash_command\n" + hostile + rows[0].command() + "\n```"
	var sample bytes.Buffer
	sample.WriteString(head)
	for _, row := range rows {
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sample, "    %s\n", line)
	}
	program, err := filepath.Abs(sweProgram)
	if err != nil {
		t.Fatal(err)
	}
	groups, progress := trySample(t, sample.Bytes(), frameworksPython(t), "PYTHONPATH="+program)
	if !strings.Contains(progress, "a right answer earns 1") {
		t.Errorf("the repair does not earn 1:\n%s", progress)
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the policy's command reached a port %d times", n)
	}
	for _, g := range groups {
		for _, e := range g.Episodes {
			if e.Outcome != "Usable" || e.Reward != 0 || len(e.Conversations) == 0 {
				t.Errorf("slot %d has an episode %s with the reward %v and %d conversations, want 0 for a model without "+
					"commands (%s)", g.Slot, e.Outcome, e.Reward, len(e.Conversations), g.Reason)
			}
		}
	}
	if len(groups) != 2 {
		t.Errorf("%d episodes, want 2", len(groups))
	}
}
