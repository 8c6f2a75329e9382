// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tinker-operator/tinker-operator/internal/runner/process"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

const (
	// tailBytes is how much of the end of a process's output is kept as evidence.
	tailBytes = 4 << 10
	// unreadLines is how many messages wait for a process that does not read.
	unreadLines = 4096
	// closeGrace is how long a process may live after it has closed its output: the kernel closes the output of a process
	// that ends before it reports the end.
	closeGrace = 2 * time.Second
	// drain is how long the pipes of a process that has ended may stay open. The processes that have them open are being
	// killed.
	drain = 5 * time.Second
)

// running is a process with its pipes.
type running struct {
	server *Server
	child  *process.Child
	watch  *watch
	home   string
	spec   protocol.Spec
	out    chan *protocol.Message

	mu     sync.Mutex
	tail   []byte
	stdout []byte // of a plain process
	// gateways are the gateways of the process's calls.
	gateways map[netip.AddrPort]bool
}

// pythonPath is the variable with the directories of Python's modules.
const pythonPath = "PYTHONPATH"

// begin makes a home directory and starts a process in it.
func begin(server *Server, spec protocol.Spec) (*running, error) {
	home, err := server.Scratch.Make()
	if err != nil {
		return nil, err
	}
	path := server.Scratch.Path(home)
	env := map[string]string{}
	if spec.InheritEnv {
		for _, variable := range os.Environ() {
			name, value, _ := strings.Cut(variable, "=")
			env[name] = value
		}
	}
	maps.Copy(env, map[string]string{"HOME": path, "TMPDIR": path, "PWD": path})
	maps.Copy(env, spec.Env)
	if server.PythonPath != "" {
		env[pythonPath] = strings.TrimSuffix(server.PythonPath+string(filepath.ListSeparator)+env[pythonPath],
			string(filepath.ListSeparator))
	}
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	err = server.Scratch.Write(home, spec.Files)
	var child *process.Child
	if err == nil {
		child, err = server.Children.Start(process.Launch{
			Command: spec.Command, Env: list, Dir: path,
			AddressSpace: spec.Limits.AddressSpaceBytes, OpenFiles: spec.Limits.OpenFiles, FileBytes: spec.Limits.FileBytes,
			Apart: server.Isolation.Namespaces, Sandbox: server.sandboxOf(spec), Network: server.networkOf(spec),
		})
	}
	if err != nil {
		if wipeErr := server.Scratch.Wipe(home); wipeErr != nil {
			server.Log.Warn("A scratch directory could not be wiped.", "err", wipeErr)
		}
		return nil, err
	}
	r := &running{server: server, child: child, home: home, spec: spec, out: make(chan *protocol.Message, unreadLines),
		gateways: map[netip.AddrPort]bool{}}
	r.watch = &watch{children: server.Children, child: child, limits: spec.Limits}
	r.watch.setDir(home, true)
	if child.Connections != nil {
		go r.connect()
	}
	return r, nil
}

// readLines reads the messages that the process writes.
func (r *running) readLines(read func(*protocol.Message, error)) {
	bounds := protocol.Lines{Bytes: r.spec.Limits.LineBytes, Depth: protocol.DefaultLines.Depth}
	reader := protocol.NewReader(r.child.Out, bounds, protocol.FromProgram)
	for {
		message, err := reader.Read()
		read(message, err)
		if err != nil {
			return
		}
	}
}

// follow reads and writes in the background until the process and all of its descendants have ended, and then calls
// ended.
func (r *running) follow(read, write, ended func()) {
	r.server.mu.Lock()
	r.server.watched[r.watch] = true
	r.server.mu.Unlock()
	var readers sync.WaitGroup
	readers.Go(read)
	readers.Go(r.readOutput)
	go write()
	go func() {
		<-r.child.Done
		r.server.mu.Lock()
		delete(r.server.watched, r.watch)
		r.server.mu.Unlock()
		if _, err := r.server.Children.Sweep(); err != nil {
			r.server.Log.Error("The processes cannot be read.", "err", err)
		}
		deadline := time.Now().Add(drain)
		_ = r.child.Out.SetReadDeadline(deadline)
		_ = r.child.Err.SetReadDeadline(deadline)
		readers.Wait()
		r.child.Close()
		ended()
	}()
}

func (r *running) readOutput() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.child.Err.Read(buffer)
		if n > 0 {
			r.mu.Lock()
			r.tail = append(r.tail, buffer[max(0, n-tailBytes):n]...)
			r.tail = r.tail[max(0, len(r.tail)-tailBytes):]
			r.mu.Unlock()
			r.watch.hasPrinted(n)
		}
		if err != nil {
			return
		}
	}
}

// send queues a message, and reports whether there was room.
func (r *running) send(m *protocol.Message) bool {
	select {
	case r.out <- m:
		return true
	default:
		return false
	}
}

func (r *running) write() {
	for {
		select {
		case m := <-r.out:
			line, err := protocol.Encode(m)
			if err == nil {
				_, err = r.child.In.Write(line)
			}
			if err != nil {
				return // the process has ended, or has closed its input: its calls end by their limits
			}
		case <-r.child.Done:
			return
		}
	}
}

// directories returns the directories that are removed when the process ends.
func (r *running) directories() []string {
	r.watch.mu.Lock()
	defer r.watch.mu.Unlock()
	return slices.Sorted(maps.Keys(r.watch.dirs))
}

// lastLines returns the end of the process's output, as text.
func (r *running) lastLines() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.ToValidUTF8(string(r.tail), "\uFFFD")
}

// live returns the evidence for a request that has ended while the process lives.
func (r *running) live(took time.Duration) protocol.Evidence {
	return protocol.Evidence{Seconds: took.Seconds(), PeakBytes: r.watch.peak.Load()}
}

// evidence returns the evidence for the requests of a process that has ended.
func (r *running) evidence() protocol.Evidence {
	e := protocol.Evidence{
		CPUSeconds: max(r.child.CPU, time.Duration(r.watch.cpu.Load())).Seconds(),
		PeakBytes:  max(r.child.PeakBytes, r.watch.peak.Load()),
		Stderr:     r.lastLines(),
	}
	if status := r.child.Status; status.Signaled() {
		e.Signal = unix.SignalName(status.Signal())
		if e.Signal == "" {
			e.Signal = fmt.Sprintf("signal %d", status.Signal())
		}
	} else {
		code := status.ExitStatus()
		e.Exit = &code
	}
	return e
}
