// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// asked holds the parameters of a question to the policy.
type asked struct {
	Messages []json.RawMessage `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
	Tokens   []int32           `json:"tokens"`
	Stop     json.RawMessage   `json:"stop"`
	Role     string            `json:"role"`
	Key      string            `json:"key"`
}

// givenMessage is a message as code writes it: in the form of OpenAI's chat completions, or as a reply has it.
type givenMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []givenCall     `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Name       string          `json:"name"`
	// Reply is set in the messages of replies, and nowhere else.
	Reply int `json:"reply"`
}

// givenCall is a call of a tool; its name and arguments may stand below function.
type givenCall struct {
	Type      string     `json:"type"`
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Arguments string     `json:"arguments"`
	Function  *givenCall `json:"function"`
}

type givenTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Function    *givenTool      `json:"function"`
}

// promptOf reads the parameters of a chat.
func promptOf(params json.RawMessage) (environment.Prompt, error) {
	var a asked
	if err := strict(params, &a); err != nil {
		return environment.Prompt{}, err
	}
	if len(a.Messages) == 0 {
		return environment.Prompt{}, errors.New("messages is empty: give at least one")
	}
	prompt := environment.Prompt{Role: a.Role, Conversation: a.Key}
	for i, raw := range a.Messages {
		m, err := messageOf(raw)
		if err != nil {
			return environment.Prompt{}, fmt.Errorf("messages[%d]: %w", i, err)
		}
		prompt.Messages = append(prompt.Messages, m)
	}
	for i, raw := range a.Tools {
		var t givenTool
		if err := strict(raw, &t); err != nil {
			return environment.Prompt{}, fmt.Errorf("tools[%d]: %w", i, err)
		}
		if t.Function != nil {
			t = *t.Function
		}
		if t.Name == "" {
			return environment.Prompt{}, fmt.Errorf("tools[%d]: name is missing", i)
		}
		prompt.Tools = append(prompt.Tools, chat.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return prompt, nil
}

func messageOf(raw json.RawMessage) (chat.Message, error) {
	var given givenMessage
	if err := strict(raw, &given); err != nil {
		return chat.Message{}, err
	}
	if given.Role == "" {
		return chat.Message{}, errors.New("role is missing: give system, user, assistant or tool")
	}
	m := chat.Message{Role: given.Role, CallID: given.ToolCallID, Name: given.Name, Reply: given.Reply}
	if len(given.Content) > 0 && json.Unmarshal(given.Content, &m.Content) != nil {
		return chat.Message{}, fmt.Errorf("content must be a text, and is %.80s", given.Content)
	}
	for i, c := range given.ToolCalls {
		call := chat.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments}
		if c.Function != nil {
			call.Name, call.Arguments = c.Function.Name, c.Function.Arguments
		}
		if call.Name == "" {
			return chat.Message{}, fmt.Errorf("tool_calls[%d]: name is missing", i)
		}
		m.Calls = append(m.Calls, call)
	}
	return m, nil
}

// tokensOf reads the parameters of a sample. The stop is a text, a list of texts, or a list of tokens.
func tokensOf(params json.RawMessage) (environment.TokenPrompt, error) {
	var a asked
	if err := strict(params, &a); err != nil {
		return environment.TokenPrompt{}, err
	}
	if len(a.Tokens) == 0 {
		return environment.TokenPrompt{}, errors.New("tokens is empty: give at least one")
	}
	prompt := environment.TokenPrompt{Role: a.Role, Conversation: a.Key, Tokens: a.Tokens}
	var text string
	switch {
	case len(a.Stop) == 0:
	case json.Unmarshal(a.Stop, &text) == nil:
		prompt.StopStrings = []string{text}
	case json.Unmarshal(a.Stop, &prompt.StopTokens) == nil:
	default:
		prompt.StopTokens = nil
		if err := json.Unmarshal(a.Stop, &prompt.StopStrings); err != nil {
			return environment.TokenPrompt{}, fmt.Errorf("stop must be a text, texts or tokens, and is %.80s", a.Stop)
		}
	}
	return prompt, nil
}

// strict decodes a value. Fields that target does not have are an error, since the policy would not see them.
func strict(data []byte, target any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(target)
}
