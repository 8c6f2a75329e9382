// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/python"
)

// credentialsOf derives the credentials of a program from the token of the run's workers.
func credentialsOf(t testing.TB, token string) contract.ProgramCredentials {
	t.Helper()
	credentials, err := contract.DeriveProgramCredentials(token, "0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	return credentials
}

// startRemote starts a runner that serves callers over TCP, and returns the address for callers.
func startRemote(t testing.TB, arguments ...string) (*host, client.Address) {
	t.Helper()
	credentials := credentialsOf(t, "the run's")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	t.Setenv(protocol.CertificateVariable, string(credentials.Certificate))
	t.Setenv(protocol.KeyVariable, string(credentials.PrivateKey))
	t.Setenv(protocol.TokenVariable, credentials.TokenSHA256())
	arguments = append(arguments, "--listen", address)
	h := tryRunner(t, true, "", arguments...)
	if h == nil {
		h = tryRunner(t, false, "", arguments...)
	}
	if h == nil {
		t.Fatal("the runner does not start")
	}
	return h, addressWith(t, address, credentials)
}

func addressWith(t testing.TB, address string, credentials contract.ProgramCredentials) client.Address {
	t.Helper()
	config, err := credentials.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	return client.Address{TCP: address, TLS: config, Token: credentials.Token}
}

func dialAt(t testing.TB, at client.Address) *client.Client {
	t.Helper()
	c, err := client.DialAddress(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestRemoteRefusesOthers connects without TLS, without a token, with another token, and as a worker of another run.
func TestRemoteRefusesOthers(t *testing.T) {
	_, at := startRemote(t)
	dialAt(t, at)

	conn, err := net.Dial("tcp", at.TCP)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Write([]byte(`{"type":"hello","versions":[1],"token":"` + at.Token + "\"}\n")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4096)
	for n, err := conn.Read(answer); err == nil; n, err = conn.Read(answer) {
		if strings.Contains(string(answer[:n]), `"hello"`) {
			t.Errorf("without TLS: the runner answers %q", answer[:n])
		}
	}
	for name, token := range map[string]string{
		"no token": "", "another token": strings.Repeat("0", 64), "the digest of the token": credentialsOf(t,
			"the run's").TokenSHA256(), "a token of another run": credentialsOf(t, "another run's").Token,
	} {
		wrong := at
		wrong.Token = token
		c, err := client.DialAddress(t.Context(), wrong)
		var refused *protocol.Error
		if !errors.As(err, &refused) || refused.Code != protocol.CodeUnauthorized {
			t.Errorf("%s: Dial = %v, %v, want %s", name, c, err, protocol.CodeUnauthorized)
		}
	}
	other := addressWith(t, at.TCP, credentialsOf(t, "another run's"))
	if c, err := client.DialAddress(t.Context(), other); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a worker of another run trusts the runner: Dial = %v, %v", c, err)
	}
	at.Token = strings.Repeat("x", 1<<20)
	if c, err := client.DialAddress(t.Context(), at); err == nil {
		t.Errorf("a hello of a megabyte is read: Dial = %v", c)
	}
}

// TestRemoteKeepsItsSecrets runs a program that looks for the runner's key and token.
func TestRemoteKeepsItsSecrets(t *testing.T) {
	needPython(t)
	h, at := startRemote(t)
	p := start(t, dialAt(t, at), "reward", python.Function{Code: `
import os

def reward(row, reply):
    found = [name for name in os.environ if name.startswith("RUNNER_TLS") or name.startswith("RUNNER_TOKEN")]
    try:
        found.append(open("/proc/%d/environ" % os.getppid(), "rb").read().decode())
    except OSError:
        pass
    return {"reward": float(any("PRIVATE KEY" in os.environ.get(f, f) or "RUNNER_T" in f for f in found))}
`}, protocol.Spec{InheritEnv: true})
	result, err := call(t, p, map[string]any{}, "")
	if err != nil {
		t.Fatal(describe(err))
	}
	if h.first && !strings.Contains(string(result.Value), `"reward":0`) {
		t.Errorf("a program finds the runner's secrets: %s", result.Value)
	}
}

// processes is a reward that reports the process in which it is called.
const processes = `
import os
PROCESS = 1 + int.from_bytes(os.urandom(4), "big")  # in namespaces of their own all are process 1

async def reward(row, reply):
    return {"reward": 1.0, "process": PROCESS}
`

// TestRemoteCallersShareAProgram starts equal programs for two callers, and another program. The equal ones are one
// program. A caller that leaves does not end a program that another caller uses.
func TestRemoteCallersShareAProgram(t *testing.T) {
	needPython(t)
	_, at := startRemote(t)
	one, two := dialAt(t, at), dialAt(t, at)
	processOf := func(p *client.Program) float64 {
		t.Helper()
		result, err := call(t, p, map[string]any{}, "")
		if err != nil {
			t.Fatal(describe(err))
		}
		var value struct{ Metrics map[string]float64 }
		if err := json.Unmarshal(result.Value, &value); err != nil {
			t.Fatal(err)
		}
		return value.Metrics["process"]
	}
	spec := protocol.Spec{Processes: 1, Concurrency: 8}
	first := start(t, one, "a", python.Function{Code: processes}, spec)
	second := start(t, two, "b", python.Function{Code: processes}, spec)
	other := start(t, two, "c", python.Function{Code: processes + "\n"}, spec)
	if processOf(first) == 0 || processOf(first) != processOf(second) || processOf(first) == processOf(other) {
		t.Errorf("processes %v, %v, %v, want the same, the same, another one", processOf(first), processOf(second),
			processOf(other))
	}
	if string(first.Value) == "" || string(first.Value) != string(second.Value) {
		t.Errorf("the program says %s to one caller and %s to the other", first.Value, second.Value)
	}
	before := processOf(second)
	one.Close()
	if after := processOf(second); after != before {
		t.Errorf("after the other caller has left: process %v, want %v", after, before)
	}
	if err := second.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := call(t, second, map[string]any{}, ""); !client.IsUnknown(err) {
		t.Errorf("after its stop: %v", err)
	}
	processOf(other)
}

// TestRemoteCallersAreApart runs two callers whose programs and calls have the same names and ids. Each caller gets
// its own questions and results.
func TestRemoteCallersAreApart(t *testing.T) {
	needPython(t)
	_, at := startRemote(t)
	const code = `
async def episode(row, policy, seed):
    reply = await policy.chat([{"role": "user", "content": row["who"]}])
    return {"reward": 1.0 if reply.text == row["who"] else 0.0}
`
	ends := make(chan error, 2)
	for _, who := range []string{"one", "two"} {
		p := start(t, dialAt(t, at), "episodes", python.Function{Code: code, Entry: "episode"},
			protocol.Spec{Processes: 1, Concurrency: 8})
		go func() {
			for range 20 {
				ask := func(_ context.Context, q client.Question) (json.RawMessage, error) {
					if !strings.Contains(string(q.Params), `"`+who+`"`) {
						return nil, errors.New("a question of another caller")
					}
					return json.RawMessage(`{"text":"` + who + `","messages":[],"tool_calls":[],"truncated":false}`), nil
				}
				result, err := p.Call(t.Context(), client.Call{Method: "episode", Params: json.RawMessage(`{"row":{"who":"` + who +
					`"}}`), Ask: ask})
				if err == nil && !strings.Contains(string(result.Value), `"reward":1`) {
					err = errors.New("the reply of another caller: " + string(result.Value))
				}
				if err != nil {
					ends <- err
					return
				}
			}
			ends <- nil
		}()
	}
	for range 2 {
		if err := <-ends; err != nil {
			t.Error(describe(err))
		}
	}
}

// TestRemoteCallerThatLeaves ends a caller while its call runs, and expects the process to be free for another caller.
func TestRemoteCallerThatLeaves(t *testing.T) {
	needPython(t)
	_, at := startRemote(t)
	const code = `
import time

def reward(row, reply):
    time.sleep(row["seconds"])
    return 1.0
`
	one, two := dialAt(t, at), dialAt(t, at)
	spec := protocol.Spec{Processes: 1, Limits: protocol.Limits{CallSeconds: 600}}
	hangs := start(t, one, "a", python.Function{Code: code}, spec)
	p := start(t, two, "a", python.Function{Code: code}, spec)
	go func() { _, _ = call(t, hangs, map[string]any{"seconds": 600}, "") }()
	time.Sleep(300 * time.Millisecond)
	one.Close()
	began := time.Now()
	if _, err := call(t, p, map[string]any{"seconds": 0}, ""); err != nil {
		t.Error(describe(err))
	}
	if took := time.Since(began); took > 300*time.Second {
		t.Errorf("the call of the other caller took %v", took)
	}
}
