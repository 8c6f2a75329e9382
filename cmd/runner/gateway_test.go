// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/spawn"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// served serves and counts the connections that agents make to the gateway of a test.
type served struct {
	serve     func(net.Conn)
	came, are atomic.Int64
	most      atomic.Int64
}

func (s *served) accept(conn net.Conn) {
	s.came.Add(1)
	are := s.are.Add(1)
	for most := s.most.Load(); are > most && !s.most.CompareAndSwap(most, are); most = s.most.Load() {
	}
	go func() {
		defer s.are.Add(-1)
		defer conn.Close()
		s.serve(conn)
	}()
}

// says returns a function that greets a connection with a word, and then echoes its bytes.
func says(word string) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := conn.Write([]byte(word)); err == nil {
			_, _ = io.Copy(conn, conn)
		}
	}
}

// callThrough runs an agent whose gateway s serves.
func callThrough(t *testing.T, p *client.Program, code string, s *served) (spawn.Result, error) {
	t.Helper()
	gateway := client.NewGateway()
	result, err := callWith(t, p.Try, client.Call{Method: spawn.Method, Gateway: gateway, Serve: s.accept,
		Params: agentParams(t, code, map[string]string{"GATEWAY": gateway, "OTHER": "127.0.0.1:1"})})
	var left spawn.Result
	if err == nil {
		err = json.Unmarshal(result.Value, &left)
	}
	return left, err
}

// TestGatewayThroughTheRunner runs agents of two callers that share a program. Each agent reaches the gateway of its
// own caller: with connections that either end closes, and with more bytes than any buffer has.
func TestGatewayThroughTheRunner(t *testing.T) {
	needPython(t)
	_, at := startRemote(t)
	code := map[string]string{
		"a greeting": `print(socket.create_connection(gateway).recv(9).decode())`,
		"many bytes": `
s = socket.create_connection(gateway)
word = s.recv(3).decode()
text = os.urandom(6 << 20)
threading.Thread(target=lambda: s.sendall(text)).start()
got = b""
while len(got) < len(text):
    got += s.recv(1 << 20)
print(word if got == text else "other bytes")`,
		"many connections one after the other": `
for _ in range(50):
    s = socket.create_connection(gateway); word = s.recv(9).decode(); s.close()
print(word)`,
		"many connections at once": `
all = [socket.create_connection(gateway) for _ in range(150)]
print({s.recv(9).decode() for s in all}.pop())`,
		"a client that has nothing more to say": `
s = socket.create_connection(gateway)
s.shutdown(socket.SHUT_WR)
word = s.recv(9).decode()
print(word, s.recv(9).decode())`,
	}
	var all sync.WaitGroup
	for _, word := range []string{"one", "two"} {
		p := startAgents(t, dialAt(t, at), "agent", nil)
		for name, text := range code {
			all.Go(func() {
				s := &served{serve: says(word)}
				left, err := callThrough(t, p, text, s)
				if err != nil || strings.TrimSpace(left.Output) != word {
					t.Errorf("%s: got %+v, %v, want %s", name, left, describe(err), word)
				}
			})
		}
	}
	all.Wait()
}

// TestGatewayIsConfined checks that an agent with its gateway as the only network reaches the gateway of its own call,
// and neither the gateway of another call nor the runner.
func TestGatewayIsConfined(t *testing.T) {
	needPython(t)
	if found := isolation.Find(); !found.Notifies {
		t.Skipf("the kernel cannot confine a network: %+v", found)
	}
	_, at := startRemote(t)
	p := startAgents(t, dialAt(t, at), "agent", &protocol.Network{Gateway: true, Minimum: isolation.Process})
	others, release := make(chan string, 1), make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() {
		s := &served{serve: func(conn net.Conn) {
			text := make([]byte, 99)
			n, _ := conn.Read(text)
			others <- string(text[:n])
			<-release
		}}
		left, err := callThrough(t, p, `
s = socket.create_connection(gateway); s.sendall(("%s:%d" % gateway).encode()); s.recv(1)`, s)
		if err != nil || left.Exit != 0 {
			t.Errorf("the other call: %+v, %v", left, describe(err))
		}
	})
	s := &served{serve: says("hello")}
	left, err := callThrough(t, p, `
print(socket.create_connection(gateway).recv(9).decode())
for a in ("`+<-others+`", "`+at.TCP+`"):
    host, port = a.split(":")
    tried("other", lambda: socket.create_connection((host, int(port))))`, s)
	close(release)
	other.Wait()
	if want := "hello\nother EACCES\nother EACCES\n"; err != nil || left.Output != want {
		t.Errorf("got %+v, %v, want %q", left, describe(err), want)
	}
}

// TestGatewayOfHostileAgents runs agents that open connections as fast as they can, leave their replies unread, or send
// without end. Another call has its replies meanwhile, and nothing is left afterwards.
func TestGatewayOfHostileAgents(t *testing.T) {
	needPython(t)
	cases := map[string]struct {
		code  string
		serve func(net.Conn)
	}{
		"thousands of connections": {`
import resource
all = []
end = time.time() + 4
while time.time() < end and len(all) < 230:
    try:
        s = socket.socket(); s.settimeout(0.2); s.connect(gateway); all.append(s)
    except OSError:
        pass
for s in all[:100]: s.close()
while time.time() < end:
    try:
        s = socket.create_connection(gateway, 0.1); s.close()
    except OSError:
        pass`, says("hello")},
		"replies that nobody reads": {`
all = [socket.create_connection(gateway) for _ in range(8)]
time.sleep(4)
all[0].close()`, func(conn net.Conn) {
			_ = conn.SetWriteDeadline(time.Now().Add(3 * time.Second))
			_, _ = io.Copy(conn, endless{})
		}},
		"requests without end": {`
s = socket.create_connection(gateway)
end = time.time() + 3
try:
    while time.time() < end: s.sendall(bytes(1 << 20))
except OSError: pass`, func(conn net.Conn) {
			_, _ = io.CopyN(io.Discard, conn, 1<<20)
			_, _ = conn.Write([]byte("too much"))
		}},
	}
	_, at := startRemote(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := dialAt(t, at)
			p := startAgents(t, c, "agent", nil)
			bad, ended := &served{serve: tc.serve}, make(chan struct{})
			go func() {
				defer close(ended)
				left, err := callThrough(t, p, "import time\n"+tc.code, bad)
				if err != nil || left.Exit != 0 {
					t.Errorf("the hostile agent: %+v, %v", left, describe(err))
				}
			}()
			for n := 0; n == 0 || !wait.IsClosed(ended); n++ {
				good := &served{serve: says("hello")}
				left, err := callThrough(t, p, `print(socket.create_connection(gateway, 300).recv(9).decode())`, good)
				if err != nil || left.Output != "hello\n" {
					t.Fatalf("another call: %+v, %v", left, describe(err))
				}
			}
			if most := bad.most.Load(); most > 2*protocol.MaxStreams {
				t.Errorf("%d connections were open at once, want at most %d", most, 2*protocol.MaxStreams)
			}
			for deadline := time.Now().Add(patience); bad.are.Load() > 0; time.Sleep(50 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%d of %d connections are open after the call", bad.are.Load(), bad.came.Load())
				}
			}
		})
	}
}

// endless is a text without end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// breaking forwards connections to a runner. All connections but the first are streams, which the test breaks.
type breaking struct {
	net.Listener
	to string
	// breaks is called with the two ends of each stream.
	breaks func(worker, runner *net.TCPConn)
}

func startBreaking(t *testing.T, to string, breaks func(worker, runner *net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &breaking{Listener: listener, to: to, breaks: breaks}
	t.Cleanup(func() { _ = listener.Close() })
	go b.forward()
	return listener.Addr().String()
}

func (b *breaking) forward() {
	for n := 0; ; n++ {
		conn, err := b.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", b.to)
		if err != nil {
			_ = conn.Close()
			continue
		}
		worker, runner := conn.(*net.TCPConn), to.(*net.TCPConn)
		for _, pair := range [][2]*net.TCPConn{{worker, runner}, {runner, worker}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].CloseWrite()
			}()
		}
		if n > 0 {
			go b.breaks(worker, runner)
		}
	}
}

// reset breaks a connection so that the other end sees it.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// TestGatewayThatBreaks breaks the connection between worker and runner while an agent waits for its reply: for both
// ends, for either end, without a reset, and before the connection is used. The call fails because the gateway was
// lost, however the agent handles the error, and another call of the same program succeeds.
func TestGatewayThatBreaks(t *testing.T) {
	needPython(t)
	_, at := startRemote(t)
	soon := func(do func(worker, runner *net.TCPConn)) func(worker, runner *net.TCPConn) {
		return func(worker, runner *net.TCPConn) {
			time.Sleep(time.Second)
			do(worker, runner)
		}
	}
	for name, breaks := range map[string]func(worker, runner *net.TCPConn){
		"for both":           soon(func(worker, runner *net.TCPConn) { reset(worker); reset(runner) }),
		"for the worker":     soon(func(worker, _ *net.TCPConn) { reset(worker) }),
		"for the runner":     soon(func(_, runner *net.TCPConn) { reset(runner) }),
		"without a reset":    soon(func(worker, runner *net.TCPConn) { _ = worker.Close(); _ = runner.Close() }),
		"before it is there": func(worker, runner *net.TCPConn) { reset(worker); reset(runner) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			through := at
			through.TCP = startBreaking(t, at.TCP, breaks)
			p := startAgents(t, dialAt(t, through), "agent", nil)
			s := &served{serve: says("")}
			left, err := callThrough(t, p, `
try:
    s = socket.create_connection(gateway); s.sendall(b"1"); s.recv(1); print(s.recv(1))
except OSError as e:
    print("the agent goes on", e)`, s)
			var lost *client.Failure
			if !errors.As(err, &lost) || lost.Err.Code != protocol.CodeGatewayLost {
				t.Errorf("got %+v, %v, want %s", left, describe(err), protocol.CodeGatewayLost)
			}
			if client.After(err, true) != client.Unavailable {
				t.Errorf("after %v: %v, want another try", err, client.After(err, true))
			}
			ok := startAgents(t, dialAt(t, at), "agent", nil)
			if left, err := callThrough(t, ok, `print(socket.create_connection(gateway).recv(9).decode())`,
				&served{serve: says("hello")}); err != nil || left.Output != "hello\n" {
				t.Errorf("another call: %+v, %v", left, describe(err))
			}
		})
	}
}

// TestProgramsLeaveRoomForCallers opens as many connections without a hello as one address may have, from the runner's
// own address. A caller from another address is still served.
func TestProgramsLeaveRoomForCallers(t *testing.T) {
	_, at := startRemote(t)
	for range 600 {
		conn, err := net.Dial("tcp", at.TCP)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	conn := dialFromElsewhere(t, at.TCP)
	caller := tls.Client(conn, at.TLS)
	defer caller.Close()
	_ = caller.SetDeadline(time.Now().Add(patience))
	_, err := caller.Write([]byte(`{"type":"hello","versions":[1],"token":"` + at.Token + "\"}\n"))
	answer := make([]byte, 4096)
	n := 0
	if err == nil {
		n, err = caller.Read(answer)
	}
	if err != nil || !strings.Contains(string(answer[:n]), `"version":1`) {
		t.Errorf("the caller has %q, %v, want the hello of version 1", answer[:n], err)
	}
}

// dialFromElsewhere connects from an address of the machine that is not on the loopback interface.
func dialFromElsewhere(t *testing.T, to string) net.Conn {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		if !ok || network.IP.IsLoopback() || network.IP.To4() == nil {
			continue
		}
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: network.IP}, Timeout: patience}
		if conn, err := from.Dial("tcp", to); err == nil {
			return conn
		}
	}
	t.Skip("the machine has no address but those of the loopback interface")
	return nil
}

// TestGatewayOfOthers checks that the runner refuses streams that no call has offered, and gateways for callers at the
// Unix socket.
func TestGatewayOfOthers(t *testing.T) {
	needPython(t)
	h, at := startRemote(t)
	local := startAgents(t, h.dial(t), "agent", nil)
	_, err := callThrough(t, local, "", &served{serve: says("")})
	var refused *client.Failure
	if !errors.As(err, &refused) || refused.Err.Field != "gateway" {
		t.Errorf("a gateway at the Unix socket: %v", describe(err))
	}
	p := startAgents(t, dialAt(t, at), "agent", nil)
	for name, gateway := range map[string]string{"short": "g", "no text of letters": strings.Repeat(`"`, 20)} {
		_, err := callWith(t, p.Try, client.Call{Method: spawn.Method, Gateway: gateway, Params: json.RawMessage("{}")})
		if !errors.As(err, &refused) || refused.Err.Field != "gateway" {
			t.Errorf("a placeholder that is %s: %v", name, describe(err))
		}
	}
	_, err = client.DialStream(t.Context(), at, "no such stream")
	var wrong *protocol.Error
	if !errors.As(err, &wrong) || wrong.Code != protocol.CodeUnknownStream {
		t.Errorf("a stream that nobody has offered: %v", err)
	}
	at.Token = strings.Repeat("0", 64)
	if _, err = client.DialStream(t.Context(), at, "no such stream"); !errors.As(err, &wrong) ||
		wrong.Code != protocol.CodeUnauthorized {
		t.Errorf("a stream without the token: %v", err)
	}
}
