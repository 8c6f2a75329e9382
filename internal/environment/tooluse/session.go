// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tooluse

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// Backend has the tasks, the tools and the rewards. It may be a remote server. It is safe for concurrent use. An
// error of a backend or of its sessions is a *environment.Fault, or the context's.
type Backend interface {
	// Splits has the contract of environment.Environment.
	Splits(ctx context.Context) ([]environment.Split, error)
	// Open begins the session of one episode. After an error there is nothing to close.
	Open(ctx context.Context, task environment.Task) (Session, error)
}

// Session is one episode at the backend, used by one goroutine.
type Session interface {
	// Messages returns the first messages of the conversation. It is called once, before any other method.
	Messages(ctx context.Context) ([]chat.Message, error)
	// Tools returns the tools that may be called in this episode. It is called once, after Messages.
	Tools(ctx context.Context) ([]chat.Tool, error)
	// Call runs a tool. A call that cannot be run as the policy wrote it is not an error: its Result is Invalid.
	Call(ctx context.Context, call chat.ToolCall) (Result, error)
	// Answer takes a reply that calls no tool.
	Answer(ctx context.Context, reply environment.Reply) (Outcome, error)
	// Finish returns the reward of an episode that ends without an answer. The argument last is the reply that it ended
	// with, or nil if there was no reply. The Text of the Outcome is ignored.
	Finish(ctx context.Context, last *environment.Reply) (Outcome, error)
	// Close is called once, also after errors, and does not fail. Its context has a deadline.
	Close(ctx context.Context)
}

// Result is the result of a call.
type Result struct {
	// Text is for the policy: the output of the tool, or the defect of the call.
	Text string
	// Invalid means that the tool was not run, since the call names an unknown tool or has wrong arguments.
	Invalid bool
	// Rewards are the rewards of the call. No reward is not a reward of 0.
	Rewards []environment.Reward
	// Metrics are averaged over episodes, by name. The last value of a name counts.
	Metrics map[string]float64
	// Done means that the call ended the episode.
	Done bool
}

// Outcome is the result of a reply without calls, or of the end of the episode.
type Outcome struct {
	Rewards []environment.Reward
	// Metrics are averaged over episodes, by name.
	Metrics map[string]float64
	// Ungraded is the reply that ended the episode, if the group is scored together; otherwise it is nil.
	Ungraded *environment.Reply
	// Text is the user's next message. If it is empty, the episode is over.
	Text string
}
