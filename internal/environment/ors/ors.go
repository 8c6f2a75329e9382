// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package ors drives environments on servers that speak the Open Reward Standard: the server owns the tasks, the
// tools and the rewards, and this package is the backend of the environment tooluse. It works with servers of both
// Python packages (ors-sdk and openreward), with the hosted service, and with other servers.
//
// An episode is a session of the server: create_session gives its ID, create begins the task, prompt and task_tools
// describe it, call runs a tool, delete and delete_session end it. A ping every ten seconds keeps it. A tool never
// runs twice: a call whose connection breaks is continued by the ID of the server's task, and a call whose connection
// breaks before the server has named that ID is a fault, after which the episode begins anew in another session.
package ors

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Defaults of Options.
const (
	DefaultCreateTimeout = 2 * time.Minute
	DefaultCallTimeout   = 5 * time.Minute
	// DefaultMaxText is the number of bytes of a tool's output that the policy gets.
	DefaultMaxText = 256 << 10
)

const (
	// checkTimeout bounds a check of the server.
	checkTimeout = 30 * time.Second
	// deleteTimeout bounds the end of a session whose context may have ended.
	deleteTimeout = 10 * time.Second
	// requestGrace is added to the timeout of a request, so that its context ends first.
	requestGrace = 30 * time.Second
)

// maxReply bounds one reply, in bytes. A longer one is a fault.
const maxReply = 16 << 20

// Options describe a server and how it is used.
type Options struct {
	// BaseURL is the server's address, without a path of the protocol.
	BaseURL string
	// Environment is the name of an environment of the server, in upper or lower case; empty for the server's first
	// environment.
	Environment string
	// Deployment is the name by which the hosted service finds the server, as OWNER/NAME; empty for other servers.
	Deployment string
	// Toolset is the name of a toolset that the server adds to the environment's tools; empty for none.
	Toolset string
	// AnswerTool is the tool that is called with replies that call no tool, if the server itself names no tool for them;
	// nil if there is none. The policy does not see it.
	AnswerTool *settings.AnswerTool
	// APIKey is sent with every request unless it is empty.
	APIKey string
	// Secrets are handed to each session, in the way that Delivery says.
	Secrets  []Secret
	Delivery settings.SecretDelivery
	// CreateTimeout bounds everything before the first turn: session, set-up, prompt and tools.
	CreateTimeout time.Duration
	// CallTimeout bounds a call of a tool.
	CallTimeout time.Duration
	// MaxSessions bounds the sessions that are open at once; 0 means no bound.
	MaxSessions int
	// MaxText is the number of bytes of a tool's output that the policy gets; the rest is cut off and counted.
	MaxText int
	// HTTP sends the requests. Defaults to a client of this package.
	HTTP   *http.Client
	Logger *slog.Logger
}

// Backend is a server as the environment tooluse uses it. It is safe for concurrent use.
type Backend struct {
	options Options
	http    *http.Client
	secrets deliveredSecrets
	// sessions has an element for each open session if their number is bounded.
	sessions chan struct{}
	// lacksMessages is set once the server has shown that it has prompts only.
	lacksMessages atomic.Bool
	// streams is set once the server has answered with a stream.
	streams atomic.Bool
	// names is held while name, the name of the environment, is looked up.
	names sync.Mutex
	name  string
	pace  pace
}

// pace holds the times between requests. Tests shorten them.
type pace struct {
	// ping is the time between two pings of a session.
	ping time.Duration
	// idle is how long a stream may bring no byte.
	idle time.Duration
	// retry are the pauses before a request is sent again.
	retry wait.Backoff
}

// New returns the backend of a server. It sends nothing yet.
func New(options Options) (*Backend, error) {
	if err := checkURL(options.BaseURL); err != nil {
		return nil, err
	}
	secrets, err := deliver(options.Secrets, options.Delivery)
	if err != nil {
		return nil, err
	}
	options.CreateTimeout = cmp.Or(options.CreateTimeout, DefaultCreateTimeout)
	options.CallTimeout = cmp.Or(options.CallTimeout, DefaultCallTimeout)
	options.MaxText = cmp.Or(options.MaxText, DefaultMaxText)
	options.Logger = cmp.Or(options.Logger, slog.New(slog.DiscardHandler))
	b := &Backend{
		options: options, http: newHTTPClient(options), secrets: secrets,
		pace: pace{ping: 10 * time.Second, idle: 30 * time.Second,
			retry: wait.Backoff{First: 500 * time.Millisecond, Longest: 10 * time.Second}},
	}
	if options.MaxSessions > 0 {
		b.sessions = make(chan struct{}, options.MaxSessions)
	}
	return b, nil
}

// Open implements tooluse.Backend. It waits while MaxSessions sessions are open, and while the server has no capacity
// for another session. CreateTimeout bounds both waits.
func (b *Backend) Open(ctx context.Context, task environment.Task) (tooluse.Session, error) {
	ctx, stop := context.WithTimeoutCause(ctx, b.options.CreateTimeout, errCreateTimeout)
	defer stop()
	if err := b.acquire(ctx); err != nil {
		return nil, err
	}
	s, err := b.reserve(ctx, true)
	if err != nil {
		b.release()
		return nil, unavailable(ctx, err)
	}
	if err := s.create(ctx, task); err != nil {
		err = b.withNames(ctx, s.id, err)
		s.abandon(ctx)
		b.release()
		return nil, faultOf(ctx, "beginning the task", err)
	}
	s.startPings()
	return s, nil
}

// reserve makes a session that has no task yet, so that a failure concerns the server and no task. If the server has
// no capacity, reserve either waits or returns the server's answer.
func (b *Backend) reserve(ctx context.Context, waits bool) (*session, error) {
	name, err := b.environmentName(ctx)
	if err != nil {
		return nil, err
	}
	id, err := b.createSession(ctx, waits)
	if err != nil {
		return nil, err
	}
	return &session{backend: b, id: id, name: name, stopPings: func() {}}, nil
}

// Check implements environment.Checker: it makes a session and deletes it. A server that is at its capacity is
// available.
func (b *Backend) Check(ctx context.Context) error {
	ctx, stop := context.WithTimeoutCause(ctx, checkTimeout, errCheckTimeout)
	defer stop()
	s, err := b.reserve(ctx, false)
	switch {
	case hasStatus(err, http.StatusTooManyRequests):
		return nil
	case err != nil:
		return unavailable(ctx, err)
	}
	s.delete(ctx)
	return nil
}

// acquire takes the place of one session.
func (b *Backend) acquire(ctx context.Context) error {
	if b.sessions == nil {
		return nil
	}
	select {
	case b.sessions <- struct{}{}:
		return nil
	case <-ctx.Done():
		return faultOf(ctx, "waiting for one of the sessions that may be open at once", ctx.Err())
	}
}

func (b *Backend) release() {
	if b.sessions != nil {
		<-b.sessions
	}
}

// errCreateTimeout is the cause of a context whose session took too long to create.
var errCreateTimeout = errors.New("the session was not ready within timeouts.createSeconds")

// errCheckTimeout is the cause of a context whose check took too long.
var errCheckTimeout = errors.New("the server made no session within 30 seconds")

// errCallTimeout is the cause of a context whose call took too long.
var errCallTimeout = errors.New("the tool did not return within timeouts.callSeconds")

var (
	_ tooluse.Backend     = (*Backend)(nil)
	_ environment.Checker = (*Backend)(nil)
)
