// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import "encoding/json"

// The headers of the protocol.
const (
	headerSession    = "X-Session-ID"
	headerAPIKey     = "X-API-Key"
	headerDeployment = "X-Deployment"
	headerSecrets    = "X-Secrets"
	// headerState is "starting" while a server that was asked for is being started: nothing has run yet.
	headerState = "X-Backend-State"
)

// createRequest begins a task in a session.
type createRequest struct {
	Environment string            `json:"env_name,omitempty"`
	Split       string            `json:"split"`
	Index       int64             `json:"index"`
	Toolset     string            `json:"toolset_name,omitempty"`
	Secrets     map[string]string `json:"secrets,omitempty"`
}

// sessionReply is the answer of some servers to create_session, instead of a stream.
type sessionReply struct {
	ID string `json:"sid"`
}

// callRequest runs a tool, or continues a call that is in progress.
type callRequest struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	Task  string          `json:"task_id,omitempty"`
}

// callReply is the result of a call.
type callReply struct {
	OK     bool       `json:"ok"`
	Output toolOutput `json:"output"`
	// Error is for the policy: the call could not be run as it was written.
	Error string `json:"error"`
}

// toolOutput is the output of a tool. A reward of null is not a reward of 0.
type toolOutput struct {
	Blocks   []block  `json:"blocks"`
	Reward   *float64 `json:"reward"`
	Finished bool     `json:"finished"`
}

// block is a piece of a prompt or of a tool's output. The fields that its type lacks are empty.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// ID, Name and Input belong to a call in a conversation that a task begins with.
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	// CallID and Blocks belong to a result in such a conversation.
	CallID string  `json:"tool_call_id"`
	Blocks []block `json:"blocks"`
}

// The types of blocks that have a meaning here. Images are left out, since policies read text.
const (
	blockText      = "text"
	blockReasoning = "reasoning"
	blockCall      = "tool_call"
	blockResult    = "tool_result"
)

// message is one of the messages that a task begins with.
type message struct {
	Role   string  `json:"role"`
	Blocks []block `json:"blocks"`
}

// toolList lists the tools of a task.
type toolList struct {
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	Terminal *terminalTool `json:"terminal_tool"`
}

// terminalTool takes the reply without a call as its argument, and ends the episode. The policy does not see it.
type terminalTool struct {
	Name string `json:"name"`
	// Argument is the name of its one argument; nil if it has none.
	Argument *string `json:"arg"`
}

// splitEntry is a split: in JSON an object, or only its name.
type splitEntry struct{ Name string }

// UnmarshalJSON implements json.Unmarshaler.
func (s *splitEntry) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &s.Name) == nil {
		return nil
	}
	var object struct {
		Name string `json:"name"`
	}
	err := json.Unmarshal(data, &object)
	s.Name = object.Name
	return err
}
