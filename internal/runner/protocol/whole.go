// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"io"
	"net"
)

// ErrCut reports that the connection below TLS has ended without the alert close_notify of the other end.
var ErrCut = fmt.Errorf("the connection was cut: %w", io.EOF)

// Whole is a TCP connection to use below TLS. TLS itself does not distinguish the end of the TCP connection between
// two records from the alert close_notify; with Whole such an end is ErrCut.
type Whole struct{ *net.TCPConn }

// Read implements net.Conn.
func (w Whole) Read(b []byte) (int, error) {
	n, err := w.TCPConn.Read(b)
	if errors.Is(err, io.EOF) {
		err = ErrCut
	}
	return n, err
}

// IsOrderly reports whether the error of a read means that the other end has ended the connection with close_notify.
func IsOrderly(err error) bool { return errors.Is(err, io.EOF) && !errors.Is(err, ErrCut) }

// WholeListener is a listener of TCP whose connections are Whole.
type WholeListener struct{ net.Listener }

// Accept implements net.Listener.
func (l WholeListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Whole{conn.(*net.TCPConn)}, nil
}
