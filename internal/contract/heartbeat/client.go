// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package heartbeat is the HTTP interface through which the manager asks a learner for the progress of its run: a
// client for the manager, and a handler for the learner.
package heartbeat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
)

// ReplyError reports an answer with status 200 that is not a reply the manager can read. Its text stays the same as
// long as the cause does.
type ReplyError struct{ Problem string }

// Error implements error.
func (e *ReplyError) Error() string { return "decoding heartbeat's reply: " + e.Problem }

// Client is the manager's side of one run.
type Client struct {
	// HTTP trusts the run's certificate.
	HTTP *http.Client
	// Token is the manager's token of the run.
	Token string
}

// Post sends one heartbeat to a learner; address is host:port. An *httpstatus.Error or a *ReplyError means that a
// server answered, but not with a reply. The caller bounds the reply with contract.HeartbeatReply.Bounded.
func (c Client) Post(ctx context.Context, address string,
	request contract.HeartbeatRequest) (contract.HeartbeatReply, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return contract.HeartbeatReply{}, fmt.Errorf("encoding heartbeat: %w", err)
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+contract.HeartbeatPath,
		bytes.NewReader(body))
	if err != nil {
		return contract.HeartbeatReply{}, fmt.Errorf("building heartbeat: %w", err)
	}
	post.Header.Set("Authorization", "Bearer "+c.Token)
	post.Header.Set("Content-Type", "application/json")
	response, err := c.HTTP.Do(post)
	if err != nil {
		return contract.HeartbeatReply{}, fmt.Errorf("posting heartbeat: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxReplyBytes+1))
	if err != nil {
		return contract.HeartbeatReply{}, fmt.Errorf("reading heartbeat's reply: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return contract.HeartbeatReply{}, httpstatus.New(post, response, string(data), c.Token)
	}
	if len(data) > maxReplyBytes {
		return contract.HeartbeatReply{}, &ReplyError{fmt.Sprintf("it is longer than the %d KiB that the manager reads",
			maxReplyBytes>>10)}
	}
	var reply contract.HeartbeatReply
	if err := json.Unmarshal(data, &reply); err != nil {
		return contract.HeartbeatReply{}, &ReplyError{contract.Truncate(err.Error(), 256)}
	}
	return reply, nil
}
