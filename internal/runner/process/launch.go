// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
)

// LaunchArgument is the first argument of the runner's program when it applies limits to itself and then executes
// another program.
const LaunchArgument = "launch"

// Launch has the command, the limits and the isolation of a process.
type Launch struct {
	Command []string
	Env     []string
	Dir     string
	// AddressSpace, OpenFiles and FileBytes are limits of each process of the tree.
	AddressSpace, OpenFiles, FileBytes int64
	// Apart launches the process in its own namespaces. The launch fails if the kernel permits none.
	Apart bool
	// Sandbox has the means that confine a program of the policy; nil if a user wrote the program.
	Sandbox *isolation.Found
	// Network has the means that confine the network of the process, for which the runner then connects; nil if the
	// process uses the network of its container.
	Network *isolation.Found
}

// The file descriptors of a launch in addition to the standard ones.
const (
	launchConfig = 3
	launchStatus = 4
	// launchSocket is a Unix socket, which only a launch with a confined network has.
	launchSocket = 5
)

// niceness is the niceness of programs. A program with hundreds of processes must leave processor time to the runner,
// which has to kill them.
const niceness = 19

// Launched is the main function of the runner's program when it is started with LaunchArgument. It returns only if the
// command cannot be run.
func Launched() {
	debug.SetGCPercent(-1) // a collection would need memory after the limit of memory is set
	runtime.LockOSThread() // niceness and no_new_privs belong to the thread that becomes the program
	unix.CloseOnExec(launchStatus)
	status := os.NewFile(launchStatus, "status")
	err := launch(os.NewFile(launchConfig, "config"))
	fmt.Fprint(status, err)
}

func launch(config *os.File) error {
	text, err := io.ReadAll(config)
	if err != nil {
		return fmt.Errorf("reading what to run: %w", err)
	}
	config.Close()
	var what Launch
	if err := json.Unmarshal(text, &what); err != nil {
		return fmt.Errorf("decoding what to run: %w", err)
	}
	if err := os.Chdir(what.Dir); err != nil {
		return fmt.Errorf("entering the home directory: %w", err)
	}
	name, err := lookUp(what.Command[0], what.Env)
	if err != nil {
		return err
	}
	path, err1 := syscall.BytePtrFromString(name)
	arguments, err2 := syscall.SlicePtrFromStrings(what.Command)
	environment, err3 := syscall.SlicePtrFromStrings(what.Env)
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("preparing the command: %w", err)
	}
	if err := confine(what); err != nil {
		return err
	}
	// syscall.Exec would restore the limit of open files with which this process began.
	_, _, errno := syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(path)),
		uintptr(unsafe.Pointer(&arguments[0])), uintptr(unsafe.Pointer(&environment[0])))
	return fmt.Errorf("running %s: %w", name, errno)
}

// lookUp finds a command in the PATH of an environment.
func lookUp(command string, env []string) (string, error) {
	if strings.Contains(command, "/") {
		return command, nil
	}
	for _, variable := range env {
		dirs, found := strings.CutPrefix(variable, "PATH=")
		if !found {
			continue
		}
		for _, dir := range filepath.SplitList(dirs) {
			name := filepath.Join(dir, command)
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return name, nil
			}
		}
	}
	return "", fmt.Errorf("running %s: %w", command, exec.ErrNotFound)
}

// confine applies limits and isolation to this process, for its program and all descendants.
func confine(what Launch) error {
	unix.Umask(0o077)
	for _, step := range []struct{ option, value uintptr }{
		{unix.PR_SET_NO_NEW_PRIVS, 1},
		{unix.PR_SET_CHILD_SUBREAPER, 1}, // descendants whose parents end stay below this process
	} {
		if err := unix.Prctl(int(step.option), step.value, 0, 0, 0); err != nil {
			return fmt.Errorf("confining the process: %w", err)
		}
	}
	// These two help the runner and cannot always be set. The kernel ends programs before the runner when memory is
	// short.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, niceness)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	_ = unix.CloseRange(launchStatus+1, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	if what.Apart {
		if err := isolation.Enter(what.Sandbox != nil, what.Dir, what.Env); err != nil {
			return err
		}
	}
	if what.Sandbox != nil { // before restoreSignals: Go applies it to all threads with a signal
		if err := what.Sandbox.ConfineFiles(what.Dir, what.Env); err != nil {
			return err
		}
	}
	if what.Network != nil {
		if err := what.Network.ConfineProcess(); err != nil {
			return err
		}
	}
	if err := restoreSignals(); err != nil {
		return err
	}
	if err := forbidCalls(what); err != nil {
		return err
	}
	for _, limit := range []struct {
		resource int
		value    int64
	}{
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_NOFILE, what.OpenFiles},
		{unix.RLIMIT_FSIZE, what.FileBytes},
		// The limit of memory is set last: from here on this process can get no more memory, and ends if it needs some.
		{unix.RLIMIT_AS, what.AddressSpace},
	} {
		if err := lower(limit.resource, uint64(limit.value)); err != nil {
			return fmt.Errorf("limiting the process: %w", err)
		}
	}
	return nil
}

// forbidCalls applies the filter of system calls of a sandbox or of a confined network.
func forbidCalls(what Launch) error {
	switch {
	case what.Sandbox != nil:
		return isolation.ForbidCalls()
	case what.Network != nil:
		return isolation.ConfineNetwork(launchSocket)
	}
	return isolation.ForbidLimits()
}

// lower sets a limit, unless the present limit is lower.
func lower(resource int, value uint64) error {
	var present unix.Rlimit
	if err := unix.Prlimit(0, resource, nil, &present); err != nil {
		return err
	}
	value = min(value, present.Max)
	return unix.Prlimit(0, resource, &unix.Rlimit{Cur: value, Max: value}, nil)
}
