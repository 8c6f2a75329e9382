// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try_test

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/try"
)

// serverScript is an environment server with one task, whose answer earns REWARD.
const serverScript = `
import json, os, http.server

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def send(self, value, kind="application/json"):
        body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        path = self.path
        if path == "/health": self.send({"status": "ok"})
        elif path == "/list_environments": self.send(["e"])
        elif path == "/e/splits": self.send(["train"])
        elif path == "/e/task_tools": self.send({"tools": [{"name": "submit", "description": "Submits.", "input_schema":
            {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}}]})
        elif path == "/e/messages": self.send([{"role": "user", "blocks": [{"type": "text", "text": "Say it."}]}])
        else: self.send({})
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/create_session": self.send({"sid": "s"})
        elif self.path == "/e/num_tasks": self.send({"num_tasks": 3})
        elif self.path == "/e/call":
            result = {"ok": True, "output": {"blocks": [{"type": "text", "text": "Done."}], "reward": REWARD,
                "finished": True}}
            stream = "event: task_id\ndata: t\n\nevent: end\ndata: " + json.dumps(result) + "\n\n"
            self.send(stream, "text/event-stream")
        else: self.send({})

http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
`

const serverObject = `apiVersion: rl.tinker-operator.dev/v1alpha1
kind: RewardEnvironment
metadata: {name: sums}
spec:
  ors: {server: {image: "sums:dev"}, answerTool: {name: submit, argument: answer}}
`

// TestTryStartsAServer starts the server of an environment, and starts it again when its program has changed. No server
// is left afterwards.
func TestTryStartsAServer(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here: no server of a user can run")
	}
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	write("environment.yaml", serverObject)
	write("server.py", strings.ReplaceAll(serverScript, "REWARD", "0.25"))
	out := &printed{more: make(chan struct{}, 1)}
	command := try.New(cli.IO{
		Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: out,
		Now: time.Now,
	})
	command.SetArgs([]string{"-f", "environment.yaml", "--episodes", "1", "--max-tokens", "16", "--watch", "--ors-command",
		"sums=python3 server.py; true"})
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() { ended <- command.ExecuteContext(ctx) }()
	at := out.await(t, 0, "mean reward 0.25\n")
	at = out.await(t, at, "waiting for a change")
	write("server.py", strings.ReplaceAll(serverScript, "REWARD", "0.75"))
	out.await(t, at, "mean reward 0.75\n")
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("the command ended with %v after an interrupt, want no error", err)
	}
	for _, address := range regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(out.String(), -1) {
		if connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address); err == nil {
			t.Errorf("the server at %s is left", address)
			_ = connection.Close()
		}
	}
}

// TestTryTellsWhyAServerDoesNotStart checks the messages for commands that do not serve.
func TestTryTellsWhyAServerDoesNotStart(t *testing.T) {
	for name, tc := range map[string]struct{ command, want string }{
		"an error at its start":  {"sums=echo Traceback; echo ImportError: no name >&2; exit 3", "exit status 3"},
		"its last lines":         {"sums=echo Traceback; echo ImportError: no name >&2; exit 3", "\n  ImportError: no name"},
		"a name of nothing":      {"other=sleep 1000", `has no RewardEnvironment "other"; it has sums`},
		"no command":             {"sums=", "is not NAME=COMMAND"},
		"a program that is gone": {"sums=./missing", "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := call(t, nil, serverObject, "-f", "-", "--episodes", "1", "--ors-command", tc.command)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
