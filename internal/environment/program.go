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

// Policy answers the requests of a Program. It is safe for concurrent use. A conversation has at most one open
// request, and parallel requests name their conversations by keys: otherwise the order in which requests arrive would
// decide their samples. A program that breaks this, or that ends while a request is open, is at fault.
type Policy interface {
	// Chat returns the reply to a prompt. The reply's Usage and MaxCalls are not set. The error is a *LimitError if a
	// limit forbids the request. After any other error the episode is over.
	Chat(ctx context.Context, prompt Prompt) (Reply, error)
	// Sample returns the tokens that continue a prompt, for programs that render prompts themselves. It returns the same
	// errors as Chat.
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
	// Limit is the name of the limit in stop reasons.
	Limit string
	// Tokens is the number of tokens of the prompt, and Most is the limit, if it is a limit of tokens.
	Tokens, Most int
}

// Error implements error.
func (e *LimitError) Error() string { return "the episode has reached the limit " + e.Limit }

// Unasked implements the methods of Episode that a Program does not have. Each returns a fault.
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
// others are the keys of the conversations in which it asked.
func UnaskedRewardError(key string, others []string) error {
	quoted := make([]string, len(others))
	for i, other := range others {
		quoted[i] = fmt.Sprintf("%q", other)
	}
	err := fmt.Errorf("the environment rewards the conversation %q, which it never asked for: its conversations are %s",
		key, strings.Join(quoted, ", "))
	return &Fault{Permanent: true, Err: err}
}
