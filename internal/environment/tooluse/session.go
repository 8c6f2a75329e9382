// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tooluse

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// World has the tasks, the tools and the rewards, which may be a remote server's. It is safe for concurrent
// use. An error of it or of its sessions is a *environment.Fault, or the context's.
type World interface {
	// Splits is that of environment.Environment.
	Splits(ctx context.Context) ([]environment.Split, error)
	// Open begins the session of one episode. After an error there is nothing to be closed.
	Open(ctx context.Context, task environment.Task) (Session, error)
}

// Session is the world's side of one episode, used by one goroutine.
type Session interface {
	// Messages are what the conversation begins with. It is called once, before all else.
	Messages(ctx context.Context) ([]chat.Message, error)
	// Tools that may be called in this episode. It is called once, after Messages.
	Tools(ctx context.Context) ([]chat.Tool, error)
	// Call runs a tool. A call that cannot be run as the policy wrote it is no error: its Result is Wrong.
	Call(ctx context.Context, call chat.ToolCall) (Result, error)
	// Answer takes a reply that calls no tool.
	Answer(ctx context.Context, reply environment.Reply) (Outcome, error)
	// Finish gives what is still to be given for an episode that ends without an answer. last is the reply
	// that it ended with, nil if there was none. The Outcome's Text does not count.
	Finish(ctx context.Context, last *environment.Reply) (Outcome, error)
	// Close is called once, whatever happened, and does not fail.
	Close()
}

// Result is what a call gives.
type Result struct {
	// Text for the policy: what the tool says, or what is wrong with the call.
	Text string
	// Wrong says that the tool was not run, since the call has no such tool or arguments.
	Wrong bool
	// Rewards of the call; none is not a reward of 0.
	Rewards []environment.Reward
	// Done says that the call ended the episode.
	Done bool
}

// Outcome is what a reply without calls, or the end of the episode, gives.
type Outcome struct {
	Rewards []environment.Reward
	// Metrics to be averaged over episodes.
	Metrics map[string]float64
	// Text, if there is any, is the user's next message: the episode goes on. Without it the episode is over.
	Text string
}
