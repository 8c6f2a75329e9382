// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/process"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// rawProgram implements the protocol itself, and performs the action that a call's method names. It answers no cancel.
const rawProgram = `
import json, os, sys, time, signal
hello = json.loads(sys.stdin.readline())
def write(**message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
def daemon():
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for fd in (0, 1, 2):
            os.close(fd)
        while True:
            time.sleep(1)
    os.waitpid(pid, 0)
def restless_daemon():
    pid = os.fork()
    if pid == 0:
        while True:
            time.sleep(0.01)
            if os.fork():
                os._exit(0)
            os.setsid()
    os.waitpid(pid, 0)
identity = "%d-%s" % (os.getpid(), os.urandom(4).hex())  # in namespaces of their own all are process 1
state = {}
write(type="ready", version=hello["versions"][-1], future="ignored")
for line in sys.stdin:
    m = json.loads(line)
    method, value = m.get("method"), None
    if m["type"] == "open":
        state[m["session"]] = {"scratch": m["scratch"], "seed": m.get("seed", 0)}
    elif m["type"] == "close":
        state.pop(m["session"], None)
    elif method == "state":
        value = state.get(m.get("session"))
    elif method == "write":
        open(os.path.join(m["scratch"], "file"), "w").write("text")
    elif method == "list":
        value = os.listdir(m["scratch"])
    elif method == "pid":
        value = identity
    elif method == "sleep":
        time.sleep(1000)
    elif method == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        globals()[method]()
    write(type="result", id=m["id"], value=value)
`

func rawSpec(processes int) protocol.Spec {
	return protocol.Spec{
		Command: []string{python3, "program.py"}, Files: map[string]string{"program.py": rawProgram},
		Processes: processes, Limits: protocol.Limits{Processes: 100, StartSeconds: 30},
	}
}

func startRaw(t *testing.T, c *client.Client, processes int) *client.Program {
	t.Helper()
	needPython(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := c.Start(ctx, "raw", rawSpec(processes))
	if err != nil {
		t.Fatal(describe(err))
	}
	return p
}

// do calls a method and returns the value, or the code of the error.
func do(t *testing.T, p *client.Program, session, method string) string {
	t.Helper()
	result, err := callWith(t, p.Try, client.Call{Session: session, Method: method})
	var failure *client.Failure
	if errors.As(err, &failure) {
		return string(failure.Err.Code)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Value)
}

// below counts the live processes below the runner.
func (h *host) below(t *testing.T) int {
	t.Helper()
	table, err := process.ReadTable()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range table.Tree(h.process.Pid) {
		if p.PID != h.process.Pid && !p.Zombie {
			n++
		}
	}
	return n
}

func (h *host) scratchFiles(t *testing.T) []string {
	t.Helper()
	var names []string
	_ = filepath.WalkDir(filepath.Join(h.dir, "scratch"), func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return nil
	})
	return names[1:]
}

func TestSessionKeepsItsProcessAndDirectory(t *testing.T) {
	h := startRunner(t)
	p := startRaw(t, h.dial(t), 2)
	for _, name := range []string{"a", "b"} {
		if _, err := p.Open(t.Context(), name, 7); err != nil {
			t.Fatal(describe(err))
		}
	}
	if first, second := do(t, p, "a", "pid"), do(t, p, "b", "pid"); first == second {
		t.Errorf("both sessions have process %s, want one each", first)
	}
	if got := do(t, p, "a", "write") + do(t, p, "a", "list") + do(t, p, "b", "list"); got != `null["file"][]` {
		t.Errorf("got %s, want the file in the directory of its session alone", got)
	}
	var state struct{ Seed int }
	if err := json.Unmarshal([]byte(do(t, p, "a", "state")), &state); err != nil || state.Seed != 7 {
		t.Errorf("got seed %d and %v, want 7", state.Seed, err)
	}
	if _, err := p.Open(t.Context(), "a", 0); err == nil {
		t.Error("opening a session twice: got no error")
	}
	for _, name := range []string{"a", "b"} {
		if _, err := p.CloseSession(t.Context(), name); err != nil {
			t.Error(describe(err))
		}
	}
	if got := do(t, p, "a", "list"); got != string(protocol.CodeUnknownSession) {
		t.Errorf("after the close: got %s, want %s", got, protocol.CodeUnknownSession)
	}
	eventually(t, "the directories of the sessions are wiped", func() bool {
		return !strings.Contains(strings.Join(h.scratchFiles(t), " "), "/file")
	})
}

func TestSessionIsLostWithItsProcess(t *testing.T) {
	h := startRunner(t)
	p := startRaw(t, h.dial(t), 1)
	if _, err := p.Open(t.Context(), "a", 0); err != nil {
		t.Fatal(describe(err))
	}
	if got := do(t, p, "a", "die"); got != string(protocol.CodeDied) {
		t.Errorf("the call that ends the process: got %s, want %s", got, protocol.CodeDied)
	}
	if got := do(t, p, "a", "pid"); got != string(protocol.CodeSessionLost) {
		t.Errorf("the next call of the session: got %s, want %s", got, protocol.CodeSessionLost)
	}
	if _, err := p.CloseSession(t.Context(), "a"); err != nil {
		t.Errorf("closing a lost session: %s, want no error", describe(err))
	}
	if _, err := p.Open(t.Context(), "a", 0); err != nil {
		t.Errorf("the same name again: %s, want no error", describe(err))
	}
}

func TestDaemonsEndWithTheirSession(t *testing.T) {
	for _, kind := range []string{"daemon", "restless_daemon"} {
		t.Run(kind, func(t *testing.T) {
			h := startRunner(t)
			p := startRaw(t, h.dial(t), 1)
			if _, err := p.Open(t.Context(), "a", 0); err != nil {
				t.Fatal(describe(err))
			}
			pid := do(t, p, "a", "pid")
			if got := do(t, p, "a", kind); got != "null" {
				t.Fatal(got)
			}
			eventually(t, "the daemon runs", func() bool { return h.below(t) >= 2 })
			result, err := p.CloseSession(t.Context(), "a")
			if err != nil {
				t.Fatal(describe(err))
			}
			// One look at the process table may miss a daemon that always moves to another process. It is then killed after the
			// next look.
			if kind == "daemon" && result.Evidence.Left == 0 {
				t.Errorf("processes that were left: got %+v, want the daemon", result.Evidence)
			}
			eventually(t, "the daemon has ended", func() bool { return h.below(t) == 1 })
			if again := do(t, p, "", "pid"); again != pid {
				t.Errorf("got process %s after %s, want the same process", again, pid)
			}
		})
	}
}

func TestDaemonsOfSingleCallsEnd(t *testing.T) {
	h := startRunner(t)
	p := startRaw(t, h.dial(t), 1)
	for range 3 {
		if got := do(t, p, "", "daemon"); got != "null" {
			t.Fatal(got)
		}
	}
	eventually(t, "the daemons have ended", func() bool { return h.below(t) == 1 })
	if got := do(t, p, "", "list"); got != "[]" {
		t.Errorf("the next call: got %s, want an empty directory", got)
	}
}

// TestManyDaemonsDoNotFillTheTree checks that zombies that a program has not waited for do not add up to its limit of
// processes.
func TestManyDaemonsDoNotFillTheTree(t *testing.T) {
	h := startRunner(t)
	p := startRaw(t, h.dial(t), 1)
	pid := do(t, p, "", "pid")
	for i := 0; i < 40; i++ {
		if got := do(t, p, "", "daemon"); got != "null" {
			t.Fatalf("call %d: %s", i, got)
		}
		eventually(t, "the daemon has ended", func() bool { return h.below(t) == 1 })
	}
	if again := do(t, p, "", "pid"); again == pid {
		t.Errorf("got process %s still, want another in its place", again)
	}
}

func TestCallHasAnEmptyDirectory(t *testing.T) {
	h := startRunner(t)
	p := startRaw(t, h.dial(t), 1)
	for range 3 {
		if got := do(t, p, "", "write") + do(t, p, "", "list"); got != "null[]" {
			t.Errorf("got %s, want nothing of the call before", got)
		}
	}
}

// TestProcessesAreStartedAgain ends the only process of a program more often than the runner restarts a process at
// once.
func TestProcessesAreStartedAgain(t *testing.T) {
	h := startRunner(t)
	p := startRaw(t, h.dial(t), 1)
	for i := range 5 {
		if got := do(t, p, "", "die"); got != string(protocol.CodeDied) {
			t.Fatalf("call %d: got %s, want %s", i, got, protocol.CodeDied)
		}
	}
	if got := do(t, p, "", "list"); got != "[]" {
		t.Errorf("the next call: got %s, want an answer", got)
	}
}

func TestCancelledCallGivesItsProcessBack(t *testing.T) {
	h := startRunner(t)
	p := startRaw(t, h.dial(t), 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := p.Try(ctx, client.Call{Method: "sleep"})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if got := do(t, p, "", "list"); got != "[]" {
		t.Errorf("the next call: got %s, want an answer", got)
	}
}

// TestLostConnectionEndsItsPrograms checks that nothing is left of the programs of a caller that vanishes, while the
// programs of others work on.
func TestLostConnectionEndsItsPrograms(t *testing.T) {
	h := startRunner(t)
	stays := startRaw(t, h.dial(t), 1)
	pid := do(t, stays, "", "pid")
	before := len(h.scratchFiles(t))
	lost := h.dial(t)
	p := startRaw(t, lost, 3)
	if _, err := p.Open(t.Context(), "a", 0); err != nil {
		t.Fatal(describe(err))
	}
	do(t, p, "a", "daemon")
	do(t, p, "a", "write")
	failed := make(chan error, 1)
	go func() {
		_, err := p.Try(t.Context(), client.Call{Method: "sleep"})
		failed <- err
	}()
	eventually(t, "all processes run", func() bool { return h.below(t) == 5 })
	lost.Close()
	if err := <-failed; !errors.Is(err, client.ErrLost) || client.After(err, false) != client.Unavailable {
		t.Errorf("the open call: got %v, want %v", err, client.ErrLost)
	}
	eventually(t, "the processes have ended", func() bool { return h.below(t) == 1 })
	eventually(t, "the directories are wiped", func() bool { return len(h.scratchFiles(t)) == before })
	if again := do(t, stays, "", "pid"); again != pid {
		t.Errorf("another caller's program: got process %s, want %s", again, pid)
	}
}

// TestSignalToEndWaitsForTheCaller checks that a program, which may send SIGTERM, cannot end the runner while a caller
// is there.
func TestSignalToEndWaitsForTheCaller(t *testing.T) {
	h := startRunner(t)
	c := h.dial(t)
	p := startRaw(t, c, 1)
	if err := h.process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if got := do(t, p, "", "list"); got != "[]" {
			t.Fatalf("a call after SIGTERM: got %s, want an answer", got)
		}
	}
	c.Close()
	<-h.ended
}

func TestRemovedSocketIsMadeAgain(t *testing.T) {
	h := startRunner(t)
	p := startRaw(t, h.dial(t), 1)
	if err := os.Remove(h.socket()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.socket(), nil, 0o600); err != nil { // takes the place of the socket
		t.Fatal(err)
	}
	eventually(t, "the socket is there again", func() bool {
		c, err := client.Dial(t.Context(), h.socket())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	if got := do(t, p, "", "list"); got != "[]" {
		t.Errorf("the connection from before: got %s, want an answer", got)
	}
}

const asyncCode = `
import asyncio, os

async def episode(row, policy, seed):
    if row.get("die"):
        await policy.chat("before", key=str(row["i"]))
        os._exit(1)
    replies = await asyncio.gather(*[policy.chat("question %d" % i, key=str(i)) for i in range(row.get("n", 1))])
    again = await policy.chat(replies[0].messages, key="0")
    if row.get("wait"):
        await asyncio.sleep(1000)
    return {"reward": len(replies), "rewards": {"0": 1}, "length": len(again.text), "seed": seed}
`
