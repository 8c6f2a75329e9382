// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// run plays a program with a policy that says one text. A program that asks on and on is ended, as by a limit of a
// run: then nothing is known of its rewards.
func (c *canary) run(ctx context.Context, program environment.Program, text string) ([]environment.Turn, error) {
	policy := &parrot{text: text, turns: map[string]int{}}
	turn, err := environment.Call(ctx, c.calls, "Run of the environment",
		func(ctx context.Context) (environment.Turn, error) { return program.Run(ctx, policy) })
	c.tools = c.tools || policy.hasTools()
	var limit *environment.LimitError
	if errors.As(err, &limit) {
		return []environment.Turn{{Done: true}}, nil
	}
	return []environment.Turn{turn}, err
}

// parrot is a policy that says one text.
type parrot struct {
	text string

	mu    sync.Mutex
	turns map[string]int
	// completed counts the replies to an agent.
	completed int
	tools     bool
}

var _ environment.Policy = (*parrot)(nil)

// Chat implements environment.Policy.
func (p *parrot) Chat(_ context.Context, prompt environment.Prompt) (environment.Reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tools = p.tools || len(prompt.Tools) > 0
	if p.turns[prompt.Conversation] == maxRounds {
		return environment.Reply{}, &environment.LimitError{Limit: "turns"}
	}
	p.turns[prompt.Conversation]++
	return environment.Reply{Role: prompt.Role, Conversation: prompt.Conversation, Message: chat.Message{
		Role: chat.RoleAssistant, Content: p.text, Reply: p.turns[prompt.Conversation],
	}}, nil
}

// Sample implements environment.Policy. Without a model nobody knows tokens.
func (p *parrot) Sample(context.Context, environment.TokenPrompt) (environment.TokenReply, error) {
	return environment.TokenReply{}, &environment.LimitError{Limit: "turns"}
}

func (p *parrot) hasTools() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tools
}
