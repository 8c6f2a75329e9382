// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// textOf joins the texts of blocks. Other blocks, such as images, are left out.
func textOf(blocks []block) string {
	var text strings.Builder
	for _, b := range blocks {
		if b.Type == blockText {
			text.WriteString(b.Text)
		}
	}
	return text.String()
}

// messagesOf translates the conversation that a task begins with. Results of tools stand in the user's messages there,
// and are messages of their own here.
func messagesOf(conversation []message) []chat.Message {
	var messages []chat.Message
	for _, m := range conversation {
		own := chat.Message{Role: m.Role, Content: textOf(m.Blocks)}
		results := 0
		for _, b := range m.Blocks {
			switch b.Type {
			case blockReasoning:
				own.Thinking += b.Text
			case blockCall:
				own.Calls = append(own.Calls, chat.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
			case blockResult:
				results++
				messages = append(messages, chat.Message{Role: chat.RoleTool, Content: textOf(b.Blocks), CallID: b.CallID})
			}
		}
		if results == 0 || own.Content != "" {
			messages = append(messages, own)
		}
	}
	return messages
}

// toolsOf translates the list of tools, without the tool for answers.
func toolsOf(list toolList, terminal *terminalTool) []chat.Tool {
	tools := make([]chat.Tool, 0, len(list.Tools))
	for _, t := range list.Tools {
		if terminal != nil && t.Name == terminal.Name {
			continue
		}
		tool := chat.Tool{Name: t.Name, Description: t.Description}
		if string(t.Schema) != "null" {
			tool.Parameters = t.Schema
		}
		tools = append(tools, tool)
	}
	return tools
}
