// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package connections records which pods of the local cluster connect to which ports of other pods. All pods are at one
// bridge in one network namespace, so a packet socket there sees the first packet of each TCP connection as it arrives
// at a pod, after the addresses of Services have been rewritten.
package connections

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// opened is the opening of a TCP connection, as its first packet tells.
type opened struct {
	from, to netip.Addr
	port     uint16
}

// openings is a filter for the first packets of TCP connections over IPv4: packets with the flag SYN and without ACK.
var openings = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 0}, // version and length of the header
	{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xf0},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x40, Jf: 7},
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 9}, // protocol
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_TCP, Jf: 5},
	{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 0}, // X is the length of the header
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_IND, K: 13}, // flags of TCP
	{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0x12},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x02, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: 60},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
}

// open opens a packet socket in the network namespace of a process.
func open(pid int) (int, error) {
	runtime.LockOSThread() // The namespace is a thread's.
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return -1, err
	}
	defer func() { _ = own.Close() }()
	other, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/net")
	if err != nil {
		return -1, err
	}
	defer func() { _ = other.Close() }()
	if err := unix.Setns(int(other.Fd()), unix.CLONE_NEWNET); err != nil {
		return -1, fmt.Errorf("entering the network namespace of process %d: %w", pid, err)
	}
	fd, err := packetSocket()
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		// The thread stays locked: it ends with its goroutine.
		return -1, errors.Join(err, fmt.Errorf("leaving the network namespace: %w", back))
	}
	runtime.UnlockOSThread()
	return fd, err
}

func packetSocket() (int, error) {
	const all = unix.ETH_P_ALL
	protocol := int(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, all)))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return -1, fmt.Errorf("opening a packet socket: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(openings)), Filter: &openings[0]}
	timeout := unix.NsecToTimeval(int64(200 * time.Millisecond))
	const buffer = 64 << 20 // for the packets that arrive while the reader does not run
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer),
		unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
	)
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("preparing the packet socket: %w", err)
	}
	return fd, nil
}

// receive returns the next opening that leaves the bridge for a pod. It returns false if there was none before the
// socket's timeout, or if the packet is no such opening.
func receive(fd int) (opened, bool, error) {
	packet := make([]byte, 128)
	n, from, err := unix.Recvfrom(fd, packet, 0)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return opened{}, false, nil
	}
	if err != nil {
		return opened{}, false, fmt.Errorf("receiving packets: %w", err)
	}
	if link, ok := from.(*unix.SockaddrLinklayer); !ok || link.Pkttype != unix.PACKET_OUTGOING {
		return opened{}, false, nil
	}
	found, ok := parse(packet[:n])
	return found, ok, nil
}

// parse reads the addresses and the port of an IPv4 packet with a TCP header.
func parse(packet []byte) (opened, bool) {
	if len(packet) < 20 {
		return opened{}, false
	}
	header := int(packet[0]&0x0f) * 4
	if len(packet) < header+4 {
		return opened{}, false
	}
	return opened{
		from: netip.AddrFrom4([4]byte(packet[12:16])), to: netip.AddrFrom4([4]byte(packet[16:20])),
		port: binary.BigEndian.Uint16(packet[header+2:]),
	}, true
}
