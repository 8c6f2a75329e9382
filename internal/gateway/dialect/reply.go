// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// Reply is a reply in the words that all dialects have in common.
type Reply struct {
	// ID is the ID of the reply. The IDs of items in it derive from it.
	ID string
	// Created is the time of the reply.
	Created time.Time
	// Model is the name that the client sees.
	Model string
	// Open says that the last choice is unfinished: its message will grow, and the encoded stream ends with the text so
	// far.
	Open bool
	// Choices are the choices in the order of their prompts. A reply of responses or messages has one.
	Choices []Choice
	Usage   Usage
	// Sign returns the signature of a thinking block. A message with reasoning needs it in Anthropic's dialect.
	Sign func(thinking string) string
}

// Choice is one sample.
type Choice struct {
	// Message is the message of an assistant. Arguments of its calls are JSON objects.
	Message chat.Message
	Stop    StopReason
	// Sent are the pieces of the choice's reasoning and text that a stream has sent so far.
	Sent []string
	// StopText is the stop text that ended the reply, for StopSequence.
	StopText string
	// Text is the sampled text, and Prompt the text that an echo puts before it, for completions.
	Text, Prompt string
	// Tokens are the sampled tokens, and PromptTokens the tokens of the prompt, for requests with log-probabilities.
	Tokens, PromptTokens []Token
}

// Token is a token with its log-probability.
type Token struct {
	Text string
	// Logprob is nil if the token has none, as the first token of a prompt.
	Logprob *float64
	// Top are the known likeliest tokens at this place, likeliest first.
	Top []Token
}

// StopReason says why a reply ended.
type StopReason int

// The reasons.
const (
	// StopEnd means that the policy ended the message.
	StopEnd StopReason = iota
	// StopLength means that the reply reached its maximum number of tokens.
	StopLength
	// StopContext means that the reply reached the length of the model's context.
	StopContext
	// StopSequence means that the reply reached a stop text of the request.
	StopSequence
	// StopCalls means that the message ends with calls of tools.
	StopCalls
)

// Usage is the number of tokens of a reply.
type Usage struct {
	// Prompt counts the tokens of the prompt, and Cached the prompt tokens that were not computed again.
	Prompt, Cached int
	// Completion counts the sampled tokens, and Reasoning the sampled tokens of reasoning.
	Completion, Reasoning int
}

// check returns an error if the endpoint cannot express the reply.
func (r *Reply) check(endpoint Endpoint) error {
	if len(r.Choices) == 0 {
		return fmt.Errorf("encoding reply %s: it has no choice", r.ID)
	}
	if one := endpoint == Responses || endpoint == Messages; one && len(r.Choices) > 1 {
		return fmt.Errorf("encoding reply %s: it has %d choices, and the endpoint has words for one", r.ID, len(r.Choices))
	}
	for _, choice := range r.Choices {
		for _, call := range choice.Message.Calls {
			if !isObject(call.Arguments) {
				return fmt.Errorf("encoding reply %s: arguments of call %s are not a JSON object", r.ID, call.ID)
			}
		}
		thinking, _ := texts(choice.Message)
		if endpoint == Messages && thinking != "" && r.Sign == nil {
			return fmt.Errorf("encoding reply %s: its reasoning has no signature", r.ID)
		}
	}
	return nil
}

// Encode returns the body of the answer to a request that does not stream.
func Encode(request *Request, reply *Reply) ([]byte, error) {
	if err := reply.check(request.Endpoint); err != nil {
		return nil, err
	}
	switch request.Endpoint {
	case ChatCompletions:
		return marshal(chatBody(request, reply)), nil
	case Completions:
		return marshal(completionsBody(request, reply)), nil
	case Responses:
		return marshal(responseBody(request, reply)), nil
	case Messages:
		return marshal(messageBody(reply)), nil
	default:
		return nil, fmt.Errorf("encoding reply %s: count_tokens has no reply, see EncodeCount", reply.ID)
	}
}

// EncodeCount returns the answer to a request to count_tokens.
func EncodeCount(tokens int) []byte { return marshal(map[string]int{"input_tokens": tokens}) }

// marshal returns the JSON of a value. All values of this package can be encoded: numbers are finite, and raw texts
// were checked.
func marshal(value any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic("encoding " + err.Error()) // A programming error: a type that JSON does not have.
	}
	return bytes.TrimRight(text.Bytes(), "\n")
}

// number returns a log-probability that JSON can express: nil if there is none, and a very small number for an
// impossible token.
func number(logprob *float64) *float64 {
	const impossible = -9999
	if logprob == nil || math.IsNaN(*logprob) || math.IsInf(*logprob, 1) {
		return nil
	}
	value := max(*logprob, impossible)
	return &value
}
