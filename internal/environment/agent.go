// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// AgentPolicy is the Policy of a Program that others wrote. Such a program sends whole conversations, and does not
// say which earlier conversation a request continues. A request whose messages extend a reply of the episode
// continues the conversation of that reply, with the tokens that were sampled; any other request opens a branch. It
// is safe for concurrent use, and several requests may be open at the same time.
type AgentPolicy interface {
	Policy
	// Complete returns the reply to a request. The error is a *LimitError if a limit forbids the request, and a
	// *RequestError if the request cannot be answered. After any other error the episode is over.
	Complete(ctx context.Context, request Completion) (Completed, error)
	// CountTokens returns the number of tokens that the prompt of a request has. It returns the same errors as Complete.
	CountTokens(request Completion) (int, error)
	// Last returns the last reply. The error is a permanent *Fault if there is no such reply, or if the last request was
	// made while another request was open: then chance would decide which reply is the last.
	Last() (Reply, error)
}

// LimitEpisodeSeconds is the Limit of a *LimitError for the time limit of an episode.
const LimitEpisodeSeconds = "episode_seconds"

// TimedPolicy is an AgentPolicy that reports when the time of the episode is over. A program that has called Expired
// is not stopped at that time: it must end by itself soon afterwards.
type TimedPolicy interface {
	AgentPolicy
	// Expired returns a channel that is closed once the time is over. From then on requests fail with a *LimitError.
	Expired() <-chan struct{}
}

// Completion is a request of an agent. It has messages, or a text or tokens that the reply continues.
type Completion struct {
	Role string
	// FrozenName is the name of the model that is asked instead of the policy, and Frozen is that model. FrozenName is
	// empty if the policy is asked.
	FrozenName string
	Frozen     FrozenModel
	Messages   []chat.Message
	Tools      []chat.Tool
	// Raw says that the reply continues Tokens, or Text if Tokens is nil.
	Raw    bool
	Text   string
	Tokens []int32
	// Stop are additional texts that end the reply.
	Stop []string
	// MaxTokens limits the tokens of the reply, in addition to the run's own limit; 0 means no additional limit.
	MaxTokens int
	// Logprobs asks for the texts of the sampled tokens, and Scored for the texts and log-probabilities of the prompt's
	// tokens.
	Logprobs, Scored bool
	// Unanswered says that no reply is wanted: nothing is sampled, and no conversation is continued.
	Unanswered bool
}

// Completed is the reply to a Completion.
type Completed struct {
	// ID is a function of the request and of the number of equal requests before it in the episode.
	ID string
	// Message is the reply with its reasoning.
	Message chat.Message
	// Text is the text of a reply to a raw prompt, and PromptText the text of that prompt.
	Text, PromptText string
	// Truncated means that a token limit cut the reply.
	Truncated bool
	// StopText is the text of Completion.Stop that ended the reply; empty if none did.
	StopText string
	// PromptTokens counts the tokens of the prompt, and KnownTokens the prompt tokens that the conversation already had.
	PromptTokens, KnownTokens int
	// ReasoningTokens counts the sampled tokens of the reply's reasoning.
	ReasoningTokens int
	// Tokens are the sampled tokens, with their log-probabilities, and their texts if these were wanted.
	Tokens   []int32
	Texts    []string
	Logprobs []float32
	// PromptTexts are the texts of the tokens of the prompt, if these were wanted, and PromptLogprobs are the
	// log-probabilities of all these tokens but the first, which has none.
	PromptTexts    []string
	PromptLogprobs []float32
}

// FrozenPrefix begins the names by which agents ask frozen models.
const FrozenPrefix = "frozen/"

// FrozenModel is a model that agents may ask besides the policy. It is not trained. It is safe for concurrent use.
type FrozenModel interface {
	// Complete returns the reply to a request. The reply has no ID, and its tokens count as tokens of a judge. The same
	// request with the same seed gets the same reply. The error is a *RequestError, a *Fault or the context's.
	Complete(ctx context.Context, asked Completion, seed uint64) (Completed, error)
	// CountTokens returns the number of tokens that the prompt of a request has. It returns the same errors as Complete.
	CountTokens(ctx context.Context, asked Completion) (int, error)
}

// RequestError reports a request of an agent that cannot be answered. The episode continues.
type RequestError struct {
	// Message is a whole sentence for the author of the agent.
	Message string
}

// Error implements error.
func (e *RequestError) Error() string { return "answering an agent: " + e.Message }
