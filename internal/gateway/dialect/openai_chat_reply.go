// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import "github.com/tinker-operator/tinker-operator/internal/chat"

// chatCompletion is a reply of chat/completions, or an event of its stream.
type chatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *openAIUsage `json:"usage,omitempty"`
}

type chatChoice struct {
	Index        int           `json:"index"`
	Message      *chatMessage  `json:"message,omitempty"`
	Delta        *chatDelta    `json:"delta,omitempty"`
	Logprobs     *chatLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
}

type chatMessage struct {
	Role             string     `json:"role"`
	Content          *string    `json:"content"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	Refusal          *string    `json:"refusal"`
	ToolCalls        []chatCall `json:"tool_calls,omitempty"`
}

type chatDelta struct {
	Role             string     `json:"role,omitempty"`
	Content          *string    `json:"content,omitempty"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	ToolCalls        []chatCall `json:"tool_calls,omitempty"`
}

type chatCall struct {
	// Index is the index of the call in its message, in an event of a stream.
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type chatLogprobs struct {
	Content []chatToken `json:"content"`
	Refusal []chatToken `json:"refusal"`
}

type chatToken struct {
	Token       string      `json:"token"`
	Logprob     float64     `json:"logprob"`
	Bytes       []int       `json:"bytes"`
	TopLogprobs []chatToken `json:"top_logprobs,omitzero"`
}

type openAIUsage struct {
	PromptTokens            int               `json:"prompt_tokens"`
	CompletionTokens        int               `json:"completion_tokens"`
	TotalTokens             int               `json:"total_tokens"`
	PromptTokensDetails     promptDetails     `json:"prompt_tokens_details"`
	CompletionTokensDetails completionDetails `json:"completion_tokens_details"`
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

type completionDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

func (u Usage) openAI() *openAIUsage {
	return &openAIUsage{
		PromptTokens: u.Prompt, CompletionTokens: u.Completion, TotalTokens: u.Prompt + u.Completion,
		PromptTokensDetails: promptDetails{u.Cached}, CompletionTokensDetails: completionDetails{u.Reasoning},
	}
}

// finish returns OpenAI's word for the end of a choice.
func (s StopReason) finish() *string {
	word := "stop"
	switch s {
	case StopLength, StopContext:
		word = "length"
	case StopCalls:
		word = "tool_calls"
	}
	return &word
}

// chatBody returns the reply in one body.
func chatBody(request *Request, reply *Reply) chatCompletion {
	body := chatEvent(reply, "chat.completion")
	body.Usage = reply.Usage.openAI()
	for i, choice := range reply.Choices {
		thinking, text := texts(choice.Message)
		message := &chatMessage{
			Role: chat.RoleAssistant, ReasoningContent: thinking, ToolCalls: chatCalls(choice.Message, false),
		}
		if text != "" || len(choice.Message.Calls) == 0 {
			message.Content = &text
		}
		body.Choices = append(body.Choices, chatChoice{
			Index: i, Message: message, FinishReason: choice.Stop.finish(), Logprobs: chatTokens(request, choice),
		})
	}
	return body
}

// chatEvent returns a reply or an event without choices.
func chatEvent(reply *Reply, object string) chatCompletion {
	return chatCompletion{
		ID: reply.ID, Object: object, Created: reply.Created.Unix(), Model: reply.Model, Choices: []chatChoice{},
	}
}

// chatCalls returns the calls of a message, with an index if they are for events.
func chatCalls(m chat.Message, indexed bool) []chatCall {
	var calls []chatCall
	for i, call := range m.Calls {
		c := chatCall{ID: call.ID, Type: "function", Function: chatFunction{call.Name, call.Arguments}}
		if indexed {
			c.Index = &i
		}
		calls = append(calls, c)
	}
	return calls
}

// chatTokens returns the log-probabilities that the request asks for.
func chatTokens(request *Request, choice Choice) *chatLogprobs {
	if request.Logprobs == nil {
		return nil
	}
	logprobs := &chatLogprobs{Content: []chatToken{}}
	for _, token := range choice.Tokens {
		entry := chatTokenOf(token)
		entry.TopLogprobs = []chatToken{}
		for _, top := range token.Top[:min(*request.Logprobs, len(token.Top))] {
			entry.TopLogprobs = append(entry.TopLogprobs, chatTokenOf(top))
		}
		logprobs.Content = append(logprobs.Content, entry)
	}
	return logprobs
}

func chatTokenOf(token Token) chatToken {
	entry := chatToken{Token: token.Text, Bytes: []int{}}
	if logprob := number(token.Logprob); logprob != nil {
		entry.Logprob = *logprob
	}
	for _, b := range []byte(token.Text) {
		entry.Bytes = append(entry.Bytes, int(b))
	}
	return entry
}

// chatStream writes the reply as events: the role, reasoning, text, calls and end of each choice, and then the usage.
func chatStream(w *writer, request *Request, reply *Reply) {
	for i, choice := range reply.Choices {
		open := reply.Open && i == len(reply.Choices)-1
		w.sent = choice.Sent
		send := func(delta chatDelta, logprobs *chatLogprobs, finish *string) {
			event := chatEvent(reply, "chat.completion.chunk")
			event.Choices = []chatChoice{{Index: i, Delta: &delta, Logprobs: logprobs, FinishReason: finish}}
			w.data(event)
		}
		first := chatDelta{Role: chat.RoleAssistant}
		if _, text := texts(choice.Message); text != "" || len(choice.Message.Calls) == 0 || len(choice.Sent) > 0 {
			first.Content = new(string)
		}
		send(first, nil, nil)
		chatTexts(w, choice.Message, send)
		if open {
			return
		}
		if logprobs := chatTokens(request, choice); logprobs != nil {
			send(chatDelta{}, logprobs, nil)
		}
		chatCallEvents(choice.Message, send)
		send(chatDelta{}, nil, choice.Stop.finish())
	}
	if request.IncludeUsage {
		event := chatEvent(reply, "chat.completion.chunk")
		event.Usage = reply.Usage.openAI()
		w.data(event)
	}
	w.done()
}

// chatTexts sends the reasoning and the text of a message, in their order.
func chatTexts(w *writer, m chat.Message, send func(chatDelta, *chatLogprobs, *string)) {
	for _, part := range Normal(m).AllParts() {
		for _, piece := range w.pieces(part.Text) {
			if part.Thinking {
				send(chatDelta{ReasoningContent: piece}, nil, nil)
			} else {
				send(chatDelta{Content: &piece}, nil, nil)
			}
		}
	}
}

// chatCallEvents sends the calls of a message.
func chatCallEvents(m chat.Message, send func(chatDelta, *chatLogprobs, *string)) {
	for _, call := range chatCalls(m, true) {
		arguments := call.Function.Arguments
		call.Function.Arguments = ""
		send(chatDelta{ToolCalls: []chatCall{call}}, nil, nil)
		for _, piece := range pieces(arguments) {
			more := chatCall{Index: call.Index, Function: chatFunction{Arguments: piece}}
			send(chatDelta{ToolCalls: []chatCall{more}}, nil, nil)
		}
	}
}
