// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The largest number of a signal, and how the kernel writes the actions for a signal.
const (
	lastSignal    = 64
	actionDefault = 0
	actionIgnore  = 1
)

// kept are the signals that the runner does not ignore: it asks for SIGCHLD and SIGTERM, and the runtime of Go uses the
// others.
var kept = map[unix.Signal]bool{
	unix.SIGCHLD: true, unix.SIGTERM: true, unix.SIGURG: true, unix.SIGKILL: true, unix.SIGSTOP: true,
	32: true, 33: true, // of a thread library, which Go uses to call a function on all threads
}

// setAction sets the action for a signal behind the back of Go's runtime. If a program sends a SIGSEGV with sigqueue,
// the runtime would take it for a fault of this process, and end the process.
func setAction(signal unix.Signal, action uintptr) error {
	kernelAction := struct{ handler, flags, restorer, mask uintptr }{handler: action}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(&kernelAction)),
		0, 8, 0, 0)
	if errno != 0 && !errors.Is(errno, unix.EINVAL) { // the number is not a signal
		return fmt.Errorf("setting the action for signal %d: %w", signal, errno)
	}
	return nil
}

func ignoreSignals() error {
	for signal := unix.Signal(1); signal <= lastSignal; signal++ {
		if kept[signal] {
			continue
		}
		if err := setAction(signal, actionIgnore); err != nil {
			return err
		}
	}
	return nil
}

// restoreSignals restores the signal handling that a program would have had from a shell.
func restoreSignals() error {
	for signal := unix.Signal(1); signal <= lastSignal; signal++ {
		if signal == unix.SIGKILL || signal == unix.SIGSTOP {
			continue
		}
		if err := setAction(signal, actionDefault); err != nil {
			return err
		}
	}
	return unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil)
}

// spareThreads is how many threads the runner has from the start. Go makes threads when it needs them, and ends the
// process when it cannot make one: a program that uses up all processes of the container would thus end the runner.
const spareThreads = 24

// Harden protects this process from the processes that it is going to start, which have its user. They cannot read its
// memory, its environment or its files in /proc. No signal ends or stops it except for SIGKILL and SIGSTOP, which the
// kernel does not deliver to process 1 from within its container. SIGTERM is left to the caller.
func Harden() error {
	for _, step := range []struct{ option, value uintptr }{
		{unix.PR_SET_DUMPABLE, 0},
		{unix.PR_SET_CHILD_SUBREAPER, 1},
	} {
		if err := unix.Prctl(int(step.option), step.value, 0, 0, 0); err != nil {
			return fmt.Errorf("protecting the runner: %w", err)
		}
	}
	// The call fails in a program with cgo. Each started process sets the flag for itself anyway.
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	if errno != 0 && !errors.Is(errno, unix.ENOTSUP) {
		return fmt.Errorf("protecting the runner: %w", errno)
	}
	if err := lower(unix.RLIMIT_CORE, 0); err != nil {
		return fmt.Errorf("protecting the runner: %w", err)
	}
	unix.Umask(0o077)
	makeThreads(spareThreads)
	return ignoreSignals()
}

// makeThreads makes n threads exist at once. Go keeps them for later use.
func makeThreads(n int) {
	var all, done sync.WaitGroup
	all.Add(n)
	done.Add(n)
	for range n {
		go func() {
			runtime.LockOSThread()
			all.Done()
			all.Wait()
			runtime.UnlockOSThread()
			done.Done()
		}()
	}
	done.Wait()
}
