// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// versions are the requirements files that the suite runs with.
var versions = []string{"newest", "oldest"}

// servers are the configurations of tinkersim.
var servers = map[string]struct {
	// config is the configuration for clients; empty means the default of tinkersim.
	config string
	// only selects checks by parts of their names; empty means all, and then their coverage is checked.
	only string
}{
	"": {},
	// This is the configuration of the hosted service: concurrent compressed chunks, keys exchanged for tokens, and
	// the SDK's own transport.
	"-hosted": {
		config: `{"parallel_fwdbwd_chunks":true,"proto_compress_fwdbwd":true,"pjwt_auth_enabled":true,` +
			`"use_pyqwest_transport":true,"create_model_via_load_weights":true}`,
		only: "chunk,resume,load_,loss_,large_,wrong_key,sample,identity",
	},
}

// model is the name of tinkersim's model.
const model = "tinkersim/byte-136k"

// key is the key that the suite's server accepts.
const key = "tml-conformance"

// TestConformance runs the checks with all versions concurrently, each against its own servers.
func TestConformance(t *testing.T) {
	program := build(t)
	for _, name := range versions {
		python := environment(t, name)
		for suffix, server := range servers {
			t.Run(python.version+suffix, func(t *testing.T) {
				t.Parallel()
				sim := start(t, program, server.config)
				python.run(t, target{url: sim, hub: sim, key: key, admin: true}, server.only)
			})
		}
	}
}

// build builds tinkersim and returns its path.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tinkersim")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/tinkersim")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building tinkersim: %v\n%s", err, out)
	}
	return program
}

var served = regexp.MustCompile(`msg=serving url=(\S+)`)

// start starts a server that ends with the test, and returns its URL. Its log is shown if the test fails.
func start(t *testing.T, program, config string) string {
	t.Helper()
	args := []string{
		"--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--api-key", key, "--admin",
		"--alias", "Qwen/Qwen3-8B-Base", "--poll-patience", "1s", "--announce-bytes", "1000000",
	}
	if config != "" {
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--client-config", file)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting tinkersim: %v", err)
	}
	urls, lines := make(chan string, 1), make(chan string, 1)
	go follow(bufio.NewScanner(log), urls, lines)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		text := <-lines
		if err := cmd.Wait(); err != nil {
			t.Errorf("tinkersim ended with %v", err)
		}
		if t.Failed() {
			t.Logf("tinkersim:\n%s", text)
		}
	})
	url, ok := <-urls
	if !ok {
		t.Fatal("tinkersim ended before it served")
	}
	return url
}

// follow sends the URL that a server logs, and after the server's end the last lines of its log.
func follow(log *bufio.Scanner, urls, lines chan<- string) {
	const kept = 20
	var text []string
	for log.Scan() {
		text = append(text, log.Text())
		if len(text) > kept {
			text = text[1:]
		}
		if found := served.FindStringSubmatch(log.Text()); found != nil {
			urls <- found[1]
		}
	}
	close(urls)
	lines <- strings.Join(text, "\n")
}

// python is a virtual environment with the SDK.
type python struct{ program, version string }

// environment returns the environment of a requirements file. The script venv makes it if it does not exist.
func environment(t *testing.T, name string) python {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "./venv", name)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("making the environment of requirements/%s.txt: %v\n%s", name, err, problems.String())
	}
	requirements, err := os.ReadFile(filepath.Join("requirements", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^tinker==(\S+)$`).FindSubmatch(requirements)
	if version == nil {
		t.Fatalf("requirements/%s.txt pins no version of tinker", name)
	}
	return python{program: filepath.Join(strings.TrimSpace(string(out)), "bin", "python"), version: string(version[1])}
}

// target is a server with a key, and a hub, which the checks use. A simulator has routes for administration.
type target struct {
	url, hub, key string
	admin         bool
}

// command returns the command that runs the checks. Its proxy does not exist, so the checks reach only the server and
// the hub.
func (p python) command(ctx context.Context, home string, at target, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.program, append([]string{"run.py"}, args...)...)
	cmd.Env = append(os.Environ(),
		"HF_ENDPOINT="+at.hub, "HF_HOME="+home, "HF_HUB_DISABLE_TELEMETRY=1", "HF_HUB_DISABLE_XET=1",
		"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1", "PYTHONDONTWRITEBYTECODE=1", "TINKER_API_KEY="+at.key,
	)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		const nowhere = "http://127.0.0.1:9"
		cmd.Env = append(cmd.Env, name+"="+nowhere, strings.ToLower(name)+"="+nowhere)
	}
	return cmd
}

// run runs the checks, each as a subtest.
func (p python) run(t *testing.T, at target, only string) {
	home := t.TempDir()
	listed, err := p.command(t.Context(), home, at, "--list", "--only", only).Output()
	if err != nil {
		t.Fatalf("listing the checks: %v", err)
	}
	args := []string{"--url", at.url, "--model", model, "--only", only}
	if at.admin {
		args = append(args, "--admin")
	}
	cmd := p.command(t.Context(), home, at, args...)
	stderr := &tail{}
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting the checks: %v", err)
	}
	results := json.NewDecoder(out)
	for name := range strings.Lines(string(listed)) {
		name = strings.TrimSpace(name)
		t.Run(name, func(t *testing.T) { checkResult(t, results, name, stderr) })
	}
	if only == "" {
		t.Run("every_public_method_is_covered", func(t *testing.T) { cover(t, results, p.version) })
	}
	_ = cmd.Wait() // a check that failed has been reported
}

// result is the runner's report of one check, or, at the end, its report of all calls.
type result struct {
	Check   string      `json:"check"`
	Seconds float64     `json:"seconds"`
	Error   string      `json:"error"`
	Calls   [][2]string `json:"calls"`
}

// checkResult waits for the result of a check, and fails the test if the check failed.
func checkResult(t *testing.T, results *json.Decoder, name string, stderr *tail) {
	var r result
	if err := results.Decode(&r); err != nil {
		t.Fatalf("the runner ended: %v\n%s", err, stderr)
	}
	if r.Check != name {
		t.Fatalf("the result belongs to the check %q", r.Check)
	}
	if r.Error != "" {
		t.Errorf("after %.1f s: %s", r.Seconds, r.Error)
	}
}

// cover checks that every public method of the SDK's clients was called or is an exception, and writes their table to
// a file.
func cover(t *testing.T, results *json.Decoder, version string) {
	var r result
	if err := results.Decode(&r); err != nil {
		t.Fatalf("reading the table of calls: %v", err)
	}
	if len(r.Calls) == 0 {
		t.Fatal("the table of calls is empty")
	}
	var table strings.Builder
	for _, row := range r.Calls {
		call, checks := row[0], row[1]
		fmt.Fprintf(&table, "%-70s %s\n", call, checks)
		if checks == "" {
			t.Errorf("no check that passed calls %s, and coverage.py does not say why", call)
		}
	}
	t.Logf("calls of tinker %s and their checks:\n%s", version, table.String())
	name := filepath.Join("..", "..", ".cache", "conformance-calls-"+version+".txt")
	if err := os.WriteFile(name, []byte(table.String()), 0o600); err != nil {
		t.Error(err)
	}
}

// tail keeps the last 8 KiB of the text that is written to it.
type tail struct{ text []byte }

func (t *tail) Write(data []byte) (int, error) {
	const kept = 8 << 10
	t.text = append(t.text, data...)
	t.text = t.text[max(0, len(t.text)-kept):]
	return len(data), nil
}

func (t *tail) String() string { return string(t.text) }
