// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package isolation

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's structs for a system call that waits for an answer, for the answer, and for a file descriptor that is
// added to the calling process: seccomp_notif, seccomp_notif_resp and seccomp_notif_addfd.
type (
	notification struct {
		id           uint64
		pid, flags   uint32
		call         int32
		architecture uint32
		pointer      uint64
		arguments    [6]uint64
	}
	answer struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
	addition struct {
		id                              uint64
		flags, source, target, newFlags uint32
	}
)

// connectSeconds bounds a connection to one of the permitted addresses, which are on this machine.
const connectSeconds = 10

// maxConnects is how many calls of connect are answered at once for a program.
const maxConnects = 64

// Connect answers the calls of connect of a program, until it has ended or the listener is closed. If a call names a
// permitted address, Connect makes the connection and puts it in the place of the program's socket; every other call
// is refused. A program that changes the address in its memory meanwhile gains nothing, since the address is read
// once.
func Connect(listener *os.File, permitted func(netip.AddrPort) bool) error {
	raw, err := listener.SyscallConn()
	if err != nil {
		return fmt.Errorf("listening for connections: %w", err)
	}
	places := make(chan struct{}, maxConnects)
	for {
		var received notification
		ended := false
		err := raw.Read(func(fd uintptr) bool {
			var isThere bool
			isThere, ended = receive(int(fd), &received)
			return isThere || ended
		})
		if err != nil || ended {
			return nil //nolint:nilerr // The listener was closed: the program has ended.
		}
		if received.id != 0 {
			places <- struct{}{}
			go func() {
				defer func() { <-places }()
				serve(raw, received, permitted)
			}()
		}
	}
}

// receive receives a call if there is one. The id is 0 if the call has gone meanwhile.
func receive(fd int, received *notification) (isThere, ended bool) {
	list := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(list, 0); err != nil {
		return true, false
	}
	if list[0].Revents&unix.POLLIN == 0 {
		return false, list[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
	}
	*received = notification{}
	if control(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(received)) != 0 {
		received.id = 0
	}
	return true, false
}

func control(fd int, request uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	return errno
}

// serve answers one call. Calls of several threads are answered at once.
func serve(raw syscall.RawConn, of notification, permitted func(netip.AddrPort) bool) {
	said := answer{id: of.id}
	connection, flags, errno := connectFor(raw, of, permitted)
	if errno == 0 {
		add := addition{id: of.id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, source: uint32(connection),
			target: uint32(of.arguments[0]), newFlags: flags}
		errno = controlOf(raw, unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&add))
		_ = unix.Close(connection)
	}
	said.errno = -int32(errno)
	_ = controlOf(raw, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&said)) // The program may have ended.
}

func controlOf(raw syscall.RawConn, request uintptr, argument unsafe.Pointer) unix.Errno {
	errno := unix.EBADF
	_ = raw.Control(func(fd uintptr) { errno = control(int(fd), request, argument) })
	return errno
}

// connectFor returns a connection for a call and the flag of its file descriptor, or the error for the program.
func connectFor(raw syscall.RawConn, of notification,
	permitted func(netip.AddrPort) bool) (int, uint32, unix.Errno) {
	address, errno := addressOf(of)
	if errno != 0 {
		return 0, 0, errno
	}
	flags, errno := flagsOf(of)
	if errno != 0 {
		return 0, 0, errno
	}
	// If the call no longer waits, its pid may belong to another process by now, whose memory was read above.
	if errno := controlOf(raw, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&of.id)); errno != 0 {
		return 0, 0, errno
	}
	if !permitted(address) {
		return 0, 0, unix.EACCES
	}
	connection, err := dial(address, flags&unix.O_NONBLOCK != 0)
	if err != nil {
		errno := unix.EACCES
		if errors.As(err, &errno); errno == unix.EINPROGRESS { // the state of a connection after its limit
			errno = unix.ETIMEDOUT
		}
		return 0, 0, errno
	}
	return connection, uint32(flags & unix.O_CLOEXEC), 0
}

// addressOf reads the address that is an argument of a call.
func addressOf(of notification) (netip.AddrPort, unix.Errno) {
	var none netip.AddrPort
	if of.pid == 0 || of.arguments[2] < unix.SizeofSockaddrInet4 {
		return none, unix.EACCES
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", of.pid))
	if err != nil {
		return none, unix.EACCES
	}
	defer memory.Close()
	text := make([]byte, unix.SizeofSockaddrInet4)
	if _, err := memory.ReadAt(text, int64(of.arguments[1])); err != nil {
		return none, unix.EFAULT
	}
	if binary.NativeEndian.Uint16(text) != unix.AF_INET {
		return none, unix.EACCES
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(text[4:8])), binary.BigEndian.Uint16(text[2:4])), 0
}

// flagsOf returns the flags of the socket of a call.
func flagsOf(of notification) (int64, unix.Errno) {
	fd := strconv.FormatUint(of.arguments[0]&0xffffffff, 10)
	target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", of.pid, fd))
	if err != nil {
		return 0, unix.EBADF
	}
	if !strings.HasPrefix(target, "socket:") {
		return 0, unix.ENOTSOCK
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", of.pid, fd))
	if err != nil {
		return 0, unix.EBADF
	}
	for line := range strings.Lines(string(text)) {
		if octal, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, err := strconv.ParseInt(strings.TrimSpace(octal), 8, 64)
			if err != nil {
				return 0, unix.EBADF
			}
			return flags, 0
		}
	}
	return 0, unix.EBADF
}

// dial connects to an address. It sets TCP_NODELAY, since clients set it on the socket that the connection replaces.
func dial(address netip.AddrPort, nonblocking bool) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return 0, err
	}
	limit := unix.Timeval{Sec: connectSeconds}
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit),
		unix.SetsockoptInt(fd, unix.SOL_TCP, unix.TCP_NODELAY, 1),
		unix.Connect(fd, &unix.SockaddrInet4{Port: int(address.Port()), Addr: address.Addr().As4()}),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{}),
		unix.SetNonblock(fd, nonblocking))
	if err != nil {
		_ = unix.Close(fd)
		return 0, err
	}
	return fd, nil
}
