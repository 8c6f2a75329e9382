// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package isolation

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notifies reports whether a kernel of a release lets the runner connect for a program. The runner needs seccomp
// notifications, the ioctl that adds a file descriptor to the program (Linux 5.9), and access to the memory of
// programs of the same user.
func notifies(release string) bool {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 || !isAtLeast(release, 5, 9) {
		return false
	}
	scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	return err != nil || strings.TrimSpace(string(scope)) < "2"
}

func isAtLeast(release string, major, minor int) bool {
	parts := strings.SplitN(release, ".", 3)
	if len(parts) < 2 {
		return false
	}
	digits := strings.IndexFunc(parts[1], func(r rune) bool { return r < '0' || r > '9' })
	if digits >= 0 {
		parts[1] = parts[1][:digits]
	}
	first, err1 := strconv.Atoi(parts[0])
	second, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (first > major || first == major && second >= minor)
}

// unreachable are the system calls by which a program could reach others without the runner, with the errors that the
// program gets. They are io_uring, which bypasses a filter; listening at a port; and access to the memory and the
// files of processes that have no filter yet.
var unreachable = []struct {
	errno unix.Errno
	calls []uint32
}{
	{unix.ENOSYS, []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}},
	{unix.EACCES, []uint32{unix.SYS_BIND, unix.SYS_LISTEN}},
	{unix.EPERM, []uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_SETNS,
	}},
}

// socketType has the type of a socket without its flags.
const socketType = 0xf

// argument is the offset of the low half of an argument.
func argument(n uint32) uint32 { return offsetFirst + 8*n }

// ofCall returns instructions that apply body to one system call, and skip it for all others.
func ofCall(call uint32, body ...unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{load(offsetCall), jump(unix.BPF_JEQ, call, 0, uint8(len(body)))}, body...)
}

// optionsOfRoutes are options of a socket that send its packets elsewhere: a source route, a device, and protocols on
// top of TCP.
var optionsOfRoutes = []struct{ level, option uint32 }{
	{unix.SOL_IP, unix.IP_OPTIONS}, {unix.SOL_SOCKET, unix.SO_BINDTODEVICE}, {unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX},
	{unix.SOL_TCP, unix.TCP_ULP},
}

// networkFilter returns the filter of programs for which the runner connects. Such a program has only TCP sockets and
// socket pairs. A datagram, or a first packet that carries data, names its receiver in memory that a filter cannot
// see.
func networkFilter(architecture uint32) []unix.SockFilter {
	program := ofArchitecture(architecture)
	for _, group := range unreachable {
		for _, call := range group.calls {
			program = append(program, jump(unix.BPF_JEQ, call, 0, 1), fail(group.errno))
		}
	}
	kind := unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: socketType}
	allow, refuse := result(unix.SECCOMP_RET_ALLOW), fail(unix.EACCES)
	blocks := [][]unix.SockFilter{
		limitsOfOthers(),
		ofCall(unix.SYS_SOCKET,
			load(argument(0)), jump(unix.BPF_JEQ, unix.AF_INET, 1, 0), fail(unix.EAFNOSUPPORT),
			load(argument(1)), kind, jump(unix.BPF_JEQ, unix.SOCK_STREAM, 1, 0), refuse,
			load(argument(2)), jump(unix.BPF_JEQ, 0, 2, 0), jump(unix.BPF_JEQ, unix.IPPROTO_TCP, 1, 0), refuse, allow),
		ofCall(unix.SYS_SOCKETPAIR,
			load(argument(0)), jump(unix.BPF_JEQ, unix.AF_UNIX, 1, 0), refuse,
			load(argument(1)), kind, jump(unix.BPF_JEQ, unix.SOCK_STREAM, 2, 0),
			jump(unix.BPF_JEQ, unix.SOCK_SEQPACKET, 1, 0), refuse, allow),
		ofCall(unix.SYS_CONNECT, result(unix.SECCOMP_RET_USER_NOTIF)),
		ofCall(unix.SYS_SENDTO,
			load(argument(4)), jump(unix.BPF_JEQ, 0, 1, 0), refuse,
			load(argument(4)+4), jump(unix.BPF_JEQ, 0, 1, 0), refuse,
			load(argument(3)), jump(unix.BPF_JSET, unix.MSG_FASTOPEN, 0, 1), refuse, allow),
		ofCall(unix.SYS_SENDMSG, load(argument(2)), jump(unix.BPF_JSET, unix.MSG_FASTOPEN, 0, 1), refuse, allow),
		ofCall(unix.SYS_SENDMMSG, load(argument(3)), jump(unix.BPF_JSET, unix.MSG_FASTOPEN, 0, 1), refuse, allow),
	}
	for _, each := range optionsOfRoutes {
		blocks = append(blocks, ofCall(unix.SYS_SETSOCKOPT,
			load(argument(1)), jump(unix.BPF_JEQ, each.level, 0, 3),
			load(argument(2)), jump(unix.BPF_JEQ, each.option, 0, 1), fail(unix.EPERM)))
	}
	for _, block := range blocks {
		program = append(program, block...)
	}
	return append(program, allow)
}

// ConfineNetwork makes the current thread, and the program that it becomes, connect through the process that holds the
// listener. It sends the listener over a Unix socket. The thread must have no_new_privs.
func ConfineNetwork(socket int) error {
	listener, err := install(networkFilter, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("handing on the listener for connections: %w", err)
	}
	return unix.Close(listener)
}

// ReceiveListener returns the listener that was sent to the other end of a Unix socket.
func ReceiveListener(socket int) (*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("receiving the listener for connections: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("receiving the listener for connections: %d messages, %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("receiving the listener for connections: %d files, %w", len(fds), err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, fmt.Errorf("receiving the listener for connections: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "connections"), nil
}
