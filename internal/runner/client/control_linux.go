// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// control makes the kernel end a connection whose sent data is not acknowledged: while data is unacknowledged, no
// keep-alive probes are sent.
func control(_, _ string, conn syscall.RawConn) error {
	var err error
	controlErr := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unanswered.Milliseconds()))
	})
	return errors.Join(err, controlErr)
}
