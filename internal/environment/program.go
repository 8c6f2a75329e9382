// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Program is an Episode that asks the policy itself, in as many conversations at once as it likes. The caller calls Run
// once, in place of Prompts, Step and Finish, and Close in any case.
type Program interface {
	Episode
	// Run plays the episode to its end, and returns its rewards and metrics in a Turn that is Done. Their order must be a
	// function of the replies, and not of the order in which these came. The error is a *LimitError that the policy
	// returned, if that is why the episode did not come to its end; otherwise it is a *Fault, or the context's.
	Run(ctx context.Context, policy Policy) (Turn, error)
}

// Policy answers the requests of a Program. It is safe for concurrent use. A conversation has one open request, and
// parallel requests have keys of conversations: otherwise the order in which requests come would decide their samples.
// A program that breaks this, or that ends while a request is open, is at fault.
type Policy interface {
	// Chat returns the reply to a prompt. The reply's Usage and MaxCalls are not set. The error is a *LimitError where a
	// limit forbids the request. After any other error the episode is over.
	Chat(ctx context.Context, prompt Prompt) (Reply, error)
	// Sample returns the tokens that follow on others, for programs that render prompts themselves. Errors are as for
	// Chat.
	Sample(ctx context.Context, prompt TokenPrompt) (TokenReply, error)
}

// TokenPrompt is a Prompt in tokens.
type TokenPrompt struct {
	Role, Conversation string
	Tokens             []int32
	// StopStrings or StopTokens end the reply. Defaults to the stop of the model's renderer.
	StopStrings []string
	StopTokens  []int32
}

// TokenReply is the reply to a TokenPrompt.
type TokenReply struct {
	// Tokens are the sampled tokens, including the stop.
	Tokens []int32
	// Truncated means that a token limit cut the reply: it has no stop.
	Truncated bool
}

// LimitError reports that a limit of the run forbids a request of a Program.
type LimitError struct {
	// Limit is the name that stop reasons have for it.
	Limit string
	// Tokens and Most are the tokens of the prompt and the limit, where the limit is one of tokens.
	Tokens, Most int
}

// Error implements error.
func (e *LimitError) Error() string { return "the episode has reached the limit " + e.Limit }

// Unasked is the part of an Episode that a Program does not have.
type Unasked struct{}

var errUnasked = &Fault{Permanent: true, Err: errors.New("the episode asks the policy itself")}

// Prompts implements Episode.
func (Unasked) Prompts(context.Context) ([]Prompt, error) { return nil, errUnasked }

// Step implements Episode.
func (Unasked) Step(context.Context, []Reply) (Turn, error) { return Turn{}, errUnasked }

// Finish implements Episode.
func (Unasked) Finish(context.Context) (Turn, error) { return Turn{}, errUnasked }

// OtherRoleError returns the fault of a program that asks for a role in the conversation of another one.
func OtherRoleError(key, role, other string) error {
	err := fmt.Errorf("the environment asks for the role %q in the conversation %q, which is that of %q: give each role "+
		"a key of its own (in Python key=)", role, key, other)
	return &Fault{Permanent: true, Err: err}
}

// UnaskedRewardError returns the fault of an environment that rewards a conversation in which it never asked. The
// other keys are those of its conversations.
func UnaskedRewardError(key string, others []string) error {
	quoted := make([]string, len(others))
	for i, other := range others {
		quoted[i] = fmt.Sprintf("%q", other)
	}
	err := fmt.Errorf("the environment rewards the conversation %q, which it never asked for: its conversations are %s",
		key, strings.Join(quoted, ", "))
	return &Fault{Permanent: true, Err: err}
}
