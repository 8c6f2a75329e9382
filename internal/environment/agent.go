// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// AgentPolicy is the Policy of a Program that others wrote. Such a program sends whole conversations, and says of none
// which one it continues. A request whose messages extend a reply of the episode continues its conversation with the
// tokens that were sampled; any other opens a branch. It is safe for concurrent use, and requests may be open at the
// same time.
type AgentPolicy interface {
	Policy
	// Complete returns the reply to a request. The error is a *LimitError where a limit forbids the request, and a
	// *RequestError where the request cannot be answered. After any other error the episode is over.
	Complete(ctx context.Context, request Completion) (Completed, error)
	// CountTokens returns the number of tokens that the prompt of a request has. Errors are as the errors of Complete.
	CountTokens(request Completion) (int, error)
	// Last returns the last reply. It is a permanent *Fault where the last request was made while another was open, so
	// that their order would decide, and where there is none.
	Last() (Reply, error)
}

// LimitEpisodeSeconds is the limit of the time of an episode, as a *LimitError has it.
const LimitEpisodeSeconds = "episode_seconds"

// TimedPolicy is an AgentPolicy that says when the time of the episode is over. A program that has called Expired ends
// soon after that by itself, and is not ended until then.
type TimedPolicy interface {
	AgentPolicy
	// Expired returns a channel that is closed once the time is over. Requests have a *LimitError from then on.
	Expired() <-chan struct{}
}

// Completion is a request of an agent. It has messages, or a text or tokens that the reply follows on.
type Completion struct {
	Role string
	// FrozenName is the name of the model that is asked in place of the policy; empty for the policy. Frozen is that
	// model.
	FrozenName string
	Frozen     FrozenModel
	Messages   []chat.Message
	Tools      []chat.Tool
	// Raw says that the reply follows on Text, or on Tokens where they are not nil.
	Raw    bool
	Text   string
	Tokens []int32
	// Stop are texts at which the reply ends as well.
	Stop []string
	// MaxTokens bounds the reply below the run's own limit; 0 for no further bound.
	MaxTokens int
	// Logprobs asks for the texts of the sampled tokens, and Scored for the texts and log-probabilities of the prompt's
	// tokens.
	Logprobs, Scored bool
	// Unanswered says that no reply is wanted: nothing is sampled, and no conversation continues.
	Unanswered bool
}

// Completed is the reply to a Completion.
type Completed struct {
	// ID follows from the request, and from the number of equal requests of the episode before it.
	ID string
	// Message is the reply with its reasoning.
	Message chat.Message
	// Text is the text of a reply to a raw prompt, and PromptText the text of that prompt.
	Text, PromptText string
	// Truncated means that a token limit cut the reply.
	Truncated bool
	// StopText is the text of Completion.Stop that ended the reply; empty for none.
	StopText string
	// PromptTokens counts the tokens of the prompt, and KnownTokens the prompt tokens that the conversation already had.
	PromptTokens, KnownTokens int
	// ReasoningTokens are the sampled tokens of its reasoning.
	ReasoningTokens int
	// Tokens are the sampled tokens, with their log-probabilities, and their texts if these were wanted.
	Tokens   []int32
	Texts    []string
	Logprobs []float32
	// PromptTexts are the texts of the tokens of the prompt, if these were wanted, and PromptLogprobs their
	// log-probabilities, but for the first, which has none.
	PromptTexts    []string
	PromptLogprobs []float32
}

// FrozenPrefix begins the names by which agents ask frozen models.
const FrozenPrefix = "frozen/"

// FrozenModel is a model beside the policy, which is not trained. It is safe for concurrent use.
type FrozenModel interface {
	// Complete returns the reply to a request. The reply has no ID, and its tokens count as a judge's. The same request
	// with the same seed has the same reply. The error is a *RequestError, a *Fault or the context's.
	Complete(ctx context.Context, asked Completion, seed uint64) (Completed, error)
	// CountTokens returns the number of tokens that the prompt of a request has. Errors are as the errors of Complete.
	CountTokens(ctx context.Context, asked Completion) (int, error)
}

// RequestError reports a request of an agent that cannot be answered. The episode continues.
type RequestError struct {
	// Message is a whole sentence for the author of the agent.
	Message string
}

// Error implements error.
func (e *RequestError) Error() string { return "answering an agent: " + e.Message }
