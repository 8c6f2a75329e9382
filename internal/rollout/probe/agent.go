// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

var _ environment.AgentPolicy = (*parrot)(nil)

// Complete implements environment.AgentPolicy. An agent gets at most maxRounds replies, like a conversation of a
// program.
func (p *parrot) Complete(_ context.Context, asked environment.Completion) (environment.Completed, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tools = p.tools || len(asked.Tools) > 0
	if p.completed == maxRounds {
		return environment.Completed{}, &environment.LimitError{Limit: "requests"}
	}
	p.completed++
	return environment.Completed{ID: fmt.Sprintf("%016x", p.completed), Text: p.text, PromptText: asked.Text,
		PromptTokens: 1, Message: chat.Message{Role: chat.RoleAssistant, Content: p.text}}, nil
}

// CountTokens implements environment.AgentPolicy. A probe has no model.
func (p *parrot) CountTokens(asked environment.Completion) (int, error) {
	return 1 + len(asked.Messages), nil
}

// Last implements environment.AgentPolicy.
func (p *parrot) Last() (environment.Reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.completed == 0 {
		return environment.Reply{}, &environment.Fault{Permanent: true, Err: errors.New("the agent never asked the policy")}
	}
	return environment.Reply{Message: chat.Message{Role: chat.RoleAssistant, Content: p.text}}, nil
}
