// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/python"
)

// initVariable names the variable that makes the test's program process 1 of a container: the program mounts /proc,
// becomes an ordinary user, and then becomes the runner.
const initVariable = "RUNNER_TEST_INIT"

// programVariable names the variable with the path of a runner that is built already: there may be no Go where the
// tests run.
const programVariable = "RUNNER_TEST_PROGRAM"

// levelVariable names the variable with the isolation that the machine must have. If it is set, tests fail instead of
// being skipped where the machine cannot make namespaces.
const levelVariable = "RUNNER_TEST_LEVEL"

// patience is how long a test waits for a state. No result depends on it.
const patience = 5 * time.Minute

// buildFlags and buildEnv say how the runner is built: as in the image, or with the race detector.
var (
	buildFlags []string
	buildEnv   = "CGO_ENABLED=0"
)

var (
	programs string // the directory with the runner's program
	python3  string
)

func TestMain(m *testing.M) {
	if os.Getenv(initVariable) != "" {
		fmt.Fprintln(os.Stderr, "becoming the runner:", becomeRunner())
		os.Exit(1)
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	var err error
	if programs, err = os.MkdirTemp("", "runner"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(programs)
	build := exec.Command("go", slices.Concat([]string{"build"}, buildFlags,
		[]string{"-o", filepath.Join(programs, "runner"), "."})...)
	build.Env = append(os.Environ(), buildEnv)
	if built := os.Getenv(programVariable); built != "" {
		build = exec.Command("cp", built, filepath.Join(programs, "runner"))
	}
	if text, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the runner: %v\n%s", err, text)
		return 1
	}
	if err := os.Chmod(programs, 0o755); err != nil {
		panic(err)
	}
	python3 = findPython()
	return m.Run()
}

// findPython prefers an interpreter that every user can run.
func findPython() string {
	for _, name := range []string{"/usr/bin/python3", "/usr/local/bin/python3", "python3"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func needPython(t testing.TB) {
	t.Helper()
	if python3 == "" {
		t.Skip("there is no python3 here: no program of a user can run")
	}
}

// maxTasks protects the machine from the tests: the user of a runner has at most this number of threads and processes.
// runners counts the runners. Each of them has a user of its own: a fork bomb in one must not keep another from
// forking.
const maxTasks = 200

var runners atomic.Int64

// becomeRunner turns a process in new namespaces into the runner. It returns only if this fails.
func becomeRunner() error {
	runtime.LockOSThread()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	guard := unix.Rlimit{Cur: maxTasks, Max: maxTasks}
	if err := unix.Prlimit(0, unix.RLIMIT_NPROC, &guard, nil); err != nil {
		return err
	}
	user, err := strconv.Atoi(os.Getenv(initVariable))
	if err != nil {
		return err
	}
	if user != os.Getuid() {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(user), syscall.Setuid(user)); err != nil {
			return err
		}
	}
	// The runner is killed when the test's process ends, however that ends. The change of the user has reset this
	// setting.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	if os.Getenv(maskVariable) != "" {
		if err := hideLandlock(); err != nil {
			return err
		}
	}
	return syscall.Exec(os.Args[1], os.Args[1:], append(remoteEnv(), "RUNNER_SECRET=of-process-1"))
}

// remoteEnv returns the variables of a runner that serves callers over TCP.
func remoteEnv() []string {
	var env []string
	for _, name := range []string{protocol.CertificateVariable, protocol.KeyVariable, protocol.TokenVariable} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// host is a runner that the test has started.
type host struct {
	dir     string
	process *os.Process
	first   bool // it is process 1
	user    int
	log     *logBuffer
	ended   chan struct{}
}

type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// startRunner starts a runner as process 1 of namespaces of its own if the machine lets the test make them, and
// otherwise as an ordinary process. The runner and all its descendants are killed when the test ends.
func startRunner(t testing.TB) *host {
	t.Helper()
	if h := tryRunner(t, true, ""); h != nil {
		return h
	}
	if os.Getenv(levelVariable) != "" {
		t.Fatal("no namespaces can be made here")
	}
	t.Log("no namespaces can be made here: the runner is not process 1, and what only process 1 withstands is not tested")
	h := tryRunner(t, false, "")
	if h == nil {
		t.Fatal("the runner does not start")
	}
	return h
}

// tryRunner starts a runner with further flags, and returns nil if this is not possible. With a mask, the kernel seems
// to have no Landlock.
func tryRunner(t testing.TB, first bool, mask string, flags ...string) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "runner-test") // short: the path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	h := &host{dir: dir, first: first, user: os.Getuid(), log: &logBuffer{}, ended: make(chan struct{})}
	arguments := []string{filepath.Join(programs, "runner"), "--socket", h.socket(), "--scratch",
		filepath.Join(dir, "scratch")}
	arguments = append(arguments, flags...)
	command := exec.Command(arguments[0], arguments[1:]...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if first {
		command = exec.Command("/proc/self/exe", arguments...)
		// Pdeathsig is set later: with it the child would kill itself, because after the clone it sees another number of its
		// parent, also in gVisor.
		command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
		if h.user == 0 {
			h.user = 61000 + (64*os.Getpid()+int(runners.Add(1)))%4000 // each user has a count of tasks of its own
		} else {
			command.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
			command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: h.user, HostID: h.user, Size: 1}}
			command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
			command.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
		}
		command.Env = append(remoteEnv(), initVariable+"="+strconv.Itoa(h.user), maskVariable+"="+mask)
		if err := os.Chown(dir, h.user, -1); err != nil {
			t.Fatal(err)
		}
	}
	command.Stderr = h.log
	if err := command.Start(); err != nil {
		os.RemoveAll(dir)
		return nil
	}
	h.process = command.Process
	go func() {
		_ = command.Wait()
		close(h.ended)
	}()
	for {
		if info, err := os.Lstat(h.socket()); err == nil && info.Mode().Type() == os.ModeSocket {
			break
		}
		select {
		case <-h.ended:
			t.Logf("the runner has ended: %s", h.log)
			os.RemoveAll(dir)
			return nil
		case <-time.After(5 * time.Millisecond):
		}
	}
	t.Cleanup(func() {
		_ = h.process.Kill()
		<-h.ended
		_ = os.RemoveAll(dir)
		for _, text := range []string{"DATA RACE", "could not be wiped", "cannot be"} {
			if strings.Contains(h.log.String(), text) {
				t.Errorf("the runner's log has %q", text)
			}
		}
		if t.Failed() {
			t.Logf("the runner's log: %s", h.log)
		}
	})
	return h
}

func (h *host) socket() string { return filepath.Join(h.dir, "runner.sock") }

func (h *host) dial(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), h.socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// start starts a program of user code. The limits are low, so that a hostile program is stopped early.
func start(t testing.TB, c *client.Client, name string, f python.Function, base protocol.Spec) *client.Program {
	t.Helper()
	p, err := tryStart(t, c, name, f, base)
	if err != nil {
		t.Fatalf("starting %s: %v", name, describe(err))
	}
	return p
}

func tryStart(t testing.TB, c *client.Client, name string, f python.Function,
	base protocol.Spec) (*client.Program, error) {
	t.Helper()
	needPython(t)
	spec, err := python.Spec(python3, f, base)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return c.Start(ctx, name, spec)
}

// call calls a function with a row.
func call(t testing.TB, p *client.Program, row any, reply string) (client.Result, error) {
	t.Helper()
	return callWith(t, p.Try, client.Call{Method: "reward", Params: params(t, row, reply)})
}

func callWith(t testing.TB, try func(context.Context, client.Call) (client.Result, error),
	c client.Call) (client.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := try(ctx, c)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the call has not ended within %s", patience)
	}
	return result, err
}

func params(t testing.TB, row any, reply string) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(map[string]any{"row": row, "reply": map[string]any{"text": reply}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// describe returns an error with its evidence.
func describe(err error) string {
	var failure *client.Failure
	if !errors.As(err, &failure) {
		return fmt.Sprint(err)
	}
	text, _ := json.Marshal(failure)
	return string(text)
}

// eventually waits for a state.
func eventually(t testing.TB, what string, state func() bool) {
	t.Helper()
	for begin := time.Now(); !state(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}
