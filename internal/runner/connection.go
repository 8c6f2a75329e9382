// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// maxUnread is how many bytes a caller may leave unread before it counts as gone.
const maxUnread = 64 << 20

// connection is one caller.
type connection struct {
	server *Server
	conn   net.Conn
	last   int64 // the largest id of a request
	// caller has the programs of a caller over TCP. It is nil for a caller at the Unix socket, which shares its programs
	// with no other caller.
	caller *caller
	// rest and carried are set if the connection carries a program's connection: rest has its bytes, and carried is
	// closed once it has ended.
	rest    io.Reader
	carried chan struct{}
	// deliver receives the messages to the caller; if it is nil, they are written to conn.
	deliver func(*protocol.Message)

	mu       sync.Mutex
	programs map[string]*program
	asked    int64 // the largest id of a question

	out     chan []byte
	unread  atomic.Int64
	ended   chan struct{}
	endOnce sync.Once
}

// sendQueue is how many lines wait for a caller.
const sendQueue = 1 << 16

func newConnection(s *Server, conn net.Conn) *connection {
	return &connection{
		server: s, conn: conn, programs: map[string]*program{},
		out: make(chan []byte, sendQueue), ended: make(chan struct{}),
	}
}

// serve serves the caller until the caller leaves, breaks the protocol or does not read. Then it ends the caller's
// programs.
func (c *connection) serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, c.close)
	defer stop()
	var writing sync.WaitGroup
	writing.Go(c.write)
	err := c.read()
	if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		c.server.Log.Warn("A connection has ended.", "err", err)
	}
	if c.caller != nil {
		c.server.shared.leave(c.caller)
	}
	c.mu.Lock()
	programs := c.programs
	c.programs = map[string]*program{}
	c.mu.Unlock()
	for _, p := range programs {
		p.post(func() { p.stop(0) })
	}
	for _, p := range programs {
		<-p.ended
	}
	c.flush()
	writing.Wait()
}

func (c *connection) close() {
	c.endOnce.Do(func() {
		close(c.ended)
		_ = c.conn.Close()
	})
}

// flush gives the last lines time to be written. A line that TLS has encrypted and not written costs the caller the
// reason of the end, and makes the alert close_notify behind it unreadable.
func (c *connection) flush() {
	_ = c.conn.SetWriteDeadline(time.Now().Add(farewell))
	c.send(nil)
}

// send queues a message. It never waits: a caller that has left too much unread is disconnected.
func (c *connection) send(message *protocol.Message) {
	if c.deliver != nil {
		c.deliver(message)
		return
	}
	var line []byte
	if message != nil {
		var err error
		if line, err = protocol.Encode(message); err != nil {
			c.server.Log.Error("A message cannot be encoded.", "err", err)
			c.close()
			return
		}
	}
	if c.unread.Add(int64(len(line))) > maxUnread {
		c.server.Log.Warn("A caller does not read. It is disconnected.")
		c.close()
		return
	}
	select {
	case c.out <- line:
	case <-c.ended:
	default:
		c.server.Log.Warn("A caller does not read. It is disconnected.")
		c.close()
	}
}

// write writes lines until the connection ends, or a nil line comes.
func (c *connection) write() {
	defer c.close()
	for {
		select {
		case line := <-c.out:
			if line == nil {
				return
			}
			c.unread.Add(-int64(len(line)))
			if _, err := c.conn.Write(line); err != nil {
				return
			}
		case <-c.ended:
			return
		}
	}
}

func (c *connection) read() error {
	bounds := protocol.DefaultLines
	if c.caller != nil {
		bounds = protocol.HelloLines
	}
	reader := protocol.NewReader(c.conn, bounds, protocol.FromCaller)
	_ = c.conn.SetReadDeadline(time.Now().Add(protocol.HelloTimeout))
	hello, err := c.greet(reader)
	if err != nil {
		return err
	}
	if hello.Stream != "" {
		return c.serveStream(reader, hello)
	}
	_ = c.conn.SetReadDeadline(time.Time{})
	for {
		message, err := reader.Read()
		var wrong *protocol.Error
		if errors.As(err, &wrong) {
			id := int64(0)
			if message != nil {
				id = message.ID
			}
			c.send(&protocol.Message{Type: protocol.TypeError, ID: id, Error: wrong})
			if wrong.Code == protocol.CodeUnknownType {
				continue
			}
		}
		if err != nil {
			return err
		}
		if wrong := c.handle(message); wrong != nil {
			c.send(&protocol.Message{Type: protocol.TypeError, ID: message.ID, Error: wrong})
		}
	}
}

// greet reads the caller's hello, and answers it unless the hello takes a stream.
func (c *connection) greet(reader *protocol.Reader) (*protocol.Message, error) {
	message, err := reader.Read()
	if err != nil {
		return nil, err
	}
	version := protocol.Negotiate(message.Versions)
	if message.Type != protocol.TypeHello || version == 0 {
		wrong := &protocol.Error{Code: protocol.CodeUnsupportedVersion,
			Message: "The caller speaks no version that the runner speaks."}
		if message.Type != protocol.TypeHello {
			wrong = &protocol.Error{Code: protocol.CodeBadRequest, Field: "type", Message: "The first message is no hello."}
		}
		c.send(&protocol.Message{Type: protocol.TypeError, ID: message.ID, Versions: protocol.CallerVersions(),
			Error: wrong})
		return nil, wrong
	}
	if wrong := c.identify(reader, message); wrong != nil {
		c.send(&protocol.Message{Type: protocol.TypeError, ID: message.ID, Error: wrong})
		return nil, wrong
	}
	if message.Stream != "" {
		return message, nil
	}
	bounds := protocol.DefaultLines
	c.send(&protocol.Message{Type: protocol.TypeHello, ID: message.ID, Version: version, Bounds: &bounds,
		Runner:    c.server.Version,
		Isolation: &protocol.Isolation{Level: c.server.Isolation.Level(), Landlock: c.server.Isolation.ABI}})
	return message, nil
}

// handle passes a message to its program, or returns why it cannot.
func (c *connection) handle(m *protocol.Message) *protocol.Error {
	switch m.Type {
	case protocol.TypeHello:
		return &protocol.Error{Code: protocol.CodeBadRequest, Field: "type", Message: "A connection has one hello."}
	case protocol.TypeCancel, protocol.TypeAnswer:
		if c.caller != nil {
			c.server.shared.reply(c.caller, m)
		} else if p := c.program(m.Program); p != nil { // their request may have ended meanwhile
			p.post(func() { p.reply(m) })
		}
		return nil
	}
	if wrong := protocol.ValidateRequest(m); wrong != nil {
		return wrong
	}
	if m.Gateway != "" && c.caller == nil {
		return noStreams("gateway")
	}
	if m.ID <= c.last {
		return &protocol.Error{Code: protocol.CodeDuplicateID, Message: "The id is not above the ids of earlier requests."}
	}
	c.last = m.ID
	if m.Type == protocol.TypeStart {
		return c.start(m)
	}
	if c.caller != nil {
		return c.server.shared.request(c.caller, m)
	}
	p := c.program(m.Program)
	if p == nil {
		return unknownProgram(m.Program)
	}
	p.post(func() { p.request(m) })
	return nil
}

func unknownProgram(name string) *protocol.Error {
	return &protocol.Error{Code: protocol.CodeUnknownProgram, Message: fmt.Sprintf("There is no program %q.", name)}
}

func nameTaken() *protocol.Error {
	return &protocol.Error{Code: protocol.CodeBadRequest, Field: "program", Message: "There is a program of this name."}
}

func tooManyPrograms() *protocol.Error {
	return &protocol.Error{Code: protocol.CodeBusy, Message: fmt.Sprintf("There are %d programs, which is the limit.",
		maxPrograms)}
}

func (c *connection) program(name string) *program {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.programs[name]
}

func (c *connection) start(m *protocol.Message) *protocol.Error {
	spec, wrong := m.Spec.Validate()
	if wrong != nil {
		return wrong
	}
	if c.caller != nil {
		return c.server.shared.start(c.caller, m, spec)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.programs[m.Program] != nil {
		return nameTaken()
	}
	if len(c.programs) == maxPrograms {
		return tooManyPrograms()
	}
	p := newProgram(c, m, spec)
	c.programs[m.Program] = p
	go p.run()
	return nil
}

// forget removes a program that has ended.
func (c *connection) forget(p *program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.programs[p.name] == p {
		delete(c.programs, p.name)
	}
}

// question returns the id of a new question.
func (c *connection) question() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.asked
}

// look makes each program look at its clocks.
func (c *connection) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.programs {
		p.tryPost(func() { p.look(time.Now()) })
	}
}
