// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

const (
	// streamBuffer is how many bytes are on their way in each direction.
	streamBuffer = 8 << 10
	// lastBytes is how long a program may write after the gateway has closed the connection, and how long a caller's
	// connection may take to end after its call.
	lastBytes = 5 * time.Second
	// stall is how long a program may leave its connection unread. After that, the end of the connection counts as the
	// program's doing.
	stall = 2 * time.Second
)

// stream is a connection of a program, whose bytes a connection of the caller carries.
type stream struct {
	gateway *callGateway
	program *net.TCPConn
	caller  *connection
	// blocked is when the current write to the program began, in Unix nanoseconds; 0 if there is none. hasStalled says
	// that a write took longer than stall.
	blocked    atomic.Int64
	hasStalled atomic.Bool
}

// run carries bytes until both directions have ended. A connection that the caller closes ends with the alert
// close_notify. If a connection ends without it, run reports that to the call.
func (s *stream) run() {
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-stop:
			return
		case <-s.gateway.ended:
		}
		_ = s.program.SetDeadline(time.Now())
		select {
		case <-stop:
		case <-time.After(lastBytes):
			_ = s.caller.secure().NetConn().Close()
		}
	}()
	var both sync.WaitGroup
	both.Go(func() {
		if err := s.up(); err != nil { // nothing more will come down
			s.lose(err)
			_ = s.caller.secure().NetConn().Close()
		}
	})
	if err := s.down(); err != nil {
		s.lose(err)
		_ = s.program.Close()
	}
	both.Wait()
}

// lose reports a broken connection before the program sees its end.
func (s *stream) lose(err error) {
	if !s.isStalled() {
		s.gateway.broke("A connection to the caller's gateway has broken: " + err.Error() + ".")
	}
}

// up carries the bytes that the program writes.
func (s *stream) up() error {
	buffer := make([]byte, streamBuffer)
	for {
		n, err := s.program.Read(buffer)
		if n > 0 {
			if _, err := s.caller.conn.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return s.caller.secure().CloseWrite()
		}
	}
}

// down carries the bytes that the gateway writes. It drops the bytes if the program has gone.
func (s *stream) down() error {
	buffer := make([]byte, streamBuffer)
	for gone := false; ; {
		n, err := s.caller.rest.Read(buffer)
		if n > 0 && !gone {
			gone = s.give(buffer[:n]) != nil
		}
		if protocol.IsOrderly(err) {
			_ = s.program.CloseWrite()
			_ = s.program.SetReadDeadline(time.Now().Add(lastBytes))
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// give writes to the program, which may take as long as it likes.
func (s *stream) give(text []byte) error {
	began := time.Now()
	s.blocked.Store(began.UnixNano())
	_, err := s.program.Write(text)
	s.blocked.Store(0)
	if time.Since(began) > stall {
		s.hasStalled.Store(true)
	}
	return err
}

// isStalled reports whether the program has left its reply unread for a while. The caller cannot end such a connection
// in order, since its alert waits behind the reply.
func (s *stream) isStalled() bool {
	blocked := s.blocked.Load()
	return s.hasStalled.Load() || blocked != 0 && time.Since(time.Unix(0, blocked)) > stall
}

// secure returns the connection of a caller over TCP.
func (c *connection) secure() *tls.Conn { return c.conn.(*tls.Conn) }

func noStreams(field string) *protocol.Error {
	return &protocol.Error{Code: protocol.CodeBadRequest, Field: field,
		Message: "A caller at the Unix socket has no streams: its gateway is on the loopback interface that programs have."}
}

// serveStream makes the connection carry the bytes of a program's connection, and waits for its end.
func (c *connection) serveStream(reader *protocol.Reader, hello *protocol.Message) error {
	if c.caller == nil {
		wrong := noStreams("stream")
		c.send(&protocol.Message{Type: protocol.TypeError, ID: hello.ID, Error: wrong})
		return wrong
	}
	// A program that does not read must not end the connection.
	raw, err := c.secure().NetConn().(protocol.Whole).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0)
		})
	}
	if err != nil {
		return err
	}
	taken := c.server.offers.take(hello.Stream)
	if taken == nil {
		wrong := &protocol.Error{Code: protocol.CodeUnknownStream, Message: "There is no such stream any more."}
		c.send(&protocol.Message{Type: protocol.TypeError, ID: hello.ID, Error: wrong})
		return wrong
	}
	c.rest, c.carried = reader.Rest(), make(chan struct{})
	line, err := protocol.Encode(&protocol.Message{Type: protocol.TypeHello, ID: hello.ID, Version: protocol.CallerVersion,
		Runner: c.server.Version})
	if err == nil {
		_ = c.conn.SetDeadline(time.Now().Add(protocol.HelloTimeout))
		_, err = c.conn.Write(line)
	}
	if err != nil {
		taken <- nil
		return err
	}
	_ = c.conn.SetDeadline(time.Time{})
	c.server.forget(c)
	taken <- c
	<-c.carried
	return io.EOF
}
