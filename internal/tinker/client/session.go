// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"log/slog"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Capabilities returns the base models that the server supports.
func (c *Client) Capabilities(ctx context.Context) (tinker.ServerCapabilities, error) {
	return fetch[tinker.ServerCapabilities](ctx, c.caller, get("get_server_capabilities", "get_server_capabilities", nil))
}

// SessionRequest has the values that the server stores with a session.
type SessionRequest struct {
	Tags         []string
	UserMetadata map[string]string
	ProjectID    string
	// DisplayName is the name of the session for people.
	DisplayName string
}

// CreateSession creates a session and returns its id. If a response is lost, an unused session remains on the
// server, because sessions have no name to find them by.
func (c *Client) CreateSession(ctx context.Context, r SessionRequest) (string, error) {
	r = r.with(c.session)
	body := tinker.CreateSessionRequest{
		Tags: r.Tags, UserMetadata: r.UserMetadata, SDKVersion: tinker.SDKVersion, ProjectID: r.ProjectID,
		DisplayName: r.DisplayName, Type: tinker.TypeCreateSession,
	}
	if body.Tags == nil {
		body.Tags = []string{}
	}
	created, err := post(ctx, c.caller, tinker.TypeCreateSession, tinker.TypeCreateSession, body,
		func(created tinker.CreateSessionResponse) error {
			return required("session_id", created.Session)
		})
	c.logMessages(ctx, created)
	return created.Session, err
}

// logMessages logs the messages for people that the server sends with a session: that a model retires, for example.
func (c *Client) logMessages(ctx context.Context, created tinker.CreateSessionResponse) {
	log := func(level slog.Level, message *string) {
		if message != nil && *message != "" {
			c.log.Log(ctx, level, "server sent a message", "session", created.Session, "message", *message)
		}
	}
	log(slog.LevelInfo, created.InfoMessage)
	log(slog.LevelWarn, created.WarningMessage)
	log(slog.LevelError, created.ErrorMessage)
}

const (
	heartbeatInterval = 10 * time.Second
	heartbeatTimeout  = 10 * time.Second
	// failuresPerWarning is the number of failed heartbeats between two warnings; it takes two minutes.
	failuresPerWarning = 12
)

// Heartbeat keeps a session alive. It is sent once; an error of CategoryNotFound or CategoryFutureLost means that the
// session no longer exists.
func (c *Client) Heartbeat(ctx context.Context, session string) error {
	req, err := postJSON(tinker.TypeSessionHeartbeat, tinker.TypeSessionHeartbeat,
		tinker.SessionHeartbeat{Session: session, Type: tinker.TypeSessionHeartbeat})
	if err != nil {
		return err
	}
	if _, err := c.connect(ctx); err != nil {
		return err
	}
	req.timeout = heartbeatTimeout
	_, err = c.exchange(ctx, req)
	return err
}

// KeepAlive sends a heartbeat every ten seconds until ctx ends, or until the server says that the session does not
// exist: then it calls lost, which may be nil, and returns. It continues after other errors. It blocks, so run it in
// a goroutine.
func (c *Client) KeepAlive(ctx context.Context, session string, lost func(error)) {
	failures := 0
	for wait.Sleep(ctx, heartbeatInterval) == nil {
		err := c.Heartbeat(ctx, session)
		switch CategoryFrom(err) {
		case "":
			failures = 0
			continue
		case tinker.CategoryNotFound, tinker.CategoryFutureLost:
			if lost != nil {
				lost(err)
			}
			return
		}
		if failures++; failures%failuresPerWarning == 0 && ctx.Err() == nil {
			c.log.Warn("session heartbeats fail", "session", session, "failures", failures, "err", err)
		}
	}
}
