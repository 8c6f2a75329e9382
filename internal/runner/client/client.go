// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package client is the worker's side of the runner's protocol: it starts programs, calls them, answers their
// questions, and decides which calls to repeat after a process has ended.
package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// ErrLost reports that the connection has ended. The runner has ended all programs of the connection.
var ErrLost = errors.New("the connection to the runner has ended")

// Failure is the error of a failed request, with the evidence about its end.
type Failure struct {
	Err      *protocol.Error
	Evidence *protocol.Evidence
}

// Error returns code and message.
func (f *Failure) Error() string { return f.Err.Error() }

// Question is a question that a call asks.
type Question struct {
	Method string
	Params json.RawMessage
}

// Asker answers a question. Its context ends with the call. An error that is a *protocol.Error is passed on with its
// code.
type Asker func(ctx context.Context, q Question) (json.RawMessage, error)

// Call is a call of a program.
type Call struct {
	Method  string
	Params  json.RawMessage
	Seed    uint64
	Session string
	// Alone runs the call in a process of its own.
	Alone bool
	// Ask answers the questions of the call. If it is nil, they fail.
	Ask Asker
	// Gateway is a text that stands for the address of a gateway in Params. The runner replaces it with an address of its
	// own. Serve receives each connection that a program makes to that address, and closes the connection.
	Gateway string
	Serve   func(net.Conn)
	// Answers has the answers to the questions of an earlier, equal call; nil if there was none. It has its own Asker,
	// which replaces Ask.
	Answers *Answers
}

// Result is the result of a request.
type Result struct {
	Value    json.RawMessage
	Evidence protocol.Evidence
}

// The time limits of connecting, and of writing a line to a runner that does not read; and the pause before another
// look for a socket that does not exist.
const (
	dialTimeout  = 10 * time.Second
	writeTimeout = time.Minute
	socketPause  = 50 * time.Millisecond
)

// unanswered is how long sent data may stay unacknowledged: a machine that has gone sends nothing.
const unanswered = 30 * time.Second

// silence finds out that the runner's machine has gone, even if nothing is being sent to it.
var silence = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// Client is a connection to a runner. It is safe for concurrent use.
type Client struct {
	conn    net.Conn
	at      Address
	version int
	// Runner is the version of the runner's program, and Isolation is how it can confine programs.
	Runner    string
	Isolation protocol.Isolation

	writing sync.Mutex // held while a line is written, so that ids are in the order of the lines
	last    int64

	mu      sync.Mutex
	pending map[int64]*pending
	ended   chan struct{}
	err     error // why it has ended
}

// pending is a request that has not been answered.
type pending struct {
	answer chan *protocol.Message
	ask    Asker
	ctx    context.Context // of its questions and streams
	// streams are its connections to a gateway; nil if the request has no gateway.
	streams *streams
	// questions counts the questions that are being answered.
	questions sync.WaitGroup
}

// Address is where a runner serves callers.
type Address struct {
	// Socket is the path of its Unix socket.
	Socket string
	// TCP is its address for net.Dial, instead of Socket. TLS and Token are used with TCP only.
	TCP   string
	TLS   *tls.Config
	Token string
	// unbounded sets no limit to the time until sent bytes are acknowledged.
	unbounded bool
}

// Dial connects to the runner at a Unix socket.
func Dial(ctx context.Context, path string) (*Client, error) {
	return DialAddress(ctx, Address{Socket: path})
}

// DialAddress connects to the runner at an address.
func DialAddress(ctx context.Context, at Address) (*Client, error) {
	conn, err := at.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to the runner: %w", err)
	}
	c := &Client{conn: conn, at: at, pending: map[int64]*pending{}, ended: make(chan struct{})}
	reader := protocol.NewReader(conn, protocol.DefaultLines, protocol.ToCaller)
	hello, err := greet(conn, reader, &protocol.Message{Type: protocol.TypeHello, Versions: protocol.CallerVersions(),
		Token: at.Token})
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("connecting to the runner: %w", err)
	}
	c.version, c.Runner = hello.Version, hello.Runner
	if hello.Isolation != nil {
		c.Isolation = *hello.Isolation
	}
	go c.read(reader)
	return c, nil
}

func (a Address) dial(ctx context.Context) (net.Conn, error) {
	if a.TCP == "" {
		dialer := net.Dialer{Timeout: dialTimeout}
		return dialer.DialContext(ctx, "unix", a.Socket)
	}
	direct := &net.Dialer{Timeout: dialTimeout, KeepAliveConfig: silence, Control: control}
	if a.unbounded {
		direct.Control = nil
	}
	conn, err := direct.DialContext(ctx, "tcp", a.TCP)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, protocol.HelloTimeout)
	defer cancel()
	secured := tls.Client(protocol.Whole{TCPConn: conn.(*net.TCPConn)}, a.TLS)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}

// Await connects to a runner that may not have started yet. It waits up to patience for the runner to listen.
func Await(ctx context.Context, at Address, patience time.Duration) (*Client, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		c, err := DialAddress(ctx, at)
		absent := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
		if !absent {
			return c, err
		}
		if wait.Sleep(waiting, socketPause) != nil {
			return nil, err
		}
	}
}

// greet sends a hello and returns the runner's.
func greet(conn net.Conn, reader *protocol.Reader, hello *protocol.Message) (*protocol.Message, error) {
	_ = conn.SetReadDeadline(time.Now().Add(protocol.HelloTimeout))
	if err := write(conn, hello); err != nil {
		return nil, err
	}
	answer, err := reader.Read()
	if err != nil {
		return nil, err
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	if answer.Type != protocol.TypeHello || !slices.Contains(hello.Versions, answer.Version) {
		return nil, fmt.Errorf("reading the runner's hello: it has chosen version %d", answer.Version)
	}
	return answer, errors.Join(conn.SetReadDeadline(time.Time{}), conn.SetWriteDeadline(time.Time{}))
}

// Close ends the connection, and with it its programs.
func (c *Client) Close() { c.end(ErrLost) }

func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.ended)
		_ = c.conn.Close()
	}
}

func (c *Client) write(m *protocol.Message) error { return write(c.conn, m) }

func write(conn net.Conn, m *protocol.Message) error {
	line, err := protocol.Encode(m)
	if err != nil {
		return err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err = conn.Write(line)
	return err
}

// send writes a message that is not a request.
func (c *Client) send(m *protocol.Message) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.write(m); err != nil {
		c.end(fmt.Errorf("%w: %w", ErrLost, err))
		return ErrLost
	}
	return nil
}

// read reads the messages of the runner until the connection ends.
func (c *Client) read(reader *protocol.Reader) {
	for {
		m, err := reader.Read()
		if err != nil {
			var wrong *protocol.Error
			if errors.As(err, &wrong) && wrong.Code == protocol.CodeUnknownType { // a type of a later minor version
				continue
			}
			c.end(fmt.Errorf("%w: %w", ErrLost, err))
			return
		}
		if m.Type == protocol.TypeAsk {
			c.asked(m)
			continue
		}
		if m.Type == protocol.TypeConnected {
			c.connected(m)
			continue
		}
		c.mu.Lock()
		p := c.pending[m.ID]
		delete(c.pending, m.ID)
		c.mu.Unlock()
		if p != nil {
			p.answer <- m
		} else if m.Type == protocol.TypeError && m.ID == 0 {
			c.end(fmt.Errorf("%w: %w", ErrLost, m.Error))
			return
		}
	}
}

// asked answers a question in the background.
func (c *Client) asked(m *protocol.Message) {
	c.mu.Lock()
	p := c.pending[m.Call]
	if p != nil {
		p.questions.Add(1)
	}
	c.mu.Unlock()
	if p == nil { // the call has ended
		return
	}
	answer := &protocol.Message{Type: protocol.TypeAnswer, ID: m.ID, Program: m.Program}
	go func() {
		defer p.questions.Done()
		var value json.RawMessage
		var err error = &protocol.Error{
			Code: protocol.CodeUnknownMethod, Message: "Nobody answers questions of this call.",
		}
		if p.ask != nil {
			value, err = p.ask(p.ctx, Question{Method: m.Method, Params: m.Params})
		}
		answer.Value = value
		if err != nil && !errors.As(err, &answer.Error) {
			answer.Error = &protocol.Error{Code: protocol.CodeQuestionFailed, Message: err.Error()}
		}
		_ = c.send(answer) // an error ends the connection, which the call reports
	}()
}

// do sends a request and waits for its answer. It cancels a request whose context ends. When do returns, none of the
// request's questions is still being answered, so that a repetition finds the known answers.
func (c *Client) do(ctx context.Context, m *protocol.Message, ask Asker, through *streams) (Result, error) {
	questions, cancel := context.WithCancel(ctx)
	p := &pending{answer: make(chan *protocol.Message, 1), ask: ask, ctx: questions, streams: through}
	defer func() {
		cancel()
		c.mu.Lock()
		delete(c.pending, m.ID)
		c.mu.Unlock()
		p.questions.Wait()
	}()
	if err := c.request(m, p); err != nil {
		return Result{}, err
	}
	select {
	case answer := <-p.answer:
		return c.result(answer)
	case <-c.ended:
		return Result{}, c.err
	case <-ctx.Done():
		if err := c.send(&protocol.Message{Type: protocol.TypeCancel, ID: m.ID, Program: m.Program}); err != nil {
			return Result{}, err
		}
		return Result{}, ctx.Err()
	}
}

func (c *Client) request(m *protocol.Message, p *pending) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.last++
	m.ID = c.last
	c.mu.Lock()
	err := c.err
	c.pending[m.ID] = p
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err := c.write(m); err != nil {
		c.end(fmt.Errorf("%w: %w", ErrLost, err))
		return ErrLost
	}
	return nil
}

func (c *Client) result(m *protocol.Message) (Result, error) {
	evidence := m.Evidence
	if evidence == nil {
		evidence = &protocol.Evidence{}
	}
	if m.Type == protocol.TypeError {
		if m.Error == nil {
			m.Error = &protocol.Error{Code: protocol.CodeException, Message: "The runner gave no error."}
		}
		return Result{}, &Failure{Err: m.Error, Evidence: evidence}
	}
	return Result{Value: m.Value, Evidence: *evidence}, nil
}

// Ended is closed when the connection has ended, and its programs with it.
func (c *Client) Ended() <-chan struct{} { return c.ended }

// Program is a started program.
type Program struct {
	client *Client
	name   string
	// Value is the value in the ready message of its first process.
	Value json.RawMessage
}

// Start starts a program under a name, and returns when the program takes calls.
func (c *Client) Start(ctx context.Context, name string, spec protocol.Spec) (*Program, error) {
	started, err := c.do(ctx, &protocol.Message{Type: protocol.TypeStart, Program: name, Spec: &spec}, nil, nil)
	if err != nil {
		return nil, err
	}
	return &Program{client: c, name: name, Value: started.Value}, nil
}

// Stop ends the program, and returns when nothing of it is left.
func (p *Program) Stop(ctx context.Context) error {
	_, err := p.client.do(ctx, &protocol.Message{Type: protocol.TypeStop, Program: p.name}, nil, nil)
	return err
}

// Open begins a session.
func (p *Program) Open(ctx context.Context, session string, seed uint64) (Result, error) {
	return p.client.do(ctx, &protocol.Message{
		Type: protocol.TypeOpen, Program: p.name, Session: session, Seed: seed & protocol.MaxSeed,
	}, nil, nil)
}

// CloseSession ends a session.
func (p *Program) CloseSession(ctx context.Context, session string) (Result, error) {
	return p.client.do(ctx, &protocol.Message{Type: protocol.TypeClose, Program: p.name, Session: session}, nil, nil)
}

// Try calls the program once. Call repeats calls that were lost with a process.
func (p *Program) Try(ctx context.Context, call Call) (Result, error) {
	if call.Gateway != "" {
		return p.tryThrough(ctx, call)
	}
	return p.client.do(ctx, p.message(call), call.Ask, nil)
}

func (p *Program) message(call Call) *protocol.Message {
	return &protocol.Message{
		Type: protocol.TypeCall, Program: p.name, Session: call.Session, Method: call.Method, Params: call.Params,
		Seed: call.Seed & protocol.MaxSeed, Alone: call.Alone, Gateway: call.Gateway,
	}
}
