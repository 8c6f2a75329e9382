// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// Endpoint is a path of a service for which this package has a codec.
type Endpoint int

// The endpoints with requests that have a body.
const (
	ChatCompletions Endpoint = iota
	Completions
	Responses
	Messages
	CountTokens
)

// Dialect returns the dialect of the endpoint's errors.
func (e Endpoint) Dialect() Dialect {
	if e == Messages || e == CountTokens {
		return Anthropic
	}
	return OpenAI
}

// Dialect is the service whose format and words are used.
type Dialect int

// The dialects.
const (
	OpenAI Dialect = iota
	Anthropic
)

// Request is a request in the words that all dialects have in common.
type Request struct {
	Endpoint Endpoint
	// Model is the name that the request asks for.
	Model string
	// Instructions are the instructions of a request to responses. They are not part of the conversation that a later
	// request continues.
	Instructions string
	// PreviousID is the ID of the response that Messages continue; empty if there is none.
	PreviousID string
	// Messages are the conversation. Their roles are the four roles of package chat.
	Messages []chat.Message
	// Prompts are the prompts of a request to completions, which has no messages.
	Prompts []Prompt
	Tools   []chat.Tool
	// Stop are the texts at which the reply ends.
	Stop []string
	// MaxTokens is the maximum number of tokens of the reply; nil if the request sets none.
	MaxTokens *int
	// N is the number of choices for each prompt, at least 1.
	N int
	// Stream asks for a stream of events, and IncludeUsage for an event with the usage at its end.
	Stream, IncludeUsage bool
	// Echo asks for the prompt before each completion.
	Echo bool
	// Logprobs is the number of alternatives for each token whose log-probabilities the request asks for. With 0, only the
	// sampled tokens have log-probabilities; with nil, no token has one.
	Logprobs *int
	// Sampling has the request's settings of sampling, if Options.CallerSamples permits them.
	Sampling Sampling
	// Overruled are the names of options with which the request asks for a sampling of its own, in alphabetical order.
	Overruled []string
	// Ignored are the fields that the request has and the codec does not follow, one for each name.
	Ignored []Field
	// results are the paths of the IDs of tools' results, by the index of their message.
	results map[int]path
}

// Sampling has a request's settings of sampling. A setting that the request does not have is nil.
type Sampling struct {
	Temperature, TopP *float64
	// TopK is the number of the likeliest tokens to draw from; 0 and -1 mean all tokens.
	TopK *int
	Seed *int64
}

// Prompt is a prompt of a request to completions: either text or token ids.
type Prompt struct {
	Text   string
	Tokens []int32
}

// Field is a field of a request.
type Field struct {
	// Name is one of the names that this package knows, or UnknownField. There is a bounded number of names, so that Name
	// can be a label of a metric.
	Name string
	// Path is the path of the first field of this name, as the dialect writes it.
	Path string
}

// UnknownField is the name of all fields that this package does not know.
const UnknownField = "unknown"

// Conversation returns the messages that the model sees: the instructions, the messages of the response that the
// request continues, and the messages of the request. The error is an *Error: a result of a call that no earlier
// message has.
func (r *Request) Conversation(previous []chat.Message) ([]chat.Message, error) {
	var all []chat.Message
	if r.Instructions != "" {
		all = append(all, chat.Message{Role: chat.RoleSystem, Content: r.Instructions})
	}
	first := len(all) + len(previous)
	all = slices.Concat(all, previous, r.Messages)
	names := map[string]string{}
	for i, m := range all {
		for _, call := range m.Calls {
			names[call.ID] = call.Name
		}
		if i < first || m.Role != chat.RoleTool {
			continue
		}
		name, ok := names[m.CallID]
		if !ok {
			return nil, &Error{
				Kind: InvalidRequest, Param: r.results[i-first].text(r.Endpoint.Dialect()),
				Message: fmt.Sprintf("The ID %s is not the ID of a call in an earlier message.", quote(m.CallID)),
			}
		}
		all[i].Name = name
	}
	return all, nil
}

// Policy decides whether a field that the codec does not follow is ignored or refused.
type Policy int

// The policies for unsupported fields.
const (
	// Ignore lists the field in Request.Ignored.
	Ignore Policy = iota
	// Refuse makes the field an error.
	Refuse
)

// Limits bound a request.
type Limits struct {
	// Bytes is the size of the body, Depth its nesting, and Values the number of its JSON values, which bounds the
	// memory that decoding needs.
	Bytes, Depth, Values int
	// Messages, Tools, Parts, Calls and Stops are the numbers of messages or items, of tools, of parts of one message, of
	// calls in one message and of stop texts.
	Messages, Tools, Parts, Calls, Stops int
	// Choices is the number of choices that one request may ask for, over all of its prompts.
	Choices int
}

// DefaultLimits are the limits of a gateway.
func DefaultLimits() Limits {
	return Limits{
		Bytes: 32 << 20, Depth: 64, Values: 500_000, Messages: 8000, Tools: 1000, Parts: 1000, Calls: 256,
		Stops: 16, Choices: 128,
	}
}

// Options decide how requests are decoded.
type Options struct {
	Unsupported Policy
	Limits      Limits
	// CallerSamples says that requests decide on their sampling. Settings that are not in Request.Sampling are
	// unsupported. Without CallerSamples, all settings of sampling are overruled.
	CallerSamples bool
	// NoAlternatives says that replies have no alternatives to the sampled tokens. A request for alternatives is then an
	// unsupported option.
	NoAlternatives bool
	// Verify reports whether a signature is the signature of a thinking block with this text. If Verify is nil, a request
	// with a thinking block is refused.
	Verify func(thinking, signature string) bool
}

// Decode decodes the body of a request. Its error is always an *Error.
func Decode(endpoint Endpoint, body []byte, options Options) (*Request, error) {
	d := &decoder{dialect: endpoint.Dialect(), options: options}
	request := &Request{Endpoint: endpoint, N: 1}
	d.decode(request, body)
	if d.err != nil {
		return nil, d.err
	}
	slices.Sort(d.overruled)
	request.Overruled, request.Ignored, request.Sampling = d.overruled, d.ignored, d.sampling
	if request.PreviousID != "" {
		return request, nil // The result of a tool may belong to a call in a response that only the gateway knows.
	}
	conversation, err := request.Conversation(nil)
	if err != nil {
		return nil, err
	}
	request.Messages = conversation[len(conversation)-len(request.Messages):]
	return request, nil
}

// decode decodes the body into the request.
func (d *decoder) decode(request *Request, body []byte) {
	top := d.open(body)
	if d.err != nil {
		return
	}
	d.readOptions(top, endpointOptions[request.Endpoint])
	request.Model = d.required(top, "model")
	switch request.Endpoint {
	case ChatCompletions:
		d.chatCompletions(request, top)
	case Completions:
		d.completions(request, top)
	case Responses:
		d.responses(request, top)
	default:
		d.anthropicMessages(request, top)
	}
	request.results = d.results
}
