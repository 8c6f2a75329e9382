// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package environment is the contract between the rollout worker and the environments of a run: tasks, episodes of one
// or more turns and roles, rewards, and faults as outcomes. It knows neither Tinker nor tokens nor Kubernetes. The
// packages below implement it: dataset provides the tasks, verify scores replies, singleturn asks for one answer,
// tooluse has episodes of several turns with tools, and registry builds an environment by its definition.
package environment

import (
	"context"
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// Environment has tasks and runs episodes of them. It is safe for concurrent use.
type Environment interface {
	// Splits lists the splits, sorted by name. It may ask a server. An error is a *Fault, or the context's.
	Splits(ctx context.Context) ([]Split, error)
	// Start begins an episode of one task. The same arguments begin the same episode if the environment is a
	// function of its seed. An error is a *Fault, or the context's; then there is nothing to close.
	Start(ctx context.Context, task Task) (Episode, error)
}

// Answerer is an environment that knows the answers to its tasks, so that it can be checked without a model.
type Answerer interface {
	// Answers returns a reply that earns the most on the task, and one that must earn less. The error is ErrNoAnswers
	// if they are not known; otherwise it is a *Fault, or the context's.
	Answers(ctx context.Context, task Task) (right, wrong string, err error)
}

// Exampler is an environment whose rewards are defined by a user, so that the right reward of a reply is not known. A
// check plays its examples to find out whether any of them earns a reward.
type Exampler interface {
	// Examples returns replies to try on the task: one that answers it, if there is any, and an empty one. The error is
	// ErrNoAnswers if the environment has none to try.
	Examples(ctx context.Context, task Task) ([]string, error)
}

// GroupGrader is an environment that may score the episodes of a group together, once all of them have ended.
type GroupGrader interface {
	// GradeGroup scores the replies that ended the episodes of one task without a reward of their own (Turn.Ungraded). It
	// returns the rewards and metrics of each, in their order. An error is a *Fault, or the context's.
	GradeGroup(ctx context.Context, task Task, replies []Reply) ([]Turn, error)
}

// Checker is an environment that may be unavailable for a while, since a server or another process runs it.
type Checker interface {
	// Check returns nil if the environment can begin episodes. Otherwise the error says why it cannot, or is the
	// context's.
	Check(ctx context.Context) error
}

// CheckerOf returns the result of the environment's method Checker. It returns nil if there is no such method, since
// the environment is part of this process then.
func CheckerOf(env Environment) Checker {
	if served, ok := env.(interface{ Checker() Checker }); ok {
		return served.Checker()
	}
	return nil
}

// ErrNoAnswers reports that an environment does not know the answers to its tasks.
var ErrNoAnswers = errors.New("the environment does not know the answers to its tasks")

// Split is a named list of tasks.
type Split struct {
	Name  string
	Tasks int64
}

// Task identifies the task of an episode.
type Task struct {
	Split string
	// Index is the task's index in the split, from 0.
	Index int64
	// Seed is for the random numbers of the environment. Each member and each try has its own.
	Seed uint64
}

// Episode is one try at a task, used by one goroutine. The caller calls Prompts, then Step for each batch of replies
// until a Turn is Done, or Finish in place of a Step, and Close in any case.
type Episode interface {
	// Prompts returns the first requests to the policy, at least one. It is called once.
	Prompts(ctx context.Context) ([]Prompt, error)
	// Step takes the replies to the last requests, in their order, and returns the next requests, or the end.
	// After an error, which is a *Fault or the context's, only Close may follow: a retry is a new episode.
	Step(ctx context.Context, replies []Reply) (Turn, error)
	// Finish ends an episode that has reached a limit, and returns the reward of the episode as it stands. The Turn is
	// Done.
	Finish(ctx context.Context) (Turn, error)
	// Close is called once, also after errors, and does not fail. Its context is alive, though the context of Start may
	// have ended, and has a deadline. A call that has ignored the end of its context may still be in progress.
	Close(ctx context.Context)
}

// Prompt asks one role of the policy for a reply.
type Prompt struct {
	// Role names the role in the workflow; it is "" for the one role of a simple environment. It follows
	// contract.RoleRule, and is the same in all prompts of a conversation.
	Role string
	// Conversation is the key of a trajectory: a prompt continues the earlier ones with its key. The prompts of
	// one batch have different keys. It is "" only in an environment of one conversation.
	Conversation string
	// Messages are the whole conversation so far. The message of a Reply is best included unchanged: then the next
	// prompt contains the tokens that were sampled, and both train as one sequence.
	Messages []chat.Message
	// Tools are the tools that the role may call.
	Tools []chat.Tool
}

// Reply is the policy's answer to a Prompt.
type Reply struct {
	Role         string
	Conversation string
	// Message is the parsed reply; Content is its text without the stop sequence.
	Message chat.Message
	// Truncated means that a token limit cut the reply: it has no stop.
	Truncated bool
	// Malformed describes the defect of a reply that ended but could not be parsed. It is empty if the reply could be
	// parsed.
	Malformed string
	// MaxCalls is how many calls the reply may lead to before a limit ends the episode; 0 means that there is no limit.
	// Calls beyond it are not run.
	MaxCalls int
	// Usage counts the turns, calls and tokens of the episode so far, including this batch of replies.
	Usage Usage
	// Seed is for the random numbers of a grader. It is a function of the run's seed and of the request.
	Seed uint64
}

// Usage counts turns, calls and tokens of an episode.
type Usage struct {
	// Turns is the number of batches of replies.
	Turns int
	// ToolCalls is the number of calls that earlier replies led to.
	ToolCalls int
	// SampledTokens is the number of tokens of all replies.
	SampledTokens int
}

// Turn is the outcome of a batch of replies.
type Turn struct {
	// Rewards are the rewards of this turn; an episode may get several. No reward is not a reward of 0.
	Rewards []Reward
	// Metrics are averaged over episodes, by name; the last value of a name counts.
	Metrics map[string]float64
	// ToolCalls is the number of calls that the replies led to.
	ToolCalls int
	// Masked are the conversations whose last reply is not trained on. The reply stays in the conversation.
	Masked []string
	// Results are the results of the calls, in their order. Transcripts show them to people.
	Results []ToolResult
	// Ungraded is the reply that ended the episode, if a GroupGrader scores the group together; otherwise it is nil.
	Ungraded *Reply
	// Prompts are the next requests. They are empty when the episode is Done.
	Prompts []Prompt
	Done    bool
	// Finished is set if the episode was ended by the result of a tool, and not by a reply of the policy.
	Finished bool
	// OnlyLast says that, of the conversations that an AgentPolicy has found, only the conversation of the last reply is
	// trained on.
	OnlyLast bool
	// Abandoned is set if replies of the policy ended the episode early, and nothing graded it.
	Abandoned bool
}

// ToolResult is the result of a call as people read it.
type ToolResult struct {
	// Tool is the name of the tool.
	Tool, Text string
	// Reward is the reward of the call. nil means no reward, which is not a reward of 0.
	Reward *float64
}

// Reward is a reward of one turn.
type Reward struct {
	// Conversation is the conversation that earned the reward. If it is "", the whole episode earned the reward, which
	// then counts for each of its conversations. At the end of an episode each conversation that has a reply needs a
	// reward.
	Conversation string
	Value        float64
	// Parts are the parts of Value by name, for metrics.
	Parts map[string]float64
}
