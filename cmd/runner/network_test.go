// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/spawn"
)

// greeting is the first message of a test's server to each connection.
const greeting = "hello"

// greet serves an address, and counts the connections.
func greet(t *testing.T, network, address string) (string, *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	came := &atomic.Int64{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			came.Add(1)
			_, _ = conn.Write([]byte(greeting))
			_ = conn.Close()
		}
	}()
	return listener.Addr().String(), came
}

// startAgents starts a program whose calls run the text of a Python program, with a confined network or an open one.
func startAgents(t *testing.T, c *client.Client, name string, network *protocol.Network) *client.Program {
	t.Helper()
	config, err := json.Marshal(spawn.Config{Command: []string{python3, "-c",
		"exec(open(__import__('os').environ['TASK_FILE']).read())"}})
	if err != nil {
		t.Fatal(err)
	}
	limits := sandboxLimits
	limits.CPUSeconds, limits.AddressSpaceBytes, limits.CallSeconds, limits.Processes = 0, 4<<30, 60, 64
	limits.OpenFiles = 1024
	p, err := c.Start(t.Context(), name, protocol.Spec{
		Kind: "command", Command: spawn.Command(), Config: config, Processes: 2, Limits: limits, Network: network,
		Env: map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"},
	})
	if err != nil {
		t.Fatal(describe(err))
	}
	return p
}

// agentParams returns the parameters of a call that runs the text of a program.
func agentParams(t *testing.T, code string, env map[string]string) json.RawMessage {
	t.Helper()
	given := map[string]string{"TASK_FILE": "$(DIR)/task"}
	for name, value := range env {
		given[name] = value
	}
	params, err := json.Marshal(spawn.Params{Files: map[string]string{"task": agentPrelude + code}, Env: given})
	if err != nil {
		t.Fatal(err)
	}
	return params
}

func runAgent(t *testing.T, p *client.Program, code string, env map[string]string) spawn.Result {
	t.Helper()
	result, err := callWith(t, p.Try, client.Call{Method: spawn.Method, Params: agentParams(t, code, env)})
	if err != nil {
		t.Fatalf("the agent has failed: %s", describe(err))
	}
	var left spawn.Result
	if err := json.Unmarshal(result.Value, &left); err != nil {
		t.Fatal(err)
	}
	return left
}

const agentPrelude = `
import asyncio, ctypes, errno, os, platform, socket, struct, subprocess, sys, threading
host, port = os.environ["GATEWAY"].split(":")
gateway = (host, int(port))
host, port = os.environ["OTHER"].split(":")
other = (host, int(port))
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, do):
    try:
        do()
    except OSError as e:
        return print(name, errno.errorcode[e.errno])
    print(name, "done")
`

// agentNetwork lists actions of agents in a network that has only the gateway, with their expected output.
var agentNetwork = map[string]struct{ code, want string }{
	"the gateway": {`
s = socket.create_connection(gateway)
print(s.recv(9).decode(), s.getpeername() == gateway, s.getblocking())`, "hello True True"},
	"the gateway by a client that does not block": {`
async def main():
    reader, writer = await asyncio.open_connection(*gateway)
    print((await reader.read()).decode(), os.get_inheritable(writer.get_extra_info("socket").fileno()))
asyncio.run(main())`, "hello False"},
	"the gateway from many threads and processes": {`
def ask():
    for _ in range(20):
        assert socket.create_connection(gateway).recv(9) == b"hello"
threads = [threading.Thread(target=ask) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
code = "import socket,sys; print(socket.create_connection((sys.argv[1], int(sys.argv[2]))).recv(9).decode())"
left = subprocess.run([sys.executable, "-c", code, gateway[0], str(gateway[1])], capture_output=True, text=True)
print(left.stdout)`,
		"hello"},
	"another port, as the endpoint and the learner are": {`tried("tcp", lambda: socket.create_connection(other))`,
		"tcp EACCES"},
	"the metadata address and the API server": {`
for a in ("169.254.169.254", "10.96.0.1", "127.0.0.2"):
    tried(a, lambda: socket.create_connection((a, gateway[1])))`,
		"169.254.169.254 EACCES\n10.96.0.1 EACCES\n127.0.0.2 EACCES"},
	"other families": {`
for family in range(1, 46):
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(family, kind)
        except OSError as e:
            continue
        print("a socket", family, kind)
tried("unix", lambda: socket.socket(socket.AF_UNIX).connect("\0" + os.environ["ABSTRACT"]))`,
		"a socket 2 1\nunix EAFNOSUPPORT"},
	"pairs of sockets that send to names": {`
a, b = socket.socketpair(); a.send(b"pair"); print(b.recv(9).decode())
tried("datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
tried("tipc", lambda: socket.socketpair(30, socket.SOCK_STREAM))
tried("connect", lambda: a.connect("\0" + os.environ["ABSTRACT"]))`,
		"pair\ndatagrams EACCES\ntipc EACCES\nconnect EACCES"},
	"protocols that connect as they send": {`
for protocol in (132, 262, 33):
    tried("protocol", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol))`,
		"protocol EACCES\nprotocol EACCES\nprotocol EACCES"},
	"data in the first packet": {`
def fresh(): return socket.socket(socket.AF_INET, socket.SOCK_STREAM)
tried("sendto", lambda: fresh().sendto(b"x", 0x20000000, other))
tried("sendto an address", lambda: fresh().sendto(b"x", other))
tried("sendmsg", lambda: fresh().sendmsg([b"x"], [], 0x20000000, other))
def sendmmsg():
    s = fresh()
    if libc.sendmmsg(s.fileno(), None, 0, 0x20000000) < 0:
        raise OSError(ctypes.get_errno(), "")
tried("sendmmsg", sendmmsg)`, "sendto EACCES\nsendto an address EACCES\nsendmsg EACCES\nsendmmsg EACCES"},
	"a port of its own": {`
s = socket.socket()
tried("bind", lambda: s.bind(("127.0.0.1", 0)))
tried("listen", lambda: s.listen())`, "bind EACCES\nlisten EACCES"},
	"routes": {`
s = socket.create_connection(gateway)
tried("source route", lambda: s.setsockopt(0, 4, bytes([131, 7, 4, 10, 0, 0, 1, 0])))
tried("device", lambda: s.setsockopt(1, 25, b"eth0\0"))
tried("index", lambda: s.setsockopt(1, 62, 1))
tried("delay", lambda: s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1))`,
		"source route EPERM\ndevice EPERM\nindex EPERM\ndelay done"},
	"what is no socket": {`
def connect(fd, size=16):
    name = struct.pack("=H", 2) + struct.pack("!H", gateway[1]) + socket.inet_aton(gateway[0]) + bytes(8)
    if libc.connect(fd, name, size) < 0:
        raise OSError(ctypes.get_errno(), "")
tried("a file", lambda: connect(os.open("/dev/null", 0)))
tried("nothing", lambda: connect(999))
tried("a short name", lambda: connect(socket.socket().fileno(), 8))
def nowhere():
    if libc.connect(socket.socket().fileno(), ctypes.c_void_p(8), 16) < 0:
        raise OSError(ctypes.get_errno(), "")
tried("nowhere", nowhere)`, "a file ENOTSOCK\nnothing EBADF\na short name EACCES\nnowhere EFAULT"},
	"other ways": {`
calls = {"x86_64": (425, 101, 310, 311, 438, 308), "aarch64": (425, 117, 270, 271, 438, 268)}[platform.machine()]
for call in calls:
    assert libc.syscall(call, 0, 0, 0, 0, 0, 0) == -1
    print(errno.errorcode[ctypes.get_errno()], end=" ")`, "ENOSYS EPERM EPERM EPERM EPERM EPERM"},
	"an address that changes while it is read": {`
name = ctypes.create_string_buffer(struct.pack("=H", 2) + struct.pack("!H", gateway[1]) +
                                   socket.inet_aton(gateway[0]) + bytes(8))
good, bad = struct.pack("!H", gateway[1]), struct.pack("!H", other[1])
over = False
def flip():
    while not over:
        ctypes.memmove(ctypes.byref(name, 2), bad, 2)
        ctypes.memmove(ctypes.byref(name, 2), good, 2)
flips = threading.Thread(target=flip); flips.start()
ends = set()
for _ in range(500):
    s = socket.socket()
    ends.add("done" if libc.connect(s.fileno(), name, 16) == 0 else errno.errorcode[ctypes.get_errno()])
    if s.fileno() >= 0:
        s.close()
over = True; flips.join()
print(ends <= {"done", "EACCES"})`, "True"},
}

// TestNetworkOfAgents requires that agents reach the gateway, and nothing else: neither a server on the same machine
// nor a server elsewhere.
func TestNetworkOfAgents(t *testing.T) {
	inSandboxes(t, func(t *testing.T, _ *host, c *client.Client) {
		if c.Isolation.Level == isolation.RuntimeClass {
			t.Skip("gVisor has no notifications: TestNetworkThatCannotBeConfined requires that no agent starts")
		}
		gateway, came := greet(t, "tcp", "127.0.0.1:0")
		other, others := greet(t, "tcp", "127.0.0.1:0")
		name := fmt.Sprintf("runner-test-%s", strings.ReplaceAll(other, ":", "-"))
		_, abstract := greet(t, "unix", "@"+name)
		env := map[string]string{"GATEWAY": gateway, "OTHER": other, "ABSTRACT": name}
		p := startAgents(t, c, "agents", &protocol.Network{Connect: []string{gateway}})
		for name, tc := range agentNetwork {
			t.Run(name, func(t *testing.T) {
				got := runAgent(t, p, tc.code, env)
				if strings.TrimSpace(got.Output) != tc.want || got.Exit != 0 {
					t.Errorf("got %q, exit %d, %s; want %q", got.Output, got.Exit, got.Last, tc.want)
				}
			})
		}
		if came.Load() < 160 || others.Load() > 0 || abstract.Load() > 0 {
			t.Errorf("%d came to the gateway, %d to another port and %d to a Unix socket; want at least 160, 0 and 0",
				came.Load(), others.Load(), abstract.Load())
		}
		open := startAgents(t, c, "open", nil)
		code := `print(socket.create_connection(other).recv(9).decode())`
		if got := runAgent(t, open, code, env); strings.TrimSpace(got.Output) != greeting {
			t.Errorf("an open network: got %+v, want the other server's greeting", got)
		}
	})
}

// TestTokenOfAnotherEpisode requires that an agent cannot read the token of an episode that another process plays, if
// the kernel can prevent it.
func TestTokenOfAnotherEpisode(t *testing.T) {
	inSandboxes(t, func(t *testing.T, _ *host, c *client.Client) {
		if c.Isolation.Level == isolation.Process {
			t.Skip("without Landlock nothing keeps processes of one user from each other: isolation.minimum decides")
		}
		gateway, came := greet(t, "tcp", "127.0.0.1:0")
		minimum := isolation.Landlock
		if c.Isolation.Level == isolation.RuntimeClass { // namespaces keep processes apart; the network is open
			minimum = isolation.Process
		}
		p := startAgents(t, c, "agents", &protocol.Network{Connect: []string{gateway}, Minimum: minimum})
		env := map[string]string{"GATEWAY": gateway, "OTHER": gateway, "TOKEN": "token-of-the-neighbour"}
		held := make(chan struct{})
		go func() { // until the connection to the runner ends with the test
			defer close(held)
			_, _ = p.Try(t.Context(), client.Call{Method: spawn.Method, Params: agentParams(t, `
import time
socket.create_connection(gateway)
time.sleep(1000)`, env)})
		}()
		eventually(t, "the neighbour plays", func() bool { return came.Load() > 0 })
		got := runAgent(t, p, `
found = read = 0
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "mem", "maps"):
        try:
            with open("/proc/%s/%s" % (pid, name), "rb") as f:
                text = f.read(1 << 20)
        except OSError:
            continue
        read += 1
        found += b"token-of-the-neighbour" in text
    if int(pid) not in (os.getpid(), os.getppid()):
        try:
            os.kill(int(pid), 9)
        except OSError:
            pass
print(read > 0, found)`, map[string]string{"GATEWAY": gateway, "OTHER": gateway})
		if strings.TrimSpace(got.Output) != "True 0" {
			t.Errorf("got %+v, want that its own memory is read, and no token of another", got)
		}
		select {
		case <-held:
			t.Error("the neighbour was ended")
		default:
		}
	})
}

// TestNetworkThatCannotBeConfined checks that agents do not start with less isolation than they need.
func TestNetworkThatCannotBeConfined(t *testing.T) {
	inSandboxes(t, func(t *testing.T, _ *host, c *client.Client) {
		for minimum, starts := range map[isolation.Level]bool{
			"": true, isolation.Process: true, isolation.Landlock: c.Isolation.Level == isolation.Landlock,
			isolation.RuntimeClass: false,
		} {
			spec := protocol.Spec{Kind: "command", Command: spawn.Command(), Config: json.RawMessage(`{"command":["sh"]}`),
				Env:     map[string]string{"PATH": "/usr/bin:/bin"},
				Network: &protocol.Network{Connect: []string{"127.0.0.1:1"}, Minimum: minimum}}
			_, err := c.Start(t.Context(), "agents-"+string(minimum), spec)
			var failure *client.Failure
			if starts != (err == nil) || err != nil && (!errors.As(err, &failure) ||
				failure.Err.Code != protocol.CodeIsolation || !strings.Contains(failure.Err.Message, "network to Open")) {
				t.Errorf("minimum %q: got %v, want a start: %v", minimum, err, starts)
			}
		}
	})
}
