// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// StatusError is an answer other than 200.
type StatusError struct {
	Status  int
	Message string
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the learner answered %d: %s", e.Status, e.Message)
}

// HeartbeatClient is the manager's side of one run.
type HeartbeatClient struct {
	// HTTP trusts the run's certificate.
	HTTP *http.Client
	// Token of the run.
	Token string
}

// Post sends one heartbeat to a learner; address is host:port. A *StatusError says that somebody answered,
// but not with a reply.
func (c HeartbeatClient) Post(ctx context.Context, address string, request HeartbeatRequest) (HeartbeatReply, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return HeartbeatReply{}, fmt.Errorf("encoding heartbeat: %w", err)
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+HeartbeatPath, bytes.NewReader(body))
	if err != nil {
		return HeartbeatReply{}, fmt.Errorf("building heartbeat: %w", err)
	}
	post.Header.Set("Authorization", "Bearer "+c.Token)
	post.Header.Set("Content-Type", "application/json")
	response, err := c.HTTP.Do(post)
	if err != nil {
		return HeartbeatReply{}, fmt.Errorf("posting heartbeat: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxReplyBytes))
	if err != nil {
		return HeartbeatReply{}, fmt.Errorf("reading heartbeat's reply: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return HeartbeatReply{}, &StatusError{Status: response.StatusCode, Message: strings.TrimSpace(Truncate(string(data), 256))}
	}
	var reply HeartbeatReply
	if err := json.Unmarshal(data, &reply); err != nil {
		return HeartbeatReply{}, fmt.Errorf("decoding heartbeat's reply: %w", err)
	}
	return reply, nil
}
