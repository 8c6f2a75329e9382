// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// run plays a program with a policy that says one text. A program that does not stop asking is ended, as by a limit
// of a run: then its rewards are unknown.
func (c *canary) run(ctx context.Context, program environment.Program, text string) ([]environment.Turn, error) {
	policy := &parrot{text: text, turns: map[string]int{}, roles: map[string]string{}}
	turn, err := environment.Call(ctx, c.calls, "Run of the environment",
		func(ctx context.Context) (environment.Turn, error) { return program.Run(ctx, policy) })
	c.tools = c.tools || policy.hasTools()
	var limit *environment.LimitError
	if errors.As(err, &limit) {
		return []environment.Turn{{Done: true}}, nil
	}
	if err == nil {
		err = policy.check(turn.Rewards)
	}
	return []environment.Turn{turn}, err
}

// parrot is a policy that says one text.
type parrot struct {
	text string

	mu sync.Mutex
	// turns and roles have the number of replies and the role of each conversation, by its key.
	turns map[string]int
	roles map[string]string
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
	if err := p.ask(prompt.Conversation, prompt.Role); err != nil {
		return environment.Reply{}, err
	}
	if p.turns[prompt.Conversation] == maxRounds {
		return environment.Reply{}, &environment.LimitError{Limit: "turns"}
	}
	p.turns[prompt.Conversation]++
	return environment.Reply{Role: prompt.Role, Conversation: prompt.Conversation, Message: chat.Message{
		Role: chat.RoleAssistant, Content: p.text, Reply: p.turns[prompt.Conversation],
	}}, nil
}

// Sample implements environment.Policy. There are no tokens without a model.
func (p *parrot) Sample(_ context.Context, prompt environment.TokenPrompt) (environment.TokenReply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ask(prompt.Conversation, prompt.Role); err != nil {
		return environment.TokenReply{}, err
	}
	return environment.TokenReply{}, &environment.LimitError{Limit: "turns"}
}

// ask notes that a conversation was asked for. The caller holds the lock.
func (p *parrot) ask(key, role string) error {
	if known, ok := p.roles[key]; ok && known != role {
		return environment.OtherRoleError(key, role, known)
	}
	p.roles[key] = role
	return nil
}

// check returns the fault of a program that rewards a conversation in which it never asked. The conversations of agents
// have no keys here.
func (p *parrot) check(rewards []environment.Reward) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range rewards {
		if _, asked := p.roles[r.Conversation]; !asked && r.Conversation != "" && p.completed == 0 {
			return environment.UnaskedRewardError(r.Conversation, slices.Sorted(maps.Keys(p.roles)))
		}
	}
	return nil
}

func (p *parrot) hasTools() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tools
}
