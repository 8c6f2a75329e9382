// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package isolation

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forbidden are the system calls that a program of a policy may not make, with the errors that it gets.
var forbidden = []struct {
	errno unix.Errno
	calls []uint32
}{
	// No socket of any family: a Unix socket would reach the runner, and all others the network of the pod. A pair of
	// sockets reaches no other process.
	{unix.EACCES, []uint32{unix.SYS_SOCKET}},
	// io_uring opens sockets past this filter. A filter cannot see the arguments of clone3; libraries fall back to clone.
	// Memory of memfd_create counts for no process. Interpreters need none of these calls.
	{unix.ENOSYS, []uint32{
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3,
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET,
	}},
	// Access to other processes of the same user, and objects of the kernel that outlive a process.
	{unix.EPERM, []uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MQ_OPEN,
		unix.SYS_ADD_KEY, unix.SYS_KEYCTL, unix.SYS_REQUEST_KEY,
	}},
	// Parts of the kernel that no such program needs.
	{unix.EPERM, []uint32{
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	}},
}

// architectures are the kernel's names for the architectures that this program is built for.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// The offsets of fields in struct seccomp_data, in which the filter finds the system call and its arguments.
const (
	offsetCall         = 0
	offsetArchitecture = 4
	offsetFirst        = 16 // the low half of the first argument
)

// x32 is set in the numbers of calls of another interface of x86-64.
const x32 = 0x40000000

// namespaces are the flags of clone that make namespaces.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// The instructions of filters.
func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jump(test uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k}
}

func result(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

func fail(errno unix.Errno) unix.SockFilter { return result(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

// ofArchitecture begins a filter. Calls of any other architecture, such as 32-bit calls, have other numbers and do
// not exist for the program.
func ofArchitecture(architecture uint32) []unix.SockFilter {
	return []unix.SockFilter{
		load(offsetArchitecture), jump(unix.BPF_JEQ, architecture, 1, 0), fail(unix.ENOSYS),
		load(offsetCall), jump(unix.BPF_JGE, x32, 0, 1), fail(unix.ENOSYS),
	}
}

// limitsOfOthers lets a program set only its own limits. The runner has the same user: by setting the runner's limits,
// a program could leave it no files to open, or no processor time.
func limitsOfOthers() []unix.SockFilter {
	return ofCall(unix.SYS_PRLIMIT64,
		load(argument(0)), jump(unix.BPF_JEQ, 0, 4, 0),
		load(argument(2)), jump(unix.BPF_JEQ, 0, 0, 3), // no new limits: it reads them
		load(argument(2)+4), jump(unix.BPF_JEQ, 0, 0, 1),
		result(unix.SECCOMP_RET_ALLOW), fail(unix.EPERM))
}

// ownFilter returns the filter of programs that a user wrote.
func ownFilter(architecture uint32) []unix.SockFilter {
	return append(append(ofArchitecture(architecture), limitsOfOthers()...), result(unix.SECCOMP_RET_ALLOW))
}

// ForbidLimits forbids the current thread, and the program that it becomes, to set the limits of other processes, by
// which it could keep the runner from working. The thread must have no_new_privs.
func ForbidLimits() error {
	if _, known := architectures[runtime.GOARCH]; !known {
		return nil
	}
	_, err := install(ownFilter, 0)
	return err
}

// filter returns the filter of an architecture for programs of a policy.
func filter(architecture uint32) []unix.SockFilter {
	program := ofArchitecture(architecture)
	for _, group := range forbidden {
		for _, call := range group.calls {
			program = append(program, jump(unix.BPF_JEQ, call, 0, 1), fail(group.errno))
		}
	}
	program = append(program, limitsOfOthers()...)
	return append(program, load(offsetCall),
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 3), load(offsetFirst), jump(unix.BPF_JSET, namespaces, 0, 1), fail(unix.EPERM),
		result(unix.SECCOMP_RET_ALLOW))
}

// ForbidCalls denies the current thread, and the program that it becomes, the forbidden system calls. The thread must
// have no_new_privs.
func ForbidCalls() error {
	_, err := install(filter, 0)
	return err
}

// install applies a filter to the current thread. It returns the result of the system call: a file descriptor if the
// flags ask for one.
func install(filterOf func(uint32) []unix.SockFilter, flags uintptr) (int, error) {
	architecture, known := architectures[runtime.GOARCH]
	if !known {
		return 0, fmt.Errorf("forbidding system calls: their numbers on %s are not known", runtime.GOARCH)
	}
	calls := filterOf(architecture)
	program := unix.SockFprog{Len: uint16(len(calls)), Filter: &calls[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(calls)
	if errno != 0 {
		return 0, fmt.Errorf("forbidding system calls: %w", errno)
	}
	return int(fd), nil
}
