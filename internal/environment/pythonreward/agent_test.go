// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/spawn"
)

func (r *runner) agent(t *testing.T, o AgentOptions) *Agent {
	t.Helper()
	host := &Host{Socket: r.socket(), InheritEnv: true}
	t.Cleanup(host.Close)
	o.Processes, o.Concurrency = 1, max(o.Concurrency, 1)
	a, err := NewAgent(host, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAgentsInPython plays functions that return, that fail, and that end their process.
func TestAgentsInPython(t *testing.T) {
	cases := map[string]struct {
		code    string
		rewards bool
		alone   bool
		want    string
		end     Ending
		problem string
	}{
		"a text":  {"return task['prompt'] + base_url", false, false, `{"output":"qhttp://x"}`, Ended, ""},
		"nothing": {"pass", false, false, `{"output":null}`, Ended, ""},
		"a reward": {"return {'reward': 0.5, 'length': " +
			"3}", true, false, `{"reward":0.5,"metrics":{"length":3}}`, Ended, ""},
		"a number":     {"return 3", false, false, "", Failed, "must return a text"},
		"no reward":    {"return 'x'", true, false, "", Failed, "must be a number"},
		"an exception": {"raise KeyError('x')", false, false, "", Failed, "user_code.py:3: KeyError"},
		"an end":       {"import os; os._exit(1)", false, false, "", Lost, ""},
		"an own end":   {"import os; os._exit(1)", false, true, "", Failed, "exit code 1"},
		"a key": {"import os; return " +
			"os.environ['OPENAI_API_KEY']", false, false, `{"output":"in-the-base-url"}`, Ended, ""},
	}
	r := startRunner(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			params, err := json.Marshal(map[string]any{"task": map[string]string{"prompt": "q"}, "base_url": "http://x",
				"rewards": tc.rewards})
			if err != nil {
				t.Fatal(err)
			}
			a := r.agent(t, AgentOptions{Code: "\nasync def agent(task, base_url):\n    " + tc.code})
			value, end, err := a.Play(t.Context(), Episode{Params: params, Seed: 7, Alone: tc.alone})
			if string(value) != tc.want || end != tc.end || (err == nil) != (tc.end == Ended) {
				t.Errorf("got %s, %v, %v; want %s, %v", value, end, err, tc.want, tc.end)
			}
			if err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("error is %q, want %q", err, tc.problem)
			}
		})
	}
	for _, code := range []string{"def agent(task, base_url): pass", "async def agent(task): pass", "x = 1"} {
		if err := r.agent(t, AgentOptions{Code: code}).Check(t.Context()); err == nil {
			t.Errorf("%q is an agent", code)
		}
	}
}

// TestAgentsThatAreCommands plays a command, whose descendants end with it.
func TestAgentsThatAreCommands(t *testing.T) {
	r := startRunner(t)
	a := r.agent(t, AgentOptions{Command: []string{"sh", "-c", `cat "$TASK_FILE"; sleep 1000 & exit 4`}})
	params, err := json.Marshal(spawn.Params{Files: map[string]string{"task.json": "{}"},
		Env: map[string]string{"TASK_FILE": "$(DIR)/task.json"}})
	if err != nil {
		t.Fatal(err)
	}
	value, end, err := a.Play(t.Context(), Episode{Params: params, Seed: 7})
	if err != nil || end != Ended {
		t.Fatalf("Play: %v, %v", end, err)
	}
	var left spawn.Result
	if err := json.Unmarshal(value, &left); err != nil || left.Output != "{}" || left.Exit != 4 {
		t.Errorf("got %s (%v), want the file and the exit code", value, err)
	}
	if err := r.agent(t, AgentOptions{Command: []string{"no-such-program"}}).Check(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("Check of a command that does not exist: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, end, err := a.Play(ctx, Episode{Params: params, Seed: 7}); end != Lost || err == nil {
		t.Errorf("Play of a call that was given up: %v, %v", end, err)
	}
}

// TestCommandsInPythonAreForked checks that the episodes of a command share its imports if its variables are known.
func TestCommandsInPythonAreForked(t *testing.T) {
	r := startRunner(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"shared.py": "import os\nIMPORTED_BY = os.getpid()\n",
		"agent.py":  "import shared, os\nprint(shared.IMPORTED_BY != os.getpid(), os.environ['TASK_FILE'])\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	params, err := json.Marshal(spawn.Params{Env: map[string]string{"TASK_FILE": "a task"}})
	if err != nil {
		t.Fatal(err)
	}
	for want, variables := range map[string][]string{"True a task\n": {"TASK_FILE"}, "False a task\n": nil} {
		a := r.agent(t, AgentOptions{Command: []string{"python3", filepath.Join(dir, "agent.py")}, Variables: variables})
		for range 2 {
			var left spawn.Result
			value, end, err := a.Play(t.Context(), Episode{Params: params, Seed: 7})
			if err != nil || end != Ended || json.Unmarshal(value, &left) != nil || left.Output != want {
				t.Errorf("with the variables %v: got %s, %v, %v; want %q", variables, value, end, err, want)
			}
		}
	}
}

// TestAgentsNeedARunnerWithGateways checks that no agent starts in a pod with the runner of an earlier release.
func TestAgentsNeedARunnerWithGateways(t *testing.T) {
	credentials, err := contract.DeriveProgramCredentials("the run's", "0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(credentials.Certificate, credentials.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = conn.Write([]byte(`{"type":"hello","version":1,"runner":"0.1.0"}` + "\n"))
		}
	}()
	host := &Host{Pods: &Pods{Name: "pods", Now: time.Now, TLS: credentials.ClientTLS, Token: credentials.Token,
		LookUp: func(context.Context, string) ([]string, error) { return []string{listener.Addr().String()}, nil }}}
	t.Cleanup(host.Close)
	a, err := NewAgent(host, AgentOptions{Command: []string{"agent"}, Processes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "0.1.0") {
		t.Errorf("Check = %v, want an error with the runner's version", err)
	}
}

// TestNetworkOfAgents checks that an agent reaches the address that it is given, and no other port of the same machine.
func TestNetworkOfAgents(t *testing.T) {
	r := startRunner(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("hi"))
	}))
	t.Cleanup(web.Close)
	code := `
import urllib.request
async def agent(task, base_url):
    return urllib.request.urlopen(base_url).read().decode()`
	params, err := json.Marshal(map[string]any{"task": map[string]string{}, "base_url": web.URL})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		network *protocol.Network
		end     Ending
	}{
		"the gateway": {&protocol.Network{Connect: []string{web.Listener.Addr().String()}}, Ended},
		"another":     {&protocol.Network{Connect: []string{"127.0.0.1:1"}}, Failed},
		"open":        {nil, Ended},
	} {
		a := r.agent(t, AgentOptions{Code: code, Network: tc.network})
		value, end, err := a.Play(t.Context(), Episode{Params: params, Seed: 7})
		if end != tc.end || end == Ended && string(value) != `{"output":"hi"}` ||
			end == Failed && !strings.Contains(err.Error(), "Permission denied") {
			t.Errorf("%s: got %s, %v, %v; want %v", name, value, end, err, tc.end)
		}
	}
}
