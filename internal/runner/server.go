// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
	"github.com/tinker-operator/tinker-operator/internal/runner/process"
	"github.com/tinker-operator/tinker-operator/internal/runner/scratch"
)

// Limits of callers.
const (
	maxConnections = 8
	maxPrograms    = 16
	maxQueue       = 8192
	// farewell is how long the last lines of a connection may take, such as the reason of its end.
	farewell = 10 * time.Second
)

// sampling is the time between two looks at the processes, and guarding the time between two looks at the socket.
const (
	sampling = 100 * time.Millisecond
	guarding = time.Second
)

// Server serves callers at a Unix socket, or over TCP.
type Server struct {
	// Socket is the path of the Unix socket; empty if there is none.
	Socket string
	// Remote has the settings for callers over TCP; nil if the runner serves none.
	Remote   *Remote
	Scratch  *scratch.Base
	Children *process.Children
	Log      *slog.Logger
	// Version is the version of the program, for callers' logs.
	Version string
	// Isolation is how programs can be confined.
	Isolation isolation.Found
	// PythonPath is a directory of Python modules that programs find before the modules of the variable PYTHONPATH; empty
	// if there is none.
	PythonPath string

	mu          sync.Mutex
	connections map[*connection]bool
	watched     map[*watch]bool
	left        chan struct{} // receives a value when a connection has ended
	exclusive   atomic.Bool   // whether a program runs that could read the files of others or end them
	shared      *sharing      // the programs of callers over TCP
	strangers   strangers
	offers      *offers // the connections of programs to gateways
}

// Serve serves until it receives from leave and no caller is connected. A program that sends the signal can thus end
// the runner only while the runner has no caller.
func (s *Server) Serve(ctx context.Context, leave <-chan os.Signal) error {
	s.connections, s.watched = map[*connection]bool{}, map[*watch]bool{}
	s.left = make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.shared, s.offers = newSharing(s), newOffers()
	var socket *socket
	if s.Remote != nil {
		listener, err := s.Remote.listen(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = listener.Close() }()
		go s.accept(ctx, listener, s.admitRemote)
	}
	if s.Socket != "" {
		var err error
		if socket, err = listen(s.Socket); err != nil {
			return err
		}
		go s.accept(ctx, socket.listener, s.admitLocal)
		defer func() { _ = socket.listener.Close() }()
	}
	go s.sample(ctx)
	guard := time.NewTicker(guarding)
	defer guard.Stop()
	leaving := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-leave:
			leaving = true
		case <-s.left:
		case <-guard.C:
			if socket == nil {
				continue
			}
			if next := s.restore(socket); next != socket {
				socket = next
				go s.accept(ctx, socket.listener, s.admitLocal)
			}
		}
		if leaving && s.callers() == 0 {
			return nil
		}
	}
}

func (s *Server) callers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.connections)
}

func (s *Server) accept(ctx context.Context, listener net.Listener, admit func(context.Context, net.Conn)) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example too many open files
			s.Log.Error("A connection could not be accepted.", "err", err)
			time.Sleep(sampling)
			continue
		}
		admit(ctx, conn)
	}
}

// admitLocal serves a connection of the Unix socket, unless a program of the runner has made it.
func (s *Server) admitLocal(ctx context.Context, conn net.Conn) {
	pid, err := peer(conn.(*net.UnixConn))
	if err != nil || inside(pid) {
		s.Log.Warn("A connection of a program was refused.", "pid", pid, "err", err)
		_ = conn.Close()
		return
	}
	s.admit(ctx, newConnection(s, conn), maxConnections)
}

// admit serves a connection, unless there are too many.
func (s *Server) admit(ctx context.Context, c *connection, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.connections) >= limit {
		s.strangers.remove(c)
		s.Log.Warn("A connection was refused. There are too many.", "limit", limit)
		_ = c.conn.Close()
		return
	}
	s.connections[c] = true
	go func() {
		c.serve(ctx)
		s.forget(c)
	}()
}

// forget no longer counts a connection as a caller.
func (s *Server) forget(c *connection) {
	s.strangers.remove(c)
	s.mu.Lock()
	delete(s.connections, c)
	s.mu.Unlock()
	select {
	case s.left <- struct{}{}:
	default:
	}
}

// peer returns the pid of the process that has made a connection, as this process sees it: 0 for a process of another
// container.
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) {
		credentials, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, controlErr); err != nil {
		return 0, err
	}
	return int(credentials.Pid), nil
}

// inside reports whether a process may belong to a program. In a container of its own, the runner sees no other
// processes.
func inside(pid int) bool {
	if pid == 0 {
		return false
	}
	if os.Getpid() == 1 {
		return true
	}
	table, err := process.ReadTable()
	return err != nil || table.Below(pid, os.Getpid())
}
