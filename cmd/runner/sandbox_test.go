// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// sandboxLimits stop a hostile program before it slows the machine down. A program may have to wait long for two
// seconds of the processor, beside other processes.
var sandboxLimits = protocol.Limits{
	CallSeconds: 300, CPUSeconds: 2, MemoryBytes: 200 << 20, AddressSpaceBytes: 190 << 20, Processes: 12,
	OutputBytes: 1 << 20, OpenFiles: 64, FileBytes: 8 << 20, ScratchBytes: 24 << 20, ScratchFiles: 500,
}

// inSandboxes runs a test with the isolation of the machine, and as on a machine without Landlock.
func inSandboxes(t *testing.T, test func(t *testing.T, h *host, c *client.Client)) {
	needPython(t)
	for name, mask := range map[string]string{"as it is": "", "without Landlock": "1"} {
		t.Run(name, func(t *testing.T) {
			h := tryRunner(t, true, mask)
			if h == nil && os.Getenv(levelVariable) != "" {
				t.Fatal("no namespaces can be made here")
			}
			if h == nil {
				t.Skip("no namespaces can be made here: a sandbox is tested as process 1 alone")
			}
			c := h.dial(t)
			if c.Isolation.Level == isolation.Process && mask == "" {
				t.Skip("the kernel has no Landlock: the other case is this one")
			}
			if c.Isolation.Level == isolation.RuntimeClass && mask != "" {
				t.Skip("gVisor has no Landlock: the other case is this one")
			}
			if c.Isolation.Landlock > 0 && mask != "" {
				t.Fatalf("the mask does not work: Landlock has version %d", c.Isolation.Landlock)
			}
			test(t, h, c)
		})
	}
}

func startPlain(t *testing.T, c *client.Client, name string, limits protocol.Limits,
	minimum isolation.Level) *client.Program {
	t.Helper()
	p, err := c.Start(t.Context(), name, plain(limits, minimum))
	if err != nil {
		t.Fatal(describe(err))
	}
	return p
}

func plain(limits protocol.Limits, minimum isolation.Level) protocol.Spec {
	return protocol.Spec{
		Command: []string{python3, "program.py"}, Env: map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"},
		Processes: 2, Limits: limits, Sandbox: &protocol.Sandbox{Minimum: minimum}, Plain: true,
	}
}

// runPlain runs the text of a program.
func runPlain(t testing.TB, p *client.Program, code, stdin string) (protocol.Outcome, protocol.Evidence) {
	t.Helper()
	params, err := json.Marshal(protocol.Run{Files: map[string]string{"program.py": code}, Stdin: stdin})
	if err != nil {
		t.Fatal(err)
	}
	result, err := callWith(t, p.Try, client.Call{Method: protocol.MethodRun, Params: params})
	if err != nil {
		t.Fatalf("the run has failed: %s", describe(err))
	}
	var outcome protocol.Outcome
	if err := json.Unmarshal(result.Value, &outcome); err != nil {
		t.Fatal(err)
	}
	return outcome, result.Evidence
}

// hostilePrograms are programs that a policy could write. Each ends as expected, by itself or by a limit.
var hostilePrograms = map[string]struct {
	code   string
	stdout string // without the line break
	limit  string
	exit   int
	stderr string
}{
	"a right program": {code: "print(int(input()) + 1)", stdout: "42"},
	"a syntax error":  {code: "def", exit: 1, stderr: "SyntaxError"},
	"an exception":    {code: "raise ValueError('no')", exit: 1, stderr: "ValueError: no"},
	"os._exit":        {code: "import os; os._exit(7)", exit: 7},
	"a fork bomb": {code: `
import os
while True:
    try:
        os.fork()
    except OSError:
        pass`, limit: "processes"},
	"a memory bomb": {code: "x = [bytearray(1 << 20) for _ in range(1 << 20)]", exit: 1, stderr: "MemoryError"},
	"memory of a tree": {code: `
import os, time
for _ in range(8):
    if os.fork() == 0:
        block = bytearray(60 << 20)
        for i in range(0, len(block), 4096):
            block[i] = 1
        break
time.sleep(1000)`, limit: "memoryBytes"},
	"an endless loop":  {code: "while True: pass", limit: "cpuSeconds"},
	"100 MB of output": {code: "for _ in range(100): print('x' * (1 << 20))", limit: "outputBytes"},
	"100 MB of errors": {code: "import sys\nfor _ in range(100): print('x' * (1 << 20), file=sys.stderr)",
		limit: "outputBytes"},
	"a file without end": {code: "f = open('f', 'wb')\nwhile True: f.write(b'x' * (1 << 20))", exit: 1,
		stderr: "File too large"},
	"a filled scratch directory": {code: `
import time
for i in range(1000):
    with open("f%d" % i, "wb") as f:
        f.write(b"x" * (4 << 20))
    time.sleep(0.02)`, limit: "scratchBytes"},
	"10,000 open files": {code: "files = [open('/dev/null') for _ in range(10000)]", exit: 1,
		stderr: "Too many open files"},
	"killing its parent": {code: `
import os
for pid in {os.getppid(), *range(1, 100)} - {os.getpid(), 0}:
    for signal in (9, 19, 15):
        try:
            os.kill(pid, signal)
        except OSError:
            pass
print("done")`, stdout: "done"},
	"a daemon": {code: `
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(1000)
print("done")`, stdout: "done"},
	"sockets of any family": {code: `
import socket, errno
for family in range(1, 46):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind)
        except OSError as e:
            if e.errno == errno.EACCES:
                continue
        print("a socket", family, kind)
a, b = socket.socketpair()
a.send(b"pair")
print(b.recv(10).decode())`, stdout: "pair"},
	"system calls that are forbidden": {code: `
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
calls = {"x86_64": {425: 38, 319: 38, 435: 38, 101: 1, 310: 1, 438: 1, 272: 1, 308: 1, 321: 1, 29: 1, 240: 1},
         "aarch64": {425: 38, 279: 38, 435: 38, 117: 1, 270: 1, 438: 1, 97: 1, 268: 1, 280: 1, 194: 1, 180: 1}}
for call, want in calls[platform.machine()].items():
    if libc.syscall(call, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != want:
        print("call", call, "got", ctypes.get_errno())
if libc.syscall({"x86_64": 56, "aarch64": 220}[platform.machine()], 0x10000011, 0, 0, 0, 0) != -1:
    print("a user namespace")
print("done")`, stdout: "done"},
	"a socket by the interface of 32 bits": {code: `
import ctypes, mmap, platform
if platform.machine() == "x86_64":
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # push rbx; mov eax, 359 (socket); mov ebx, AF_INET; mov ecx, SOCK_STREAM; xor edx, edx; int 0x80; pop rbx; ret
    memory.write(b"\x53\xb8\x67\x01\x00\x00\xbb\x02\x00\x00\x00\xb9\x01\x00\x00\x00\x31\xd2\xcd\x80\x5b\xc3")
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    got = call()
    print("a socket" if got >= 0 else "none")
else:
    print("none")`, stdout: "none"},
}

// TestHostilePrograms runs each program in a sandbox. The next program is answered, and nothing is left of the last.
func TestHostilePrograms(t *testing.T) {
	inSandboxes(t, func(t *testing.T, h *host, c *client.Client) {
		p := startPlain(t, c, "tests", sandboxLimits, isolation.Process)
		for name, tc := range hostilePrograms {
			t.Run(name, func(t *testing.T) {
				got, evidence := runPlain(t, p, tc.code, "41\n")
				exit := 0
				if got.Exit != nil {
					exit = *got.Exit
				}
				if got.Limit != tc.limit || tc.limit == "" && (exit != tc.exit || strings.TrimSpace(got.Stdout) != tc.stdout) {
					t.Errorf("got limit %q, exit %d, signal %q, stdout %.200q, stderr %.300q; want limit %q, exit %d, stdout %q",
						got.Limit, exit, got.Signal, got.Stdout, evidence.Stderr, tc.limit, tc.exit, tc.stdout)
				}
				if !strings.Contains(evidence.Stderr, tc.stderr) {
					t.Errorf("got stderr %q, want %q in it", evidence.Stderr, tc.stderr)
				}
				if got, _ := runPlain(t, p, "print(input())", "next"); got.Stdout != "next\n" {
					t.Errorf("the next program: got %+v", got)
				}
				eventually(t, "no process is left", func() bool { return countBelow(t, h.process.Pid) == 0 })
			})
		}
	})
}

// countBelow counts the processes below another one.
func countBelow(t *testing.T, pid int) int {
	t.Helper()
	parents := map[int]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		child, numberErr := strconv.Atoi(entry.Name())
		_, rest, found := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if err != nil || numberErr != nil || !found || len(fields) < 2 || fields[0] == "Z" {
			continue
		}
		parents[child], _ = strconv.Atoi(fields[1])
	}
	count := 0
	for child := range parents {
		for above := parents[child]; above > 0; above = parents[above] {
			if above == pid {
				count++
				break
			}
		}
	}
	return count
}

// TestSandboxKeepsFiles requires that a program can read neither the files of another program nor the runner's, and
// can change nothing outside its directory.
func TestSandboxKeepsFiles(t *testing.T) {
	inSandboxes(t, func(t *testing.T, h *host, c *client.Client) {
		outside := filepath.Join(h.dir, "outside")
		if err := os.MkdirAll(filepath.Join(outside, "kept"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(outside, h.user, -1); err != nil {
			t.Fatal(err)
		}
		patient := sandboxLimits
		patient.CallSeconds = 3
		p, busy := startPlain(t, c, "tests", sandboxLimits, ""), startPlain(t, c, "busy", patient, "")
		held := make(chan struct{})
		go func() { // a neighbour with a secret, which waits until its time is over
			defer close(held)
			_, _ = runPlain(t, busy, "import time\nopen('secret', 'w').write('secret')\ntime.sleep(1000)", "")
		}()
		eventually(t, "the neighbour has its file", func() bool {
			found, _ := filepath.Glob(filepath.Join(h.dir, "scratch", "*", "secret"))
			return len(found) == 1
		})
		snoop := `
import glob, os, sys
base, own = os.path.dirname(os.getcwd()), os.getcwd()
found = []
for folder in [base, sys.argv[0]] + ["/proc/%s/cwd" % pid for pid in os.listdir("/proc") if pid.isdigit()]:
    try:
        names = os.listdir(folder)
    except OSError:
        continue
    found += [n for n in names if n == "secret" or n.isdigit() and os.path.join(folder, n) != own]
for name in range(50):
    try:
        found.append(open(os.path.join(base, str(name), "secret")).read())
    except OSError:
        pass
try:
    os.kill(-1, 9)
except OSError:
    pass
print(found)`
		if got, evidence := runPlain(t, p, snoop, ""); got.Stdout != "[]\n" {
			t.Errorf("files of a neighbour: got %+v %s, want none", got, evidence.Stderr)
		}
		<-held
		links := "import os\nos.symlink(" + strconv.Quote(outside) + ", 'out')\nos.symlink('/', 'root')\nos.mkdir('a')\n" +
			"os.symlink(" + strconv.Quote(outside) + ", 'a/out')\nos.chmod('a', 0)"
		if got, evidence := runPlain(t, p, links, ""); *got.Exit != 0 {
			t.Errorf("links: got %+v %s", got, evidence.Stderr)
		}
		if c.Isolation.Level != isolation.Process {
			checkWrites(t, p, outside, filepath.Dir(h.socket()))
		}
		if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
			t.Errorf("the target of a link: %v, want it untouched", err)
		}
	})
}

// checkWrites requires that nothing can be written, removed or read in folders of others.
func checkWrites(t *testing.T, p *client.Program, outside, run string) {
	t.Helper()
	code := `
import os
outside, run = ` + strconv.Quote(outside) + `, ` + strconv.Quote(run) + `
def tried(name, do):
    try:
        do()
    except OSError:
        return
    print(name)
tried("write", lambda: open(outside + "/new", "w"))
tried("write to /tmp", lambda: open("/tmp/runner-test-new", "w"))
tried("remove", lambda: os.rmdir(outside + "/kept"))
tried("rename", lambda: os.rename(outside + "/kept", "kept"))
tried("link", lambda: os.link("/etc/passwd", "passwd"))
tried("list", lambda: os.listdir(outside))
tried("list the runner's", lambda: os.listdir(run))
tried("remove the socket", lambda: os.unlink(run + "/runner.sock"))
tried("fifo", lambda: os.mkfifo(outside + "/fifo"))
tried("shared memory", lambda: open("/dev/shm/runner-test", "w"))
os.mkdir("own"); open("own/f", "w").close(); os.rename("own/f", "f"); os.remove("f")
import json, socket, subprocess
print(subprocess.run(["python3", "-c", "print(1)"], capture_output=True, text=True).stdout, end="")`
	if got, evidence := runPlain(t, p, code, ""); got.Stdout != "1\n" {
		t.Errorf("files outside: got %q and %s, want none touched, and the program's own at its disposal", got.Stdout,
			evidence.Stderr)
	}
}

// TestIsolationIsRefused requires that a program does not start if the machine has less isolation than the program
// needs.
func TestIsolationIsRefused(t *testing.T) {
	inSandboxes(t, func(t *testing.T, _ *host, c *client.Client) {
		for minimum, refused := range map[isolation.Level]bool{
			isolation.Process: false, isolation.Landlock: c.Isolation.Level == isolation.Process,
			isolation.RuntimeClass: c.Isolation.Level != isolation.RuntimeClass,
		} {
			_, err := c.Start(t.Context(), string(minimum), plain(sandboxLimits, minimum))
			var failure *client.Failure
			switch {
			case !refused && err != nil:
				t.Errorf("%s: got %s, want a start", minimum, describe(err))
			case refused && (!errors.As(err, &failure) || failure.Err.Code != protocol.CodeIsolation ||
				!strings.Contains(err.Error(), "execution.isolation.minimum is "+string(minimum))):
				t.Errorf("%s: got %v, want a refusal that names it", minimum, err)
			}
		}
	})
}

// TestLevel requires the isolation that the variable names: a suite for gVisor must not pass elsewhere.
func TestLevel(t *testing.T) {
	want := isolation.Level(os.Getenv(levelVariable))
	if want == "" {
		t.Skip("any level will do here")
	}
	h := startRunner(t)
	if c := h.dial(t); c.Isolation.Level != want || !h.first {
		t.Errorf("the isolation is %s, process 1 is the runner: %v; want %s and process 1", c.Isolation.Level, h.first, want)
	}
}

// TestFilterExists requires a filter for the architecture: without one nothing would start.
func TestFilterExists(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("images are built for two architectures")
	}
	inSandboxes(t, func(t *testing.T, _ *host, c *client.Client) {
		p := startPlain(t, c, "tests", sandboxLimits, "")
		if got, _ := runPlain(t, p, "print(open('/proc/self/status').read())", ""); !strings.Contains(got.Stdout,
			"Seccomp:\t2") || !strings.Contains(got.Stdout, "NoNewPrivs:\t1") {
			t.Errorf("the program's status: got %s, want a filter", got.Stdout)
		}
	})
}
