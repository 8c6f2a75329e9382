// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
)

// Child is a started process.
type Child struct {
	PID int
	// In and Out carry the protocol, and Err carries the other output of the process.
	In, Out, Err *os.File
	// Connections is the listener for the calls of connect of a process with a confined network; nil for other processes.
	Connections *os.File
	// Done is closed when the process has ended. Then the fields below are set.
	Done      chan struct{}
	Status    unix.WaitStatus
	PeakBytes int64
	CPU       time.Duration
}

// HasEnded reports whether the process has ended.
func (c *Child) HasEnded() bool {
	select {
	case <-c.Done:
		return true
	default:
		return false
	}
}

// Children are the processes that this process has started. It reaps every child, including inherited children, which
// Sweep kills. Nothing else in the process may wait for children.
type Children struct {
	mu     sync.Mutex // held from a fork until the child is in alive, so that the child is not reaped before
	alive  map[int]*Child
	starts chan start
	signal chan os.Signal
}

type start struct {
	attributes *syscall.ProcAttr
	child      *Child
	err        chan error
}

// NewChildren begins to reap children. It never stops.
func NewChildren() *Children {
	c := &Children{alive: map[int]*Child{}, starts: make(chan start), signal: make(chan os.Signal, 1)}
	signal.Notify(c.signal, unix.SIGCHLD)
	go c.reapAlways()
	go c.forkAlways()
	return c
}

func (c *Children) reapAlways() {
	for range c.signal {
		c.reap()
	}
}

func (c *Children) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, &usage)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if child := c.alive[pid]; child != nil {
			delete(c.alive, pid)
			child.Status, child.PeakBytes = status, usage.Maxrss<<10
			child.CPU = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
			close(child.Done)
		}
	}
}

// forkAlways starts all processes from one thread, which lives as long as the runner: the kernel kills a process with
// Pdeathsig when the thread that started it ends.
func (c *Children) forkAlways() {
	runtime.LockOSThread()
	for s := range c.starts {
		c.mu.Lock()
		pid, err := fork(s.attributes)
		if err == nil {
			s.child.PID = pid
			c.alive[pid] = s.child
		}
		c.mu.Unlock()
		s.err <- err
	}
}

// fork starts this program with LaunchArgument.
func fork(attributes *syscall.ProcAttr) (int, error) {
	if attributes.Sys.Cloneflags != 0 {
		// The files uid_map and gid_map of a process belong to its user only if the process is dumpable, and the child
		// inherits that. The programs that run meanwhile cannot use it: in their own namespaces they have no pid for this
		// process.
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
			return 0, err
		}
		defer func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }()
	}
	return syscall.ForkExec("/proc/self/exe", []string{"runner", LaunchArgument}, attributes)
}

// Start starts a process. An error says why it could not be started; then nothing is left of it.
func (c *Children) Start(what Launch) (*Child, error) {
	config, err := json.Marshal(what)
	if err != nil {
		return nil, fmt.Errorf("encoding what to run: %w", err)
	}
	pipes, err := openPipes()
	if err != nil {
		return nil, err
	}
	defer closeAll(pipes.theirs[:])
	child := &Child{In: pipes.ours[0], Out: pipes.ours[1], Err: pipes.ours[2], Done: make(chan struct{})}
	fds := make([]uintptr, len(pipes.theirs))
	for i, file := range pipes.theirs {
		fds[i] = file.Fd()
	}
	socket, err := openSocket(what)
	if err != nil {
		closeAll(pipes.ours[:])
		return nil, err
	}
	defer closeAll(socket[:])
	if theirs := socket[1]; theirs != nil {
		fds = append(fds, theirs.Fd())
	}
	s := start{child: child, err: make(chan error, 1), attributes: &syscall.ProcAttr{
		Dir: "/", Files: fds, Env: []string{},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL},
	}}
	if what.Apart {
		isolation.Separate(s.attributes.Sys)
	}
	c.starts <- s
	if err := <-s.err; err != nil {
		closeAll(pipes.ours[:])
		return nil, fmt.Errorf("starting a process: %w", err)
	}
	closeAll(pipes.theirs[:])
	_, err = pipes.ours[launchConfig].Write(config)
	pipes.ours[launchConfig].Close()
	failure, readErr := io.ReadAll(pipes.ours[launchStatus]) // ends when the command runs, or with the process
	pipes.ours[launchStatus].Close()
	if len(failure) > 0 {
		err = errors.New(string(failure))
	}
	if err = errors.Join(err, readErr); err == nil && what.Network != nil {
		child.Connections, err = isolation.ReceiveListener(int(socket[0].Fd()))
	}
	if err != nil {
		c.Kill(child)
		child.Close()
		return nil, err
	}
	return child, nil
}

// CanStartApart returns why processes cannot have namespaces of their own; nil if they can. It starts a process in a
// directory to find out.
func (c *Children) CanStartApart(dir string) error {
	const plenty = 1 << 40
	child, err := c.Start(Launch{
		Command: []string{"/proc/self/exe", LaunchArgument}, Dir: dir, Apart: true, Sandbox: &isolation.Found{},
		AddressSpace: plenty, OpenFiles: plenty, FileBytes: plenty,
	})
	if err != nil {
		return err
	}
	<-child.Done // it ends at once, since nothing says what to run
	child.Close()
	return nil
}

// Close closes the pipes of a child.
func (c *Child) Close() { closeAll([]*os.File{c.In, c.Out, c.Err, c.Connections}) }

// openSocket returns the ends of the socket over which a launch sends the listener for its calls of connect. They are
// nil for a process that uses the network of its container.
func openSocket(what Launch) ([2]*os.File, error) {
	if what.Network == nil {
		return [2]*os.File{}, nil
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return [2]*os.File{}, fmt.Errorf("starting a process: %w", err)
	}
	return [2]*os.File{os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")}, nil
}

// pipeEnds are the two ends of the pipes to a child: standard input, output and error, what to run, and why that
// failed.
type pipeEnds struct{ ours, theirs [5]*os.File }

func openPipes() (pipeEnds, error) {
	var ends pipeEnds
	for i := range ends.ours {
		read, write, err := os.Pipe()
		if err != nil {
			closeAll(ends.ours[:])
			closeAll(ends.theirs[:])
			return ends, fmt.Errorf("starting a process: %w", err)
		}
		ends.ours[i], ends.theirs[i] = read, write
		if i == 0 || i == launchConfig {
			ends.ours[i], ends.theirs[i] = write, read
		}
	}
	return ends, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		if file != nil {
			file.Close()
		}
	}
}

// Kill kills a child with its group and the descendants that can be seen. Those that start meanwhile become children of
// the runner, which Sweep kills.
func (c *Children) Kill(child *Child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alive[child.PID] != child { // the pid may be another process by now
		return
	}
	table, err := ReadTable() // before the kill: afterwards the descendants are no longer below the child
	_ = unix.Kill(-child.PID, unix.SIGKILL)
	_ = unix.Kill(child.PID, unix.SIGKILL)
	if err == nil {
		c.killTree(table, child.PID)
	}
}

// killTree kills a process with its descendants and their groups. The caller holds the lock.
func (c *Children) killTree(table Table, root int) {
	own := unix.Getpgrp()
	for _, p := range table.Tree(root) {
		if p.Zombie {
			continue
		}
		if c.alive[p.Group] == nil && p.Group != own && p.Group > 1 {
			_ = unix.Kill(-p.Group, unix.SIGKILL)
		}
		_ = unix.Kill(p.PID, unix.SIGKILL)
	}
}

// The bounds of a sweep: how many rounds may find new processes before all processes are killed at once, and how many
// rounds may wait for killed processes to end.
const (
	newRounds  = 30
	waitRounds = 500
)

// Sweep kills all children that were not started here, until there are none, and returns the table of the processes
// that are left.
func (c *Children) Sweep() (Table, error) {
	killed := map[Identity]bool{}
	found, waited := 0, 0
	for {
		table, strays, err := c.sweep()
		if err != nil || strays == nil || waited > waitRounds {
			return table, err
		}
		known := len(killed)
		for _, stray := range strays {
			killed[stray.Identity()] = true
		}
		if waited++; len(killed) > known {
			found, waited = found+1, 0
		}
		if found > newRounds && os.Getpid() == 1 {
			// They start processes faster than they can be found. All programs of the container end with them, at once.
			_ = unix.Kill(-1, unix.SIGKILL)
			found = 0
		}
		c.reap()
		time.Sleep(time.Millisecond)
	}
}

// sweep kills the children that were not started here, and returns them.
func (c *Children) sweep() (Table, []Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	table, err := ReadTable()
	if err != nil {
		return table, nil, err
	}
	var strays []Process
	for _, pid := range table.children[os.Getpid()] {
		stray := table.processes[pid]
		if c.alive[pid] != nil || stray.Zombie {
			continue
		}
		strays = append(strays, stray)
		c.killTree(table, pid)
	}
	return table, strays, nil
}

// Identity identifies a process, and no later process with the same pid.
type Identity struct {
	PID     int
	Started uint64
}

// Identity returns the identity of a process.
func (p Process) Identity() Identity { return Identity{PID: p.PID, Started: p.Started} }

// KillBelow kills the descendants of a child, except for the kept ones, until there are no others. It returns how many
// it has killed, and an error if some are left.
func (c *Children) KillBelow(child *Child, kept map[Identity]bool) (int, error) {
	killed := map[Identity]bool{}
	for waited, found := 0, 0; waited < waitRounds && found < newRounds; waited++ {
		table, err := ReadTable()
		if err != nil {
			return len(killed), err
		}
		left, known := 0, len(killed)
		for _, p := range table.Tree(child.PID) {
			if p.PID == child.PID || p.Zombie || kept[p.Identity()] {
				continue
			}
			left++
			killed[p.Identity()] = true
			_ = unix.Kill(p.PID, unix.SIGKILL)
		}
		if left == 0 {
			return len(killed), nil
		}
		if len(killed) > known {
			waited, found = 0, found+1
		}
		time.Sleep(100 * time.Microsecond << min(waited, 5))
	}
	return len(killed), fmt.Errorf("killing the descendants of process %d: they start others faster", child.PID)
}
