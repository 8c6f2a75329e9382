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

// hostileLimits stop a hostile program before it slows the machine down.
var hostileLimits = protocol.Limits{
	StartSeconds: 300, CallSeconds: 300, MemoryBytes: 200 << 20, AddressSpaceBytes: 190 << 20, Processes: 12,
	OutputBytes: 1 << 20,
	OpenFiles:   64, FileBytes: 8 << 20, ScratchBytes: 24 << 20, ScratchFiles: 500, LineBytes: 1 << 20, Questions: 16,
}

// hostileCode runs the function that its row names.
const hostileCode = `
import os, signal, subprocess, sys, time, ctypes, socket, json

def protocol_fds():
    return [fd for fd in range(3, 64) if fd_is_pipe(fd)]

def fd_is_pipe(fd):
    try:
        return os.readlink("/proc/self/fd/%d" % fd).startswith("pipe:")
    except OSError:
        return False

def forge(line):
    for fd in protocol_fds():
        try:
            os.write(fd, line)
        except OSError:
            pass

def fork_bomb():
    while True:
        try:
            os.fork()
        except OSError:
            pass

def fork_bomb_of_groups():
    while True:
        try:
            if os.fork() == 0:
                os.setsid()
                if os.fork():
                    os._exit(0)
        except OSError:
            pass

def tree_of_memory():
    for _ in range(8):
        if os.fork() == 0:
            block = bytearray(60 << 20)
            for i in range(0, len(block), 4096):
                block[i] = 1
            time.sleep(1000)
    time.sleep(1000)

def memory_bomb():
    blocks = []
    while True:
        block = bytearray(1 << 20)
        blocks.append(block)

def fill_file():
    with open("big", "wb") as f:
        while True:
            f.write(b"x" * (1 << 20))

def fill_scratch():
    for i in range(1000):
        with open("f%d" % i, "wb") as f:
            f.write(b"x" * (4 << 20))
        time.sleep(0.02)

def many_files():
    for i in range(2000):
        open("f%d" % i, "w").close()
    time.sleep(1000)

def endless():
    while True:
        pass

def hundred_megabytes():
    for _ in range(100):
        print("x" * (1 << 20))
    return 1

def daemon(name):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        while True:
            time.sleep(1)
    return 1

def open_files():
    files = [open("/dev/null") for _ in range(10000)]
    return len(files)

# others are the numbers that the runner could have: its parent's, or any, where a parent outside its namespace has 0.
def others():
    return [os.getppid()] if os.getppid() else [pid for pid in range(1, 100) if pid != os.getpid()]

def send(sig):
    for pid in others():
        try:
            os.kill(pid, sig)
        except ProcessLookupError:
            pass
    return 1

def queue(sig):
    libc = ctypes.CDLL(None, use_errno=True)
    for pid in others():
        libc.sigqueue(pid, sig, ctypes.c_void_p(0))
    return 1

def all_signals():
    for sig in range(1, 65):
        if sig in (signal.SIGKILL, signal.SIGSTOP):
            continue
        for send_it in (send, queue):
            try:
                send_it(sig)
            except OSError:
                pass
    return 1

# limit_parent leaves the runner no file to open, no memory and no time.
def limit_parent():
    import resource
    for pid in others():
        for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):
            try:
                resource.prlimit(pid, what, (1, 1))
            except OSError:
                pass
    return 1

def read_parent():
    found = []
    libc = ctypes.CDLL(None, use_errno=True)
    for pid in others():
        for name in ("environ", "mem", "maps", "fd", "cwd", "root", "exe"):
            path = "/proc/%d/%s" % (pid, name)
            try:
                if name == "fd":
                    os.listdir(path)
                elif name in ("cwd", "root", "exe"):
                    os.readlink(path)
                else:
                    with open(path, "rb") as f:
                        if name != "mem":
                            f.read(1)
            except OSError:
                continue
            found.append(name)
        if libc.ptrace(16, pid, 0, 0) == 0:
            found.append("ptrace")
    if found:
        raise ValueError("readable: " + " ".join(found))
    return 1

def connect(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(path)
        try:
            s.sendall(b'{"type":"hello","versions":[1]}\n')
            answer = s.recv(100)
        except (BrokenPipeError, ConnectionResetError):
            answer = b""
    if answer:
        raise ValueError("the runner has answered")
    return 1

def link_out(target):
    os.symlink(target, "out")
    os.symlink(target, "out2")
    os.makedirs("a/b")
    os.symlink(target, "a/b/out")
    os.chmod("a", 0)
    return 1

def deep(depth, seconds):
    for _ in range(depth):
        os.mkdir("d")
        os.chdir("d")
    os.chmod("..", 0)
    time.sleep(seconds)
    return 1

def read_all():
    while os.read(0, 100):
        pass
    return 1

DO = {
    "right": lambda: 1,
    "none": lambda: None,
    "nan": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "huge": lambda: 10 ** 400,
    "string": lambda: "1.0",
    "list": lambda: [1],
    "coroutine": lambda: later(),
    "forgotten": lambda: (later(), 1)[1],
    "raise": lambda: [][1],
    "evil exception": lambda: throw(),
    "exit": lambda: sys.exit(0),
    "os._exit": lambda: os._exit(7),
    "segfault": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "endless": endless,
    "recursion": lambda: recursion(),
    "close protocol": lambda: [os.close(fd) for fd in protocol_fds()] and time.sleep(1000),
    "stop itself": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "stdin": read_all,
    "no permission": lambda: (os.mkdir("a"), os.chmod(".", 0), 1)[2],
    "forged": lambda: (forge(b'{"type":"result","id":99,"value":{"reward":1000}}\n'), time.sleep(1000))[1],
    "forged twice": lambda: (forge(b'{"type":"result","id":%d,"value":{"reward":5}}\n' % 10 ** 6), time.sleep(1000))[1],
    "garbage": lambda: (forge(b'\xff\xfe garbage\n'), time.sleep(1000))[1],
    "no object": lambda: (forge(b'[1, 2]\n'), time.sleep(1000))[1],
    "unknown type": lambda: (forge(b'{"type":"launch","id":1}\n'), time.sleep(1000))[1],
    "type of the caller": lambda: (forge(b'{"type":"start","id":1}\n'), time.sleep(1000))[1],
    "long line": lambda: (forge(b'x' * (2 << 20)), time.sleep(1000))[1],
    "deep line": lambda: (forge(b'{"type":"result","id":1,"value":' + b'[' * 1000 + b']' * 1000 + b'}\n'), time.sleep(1000))[1],
    "question for another": lambda: (forge(b'{"type":"ask","id":1,"call":99,"method":"chat"}\n'), time.sleep(1000))[1],
    "ready twice": lambda: (forge(b'{"type":"ready","version":1}\n'), time.sleep(1000))[1],
}

class Evil(Exception):
    def __str__(self):
        raise ValueError("no text")

def throw():
    raise Evil()

def recursion():
    return recursion() + 1

async def later():
    return 1

def reward(row, reply):
    do = row["do"]
    if do in DO:
        return DO[do]()
    return globals()[do](*(row.get("with") or []))
`

// fault is the expected end of a call.
type fault struct {
	code   protocol.Code
	limit  string
	breach protocol.Code
	signal string
	exit   int
	text   string // in the error's texts
}

func checkFault(t *testing.T, err error, want fault) *client.Failure {
	t.Helper()
	var failure *client.Failure
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want a failure with the code %s", err, want.code)
	}
	got := fault{
		code: failure.Err.Code, limit: failure.Evidence.Limit, breach: failure.Evidence.Breach,
		signal: failure.Evidence.Signal,
	}
	if got.signal == "SIGKILL" && want.signal == "" {
		got.signal = "" // The runner killed it.
	}
	if failure.Evidence.Exit != nil {
		got.exit = *failure.Evidence.Exit
	}
	text := want.text
	want.text = ""
	if got != want || !strings.Contains(failure.Err.Message+failure.Err.Exception, text) {
		t.Errorf("got %+v, want %+v and %q in %s", got, want, text, describe(err))
	}
	return failure
}

// TestHostileCalls makes calls that attack their program in many ways. Each call ends with its fault, and the next
// call of the same program is answered.
func TestHostileCalls(t *testing.T) {
	h := startRunner(t)
	outside := filepath.Join(h.dir, "outside")
	if err := os.MkdirAll(filepath.Join(outside, "kept"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(outside, h.user, -1); err != nil {
		t.Fatal(err)
	}
	limit := func(name string) fault { return fault{code: protocol.CodeLimit, limit: name} }
	breach := func(code protocol.Code) fault { return fault{code: protocol.CodeProtocol, breach: code} }
	cases := map[string]struct {
		do   string
		with []any
		want fault // if it has no code, the call is answered
	}{
		"None":                       {do: "none", want: fault{code: protocol.CodeNoValue}},
		"NaN":                        {do: "nan", want: fault{code: protocol.CodeNotFinite}},
		"infinity":                   {do: "infinity", want: fault{code: protocol.CodeNotFinite}},
		"a number beyond all floats": {do: "huge", want: fault{code: protocol.CodeNotFinite}},
		"a string":                   {do: "string", want: fault{code: protocol.CodeWrongType}},
		"a list":                     {do: "list", want: fault{code: protocol.CodeWrongType}},
		"a coroutine as result":      {do: "coroutine", want: fault{code: protocol.CodeNotAwaited}},
		"a coroutine never awaited":  {do: "forgotten", want: fault{code: protocol.CodeNotAwaited}},
		"an exception": {do: "raise", want: fault{code: protocol.CodeException,
			text: "IndexError: list index out of range"}},
		"an exception without a text": {do: "evil exception", want: fault{code: protocol.CodeException, text: "Evil"}},
		"sys.exit":                    {do: "exit", want: fault{code: protocol.CodeException, text: "SystemExit"}},
		"endless recursion": {do: "recursion", want: fault{code: protocol.CodeException,
			text: "RecursionError"}},
		"os._exit":                     {do: "os._exit", want: fault{code: protocol.CodeDied, exit: 7}},
		"a segmentation fault":         {do: "segfault", want: fault{code: protocol.CodeDied, signal: "SIGSEGV"}},
		"an endless loop":              {do: "endless", want: limit("cpuSeconds")},
		"a process that stops itself":  {do: "stop itself", want: limit("callSeconds")},
		"100 MB of output":             {do: "hundred_megabytes", want: limit("outputBytes")},
		"a fork bomb":                  {do: "fork_bomb", want: limit("processes")},
		"a fork bomb of many sessions": {do: "fork_bomb_of_groups", want: limit("processes")},
		"memory of one process":        {do: "memory_bomb", want: fault{code: protocol.CodeOutOfMemory}},
		"memory of a tree":             {do: "tree_of_memory", want: limit("memoryBytes")},
		"a file without end": {do: "fill_file", want: fault{code: protocol.CodeException,
			text: "File too large"}},
		"a scratch directory filled": {do: "fill_scratch", want: limit("scratchBytes")},
		"too many files":             {do: "many_files", want: limit("scratchFiles")},
		"10,000 open files": {do: "open_files", want: fault{code: protocol.CodeException,
			text: "Too many open files"}},
		"reading standard input":          {do: "stdin"},
		"a link out":                      {do: "link_out", with: []any{outside}},
		"a directory without permissions": {do: "no permission"},
		"a deep tree":                     {do: "deep", with: []any{50, 0}},
		"a tree that is too deep":         {do: "deep", with: []any{300, 1000}, want: limit("scratchFiles")},
		"all signals to the runner":       {do: "all_signals"},
		"limits for the runner":           {do: "limit_parent"},
		"reading the runner":              {do: "read_parent"},
		"connecting to the runner":        {do: "connect", with: []any{h.socket()}},
		"a forged result":                 {do: "forged", want: breach(protocol.CodeUnknownID)},
		"bytes that are no text":          {do: "garbage", want: breach(protocol.CodeBadLine)},
		"a line that is no object":        {do: "no object", want: breach(protocol.CodeBadLine)},
		"a line of an unknown type":       {do: "unknown type", want: breach(protocol.CodeUnknownType)},
		"a line of the caller's":          {do: "type of the caller", want: breach(protocol.CodeUnknownType)},
		"a long line":                     {do: "long line", want: breach(protocol.CodeLineTooLong)},
		"a deep line":                     {do: "deep line", want: breach(protocol.CodeTooDeep)},
		"a question for another call":     {do: "question for another", want: breach(protocol.CodeUnknownID)},
		"ready twice":                     {do: "ready twice", want: breach(protocol.CodeDuplicateID)},
		"no end of the protocol":          {do: "close protocol", want: breach(protocol.CodeBadLine)},
	}
	if h.first {
		cases["killing its parent"] = struct {
			do   string
			with []any
			want fault
		}{do: "send", with: []any{9}}
		cases["stopping its parent"] = struct {
			do   string
			with []any
			want fault
		}{do: "send", with: []any{19}}
	}
	c := h.dial(t)
	program := start(t, c, "hostile", python.Function{Code: hostileCode}, protocol.Spec{Limits: hostileLimits})
	short := hostileLimits
	short.CPUSeconds = 1
	working := start(t, c, "working", python.Function{Code: hostileCode}, protocol.Spec{Limits: short})
	patient := hostileLimits
	patient.CallSeconds = 2
	stopping := start(t, c, "stopping", python.Function{Code: hostileCode}, protocol.Spec{Limits: patient})
	// Memory that processes share counts for each of them: a fork bomb that grows fast would exceed the usual limit of
	// memory before the runner sees its processes.
	roomy := hostileLimits
	roomy.MemoryBytes = 16 << 30
	forking := start(t, c, "forking", python.Function{Code: hostileCode}, protocol.Spec{Limits: roomy})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			program := program
			switch tc.want.limit {
			case "callSeconds":
				program = stopping
			case "cpuSeconds":
				program = working
			case "processes":
				program = forking
			}
			row := map[string]any{"do": tc.do, "with": tc.with}
			result, err := call(t, program, row, "")
			if tc.want.code != "" {
				checkFault(t, err, tc.want)
			} else if err != nil || string(result.Value) != `{"reward":1}` {
				t.Errorf("got %s and %s, want a reward of 1", result.Value, describe(err))
			}
			result, err = call(t, program, map[string]any{"do": "right"}, "")
			if err != nil || string(result.Value) != `{"reward":1}` {
				t.Errorf("the next call: got %s and %s, want a reward of 1", result.Value, describe(err))
			}
		})
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Errorf("the target of a link: %v, want it untouched", err)
	}
	select {
	case <-h.ended:
		t.Error("the runner has ended")
	default:
	}
}
