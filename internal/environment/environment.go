// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package environment is the contract between the loop and what it trains on: tasks, episodes of one or
// more turns and roles, rewards, and faults as outcomes. It knows neither Tinker nor tokens nor
// Kubernetes. Implementations live below it: dataset (where tasks come from), verify (what replies are
// worth), singleturn (the two put together) and tooluse (episodes of several turns with tools).
package environment

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// Environment gives tasks and plays episodes of them. It is safe for concurrent use.
type Environment interface {
	// Splits lists what there is, sorted by name. It may ask a server; an error is a *Fault, or the
	// context's.
	Splits(ctx context.Context) ([]Split, error)
	// Start begins an episode of one task. The same arguments begin the same episode where the
	// environment is a function of its seed. An error is a *Fault, or the context's; nothing is left to
	// be closed then.
	Start(ctx context.Context, task Task) (Episode, error)
}

// Answerer is an environment that knows the answers to its tasks, so that it can be checked without a
// model.
type Answerer interface {
	// Answers gives a reply that earns the most on the task and one that must earn less.
	Answers(ctx context.Context, task Task) (right, wrong string, err error)
}

// Split is a named list of tasks.
type Split struct {
	Name  string
	Tasks int64
}

// Task names an episode's task.
type Task struct {
	Split string
	// Index in the split, from 0.
	Index int64
	// Seed for what an environment draws itself: one for each member and try.
	Seed uint64
}

// Episode is one play of a task, used by one goroutine. The order is Prompts, then Step for each batch of
// replies until a Turn is Done, or Finish in place of a Step; Close in any case.
type Episode interface {
	// Prompts are the first requests to the policy; at least one. It is called once.
	Prompts(ctx context.Context) ([]Prompt, error)
	// Step takes the replies to the last requests, in their order, and gives the next ones, or the end.
	// After an error, which is a *Fault or the context's, only Close may follow: a retry is a new episode.
	Step(ctx context.Context, replies []Reply) (Turn, error)
	// Finish ends an episode that a limit keeps from its own end and gives what is still to be given for
	// it as it stands. The Turn it returns is Done.
	Finish(ctx context.Context) (Turn, error)
	// Close is called once, whatever happened, and does not fail. It may outlive the context of Start.
	Close()
}

// Prompt asks one role of the policy for a reply.
type Prompt struct {
	// Role of the workflow; "" for the one role of a simple environment.
	Role string
	// Conversation keys what extends what: prompts of one key form one trajectory. The prompts of one
	// batch have keys of their own.
	Conversation string
	// Messages are the whole conversation so far. What a Reply gave is best put in unchanged: then the
	// tokens that were sampled stand in the next prompt, and both train as one sequence.
	Messages []chat.Message
	// Tools that the role may call.
	Tools []chat.Tool
}

// Reply is what the policy answered to a Prompt.
type Reply struct {
	Role         string
	Conversation string
	// Message is the parsed reply; Content is its text without the stop sequence.
	Message chat.Message
	// Truncated says that a token limit cut the reply: no stop was seen.
	Truncated bool
	// Malformed says what is wrong with a reply that ended but could not be parsed; empty when it could.
	Malformed string
}

// Turn is what follows on replies.
type Turn struct {
	// Rewards of this turn; an episode may get several. A tool that rewards nothing gives none: that is
	// not a reward of 0.
	Rewards []Reward
	// Metrics to be averaged over episodes, by name; the last value of a name counts.
	Metrics map[string]float64
	// ToolCalls that the replies led to.
	ToolCalls int
	// Masked are the conversations whose last reply is not to be trained on; it stays what later turns
	// follow on.
	Masked []string
	// Prompts are the next requests; empty when the episode is Done.
	Prompts []Prompt
	Done    bool
}

// Reward of one turn.
type Reward struct {
	// Conversation that earned it; "" for the whole episode.
	Conversation string
	Value        float64
	// Parts of Value by name, for metrics.
	Parts map[string]float64
}
